/* SPDX-License-Identifier: BSD-3-Clause */
/* Thousands of connections in sequence: everything that each one took is released. */
#include "count.h"
#include "publish_fixture.h"

#define CYCLES 1000   /* of each kind and provider */
#define WARMUP 250    /* pools, caches and tables have reached their size */
#define GROWTH 409600 /* bytes: about half a KiB for each */

static const char *provider;
static struct netio_send_socket sender;
static unsigned opened, closed;

static void on_opened(struct netio_send_socket *socket)
{
	opened++;
	assert_int_equal(netio_send(socket, "x", 1), 0);
	assert_int_equal(netio_disconnect(socket), 0);
}

static void on_sender_closed(struct netio_send_socket *socket, enum plx_link_reason reason,
			     const char *why)
{
	assert_int_equal(reason, PLX_LINK_CLOSED);
	closed++;
}

/* WARMUP cycles allocate everything that later ones need. */
static void run_cycles(void (*cycle)(unsigned i))
{
	size_t resident_before = 0;
	int descriptors_before = 0;

	for (unsigned i = 0; i < CYCLES; i++) {
		if (i == WARMUP) {
			turn_ms(20);
			descriptors_before = count_descriptors();
			resident_before = count_memory().resident_bytes;
		}
		cycle(i);
	}
	turn_ms(20);
	assert_in_range(count_descriptors(), 1, descriptors_before + 4);
	assert_in_range(plx_fabric_open_count(), 0, 2);
	/* Sanitizers keep freed memory. */
	assert_true(PLX_TEST_SANITIZED || count_memory().resident_bytes < resident_before + GROWTH);
}

static void send_once(unsigned i)
{
	connect_to_listening(&sender);
	TURN_UNTIL(closed == i + 1 && heard.closed == i + 1);
	assert_int_equal(opened, i + 1);
	assert_int_equal(heard.messages, i + 1);
}

static void repeated_connects_of_senders_leak_nothing(void **state)
{
	opened = closed = 0;
	listen_with(&(struct netio_listen_attr){.provider = provider});
	assert_works(netio_send_socket_init(&ctx.evloop, &sender,
					    &(struct netio_connect_attr){.provider = provider}));
	sender.cb_connection_established = on_opened;
	sender.cb_connection_closed = on_sender_closed;
	run_cycles(send_once);
	netio_send_socket_fini(&sender);
	netio_listen_socket_fini(&heard.socket);
}

static void subscribe_once(unsigned i)
{
	sub_up(&subs[0], &(struct netio_subscribe_attr){.connect.provider = provider});
	SUBSCRIBE(0, .tag = 1);
	assert_int_equal(publish(1, 8, 0), 0);
	FLUSH_UNTIL(subs[0].messages == 1);
	netio_subscribe_socket_fini(&subs[0].socket);
	subs_expect_wrong(); /* numbers before its subscription */
	TURN_UNTIL(went == i + 1);
}

static void repeated_connects_of_subscribers_leak_nothing(void **state)
{
	publish_with(&(struct netio_publish_attr){.provider = provider});
	run_cycles(subscribe_once);
	assert_int_equal(stats().subscriptions, 0);
	assert_int_equal(stats().pages_under_way, 0);
}

PLX_FIXTURE(down, pubsub_down(state), hear_no_more(&heard))
PLX_FIXTURE(up_tcp, netio_up(state), provider = "tcp")
PLX_FIXTURE(up_shm, netio_up(state), provider = "shm")

PLX_TEST_AGAIN(repeated_connects_of_senders_leak_nothing, up_tcp, down)
PLX_TEST_AGAIN(repeated_connects_of_senders_leak_nothing, up_shm, down)
PLX_TEST_AGAIN(repeated_connects_of_subscribers_leak_nothing, up_tcp, down)
PLX_TEST_AGAIN(repeated_connects_of_subscribers_leak_nothing, up_shm, down)

PLX_TEST_MAIN()
