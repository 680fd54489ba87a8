/* SPDX-License-Identifier: BSD-3-Clause */
/* A subscriber that blocks its publisher: its callback takes 250 us, and pages for seconds of it
 * wait. It loses nothing, no connection ends, and a timer of 10 ms on its lcore stays on time. */
#include "log_capture.h"
#include "netio.h"
#include "on_time.h"

#include <stdatomic.h>

#define CALLBACK_NS (250 * PLX_NS_PER_US)
#define LATE_NS     (2 * PLX_NS_PER_MS)
#define TAG         7

static struct netio_context ctx;
static uint64_t duration_ns, end_ns;
static _Atomic unsigned port;
static _Atomic bool is_over;

/* The publisher, on the main lcore ------------------------------------------------------------- */

static struct netio_publish_socket publisher;
static uint64_t next_number;
static unsigned connections;
static bool is_again;

static void publish(struct netio_publish_socket *socket)
{
	do {
		int rc = netio_buffered_publish(socket, TAG, &next_number, sizeof(next_number),
						is_again ? NETIO_REENTRY : 0, NULL);

		is_again = rc == NETIO_STATUS_AGAIN;
		next_number += rc == NETIO_STATUS_OK;
		if (rc != NETIO_STATUS_OK)
			return;
	} while (plx_now_ns() < end_ns);
}

static void on_subscribed(struct netio_subscriber *subscriber,
			  const struct netio_subscription *what)
{
	connections++;
	publish(&publisher);
}

static bool is_done(void *arg)
{
	return atomic_load(&is_over);
}

/* The subscriber, on the other ----------------------------------------------------------------- */

static uint64_t got, wrong, gaps, ends;
static struct on_time on_time;

static void on_message(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	uint64_t end = plx_now_ns() + CALLBACK_NS, number;

	on_time_look(&on_time, plx_now_ns());
	memcpy(&number, msg->data, sizeof(number));
	wrong += number != got++;
	while (plx_now_ns() < end)
		;
}

static void on_gap(struct netio_publisher *from, const struct netio_gap *gap)
{
	gaps++;
}

static void on_closed(struct netio_publisher *from, enum plx_link_reason reason, const char *why)
{
	ends++;
}

static bool has_no_time(void *arg)
{
	return plx_now_ns() >= end_ns;
}

static int subscribe(void *arg)
{
	static struct netio_eventloop evloop;
	static struct netio_subscribe_socket socket;

	assert_int_equal(netio_eventloop_init(&evloop), 0);
	assert_int_equal(netio_subscribe_socket_init(&evloop, &socket, NULL), 0);
	socket.cb_msg_received = on_message;
	socket.cb_gap = on_gap;
	socket.cb_connection_closed = on_closed;
	assert_int_equal(netio_subscribe(&socket, "127.0.0.1", atomic_load(&port), TAG), 0);
	on_time_start(&on_time, LATE_NS);
	plx_loop_until(has_no_time, NULL, PLX_NEVER);
	plx_timer_stop(&on_time.timer);
	netio_subscribe_socket_fini(&socket);
	assert_int_equal(netio_eventloop_fini(&evloop), 0);
	atomic_store(&is_over, true);
	return 0;
}

static void slow_callbacks(const char *provider)
{
	char options[128];
	int rc = -1;

	got = wrong = gaps = ends = 0;
	next_number = connections = 0;
	is_again = false;
	atomic_store(&is_over, false);
	snprintf(options, sizeof(options), "-l 0,1 --idle poll --huge none --provider %s",
		 provider);
	setenv("NETIO_OPTIONS", options, 1);
	assert_works(netio_init(&ctx));
	assert_works(netio_publish_socket_init(&ctx.evloop, &publisher, NULL));
	publisher.cb_subscribed = on_subscribed;
	publisher.cb_buffers_available = publish;
	assert_works(netio_publish_listen(&publisher, "127.0.0.1", 0));
	atomic_store(&port, netio_publish_socket_port(&publisher));
	end_ns = plx_now_ns() + duration_ns;
	assert_works(plx_lcore_launch(1, subscribe, NULL));
	assert_works(plx_loop_until(is_done, NULL, 2 * duration_ns + 20 * PLX_NS_PER_S));
	assert_works(plx_lcore_join(1, 20 * PLX_NS_PER_S, &rc));
	assert_int_equal(rc, 0);
	print_message("%s: %lu messages; %u ticks, %u later than 2 ms, at most %.3f ms; %u without "
		      "a CPU\n",
		      provider, got, on_time.ticks, on_time.late, (double)on_time.latest_ns / 1e6,
		      on_time.away);
	assert_int_equal(wrong + gaps + ends, 0);
	assert_int_equal(connections, 1);
	assert_true(got > duration_ns / CALLBACK_NS / 20);
	assert_true(on_time.late * 1000 <= on_time.ticks + 1000);
	netio_publish_socket_fini(&publisher);
	netio_fini(&ctx);
}

PLX_TEST(slow_callbacks_lose_nothing)
{
	duration_ns = (getenv("PLX_TEST_SOAK") ? 60 : 4) * PLX_NS_PER_S;
	log_capture();
	slow_callbacks("tcp");
	slow_callbacks("shm");
	plx_log_set_sink(NULL, NULL);
}

PLX_TEST_MAIN()
