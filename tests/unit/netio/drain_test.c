/* SPDX-License-Identifier: BSD-3-Clause */
/* netio_drain and netio_fini end in time, whatever peers and callbacks do. */
#include "socket_fixture.h"

#define PAGES      30
#define PAGE_BYTES 1024
#define TRICKLE_MS 700 /* between pages that the peer takes; all of them take 21 s */

static struct netio_eventloop loop;
static struct netio_timer trickle;

static void take_a_page(void *data)
{
	if (heard.kept.count)
		release_messages(&heard.kept, 1);
}

static struct netio_publish_socket publisher;
static struct netio_subscribe_socket subscriber;
static unsigned subscribed;

PLX_COUNTS(on_subscribed, subscribed, struct netio_subscriber *who,
	   const struct netio_subscription *what)

static void on_published(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	heard.messages++;
	keep_message(&heard.kept, msg);
}

static unsigned given_up;

static void on_given_up(struct netio_subscriber *who, enum plx_link_reason reason, const char *why)
{
	struct netio_publish_stats stats;

	netio_publish_stats_read(&publisher, &stats);
	assert_in_range(stats.lost, 1, PAGES - 1);
	assert_int_equal(reason, PLX_LINK_TIMEOUT);
	assert_string_equal(why, "it did not take all within 5 s; what it had not taken is lost");
	given_up++;
}

/* In a second loop on this lcore, to a peer in the first one that keeps its two buffers. */
static void publish_pages(void)
{
	static uint8_t page[PAGE_BYTES - 64];

	subscribed = given_up = 0;
	heard.kept.more = 2 * PAGES;
	assert_int_equal(netio_eventloop_init(&loop), 0);
	assert_int_equal(netio_timer_init(&ctx.evloop, &trickle), 0);
	trickle.cb = take_a_page;
	assert_int_equal(netio_timer_start_ms(&trickle, TRICKLE_MS), 0);
	assert_works(netio_publish_socket_init(
		&loop, &publisher,
		&(struct netio_publish_attr){.page_bytes = PAGE_BYTES, .page_count = PAGES}));
	publisher.cb_subscribed = on_subscribed;
	publisher.cb_connection_closed = on_given_up;
	assert_works(netio_publish_listen(&publisher, test_host(), 0));
	assert_works(netio_subscribe_socket_init(
		&ctx.evloop, &subscriber,
		&(struct netio_subscribe_attr){.buffer_bytes = PAGE_BYTES, .buffer_count = 2}));
	subscriber.cb_msg_received = on_published;
	assert_works(netio_subscribe(&subscriber, test_host(),
				     netio_publish_socket_port(&publisher), 1));
	TURN_UNTIL(subscribed == 1);
	for (unsigned i = 0; i < PAGES; i++)
		assert_int_equal(netio_buffered_publish(&publisher, 1, page, sizeof(page), 0, NULL),
				 0);
}

/* The second loop ends in time, and its connection soon after, in the background. */
SOCKET_TEST(a_subscriber_that_takes_a_page_now_and_then_does_not_delay_netio_fini)
{
	publish_pages();
	uint64_t began_ns = plx_now_ns();
	assert_fails(netio_eventloop_fini(&loop), -ETIMEDOUT,
		     ", and perhaps others, did not agree to close within ");
	assert_in_range(plx_now_ns() - began_ns, PLX_CLOSE_NS - PLX_NS_PER_S,
			PLX_CLOSE_NS + 3 * PLX_NS_PER_S); /* on a busy host */
	assert_int_equal(netio_eventloop_fini(&loop), 0); /* it has ended nevertheless */
	TURN_UNTIL(log_count("did not take all within 5 s") == 1);
	assert_true(plx_now_ns() - began_ns >= PLX_CLOSE_NS);
	netio_timer_stop(&trickle);
	assert_in_range(heard.messages, 2, PAGES - 1);
	netio_subscribe_socket_fini(&subscriber);
}

SOCKET_TEST(netio_drain_reports_what_it_gave_up)
{
	publish_pages();
	assert_fails(netio_drain(&loop, 1), -ETIMEDOUT, "some connections do not close");
	assert_fails(netio_drain(&loop, LIMIT_NS), -ETIMEDOUT,
		     "1 peer did not take all within 5 s; what it had not taken is lost");
	netio_timer_stop(&trickle);
	assert_int_equal(given_up, 1);
	assert_int_equal(log_count("netio:0: netio_drain: "), 2);
	/* That was reported. */
	assert_int_equal(netio_drain(&loop, LIMIT_NS), 0);
	assert_int_equal(netio_eventloop_fini(&loop), 0);
	netio_subscribe_socket_fini(&subscriber);
}

/* Callbacks that open connections again -------------------------------------------------------- */

static struct again {
	struct netio_send_socket sender;
	struct netio_subscribe_socket subscriber;
	struct netio_push_socket pusher;
	struct netio_listen_socket listener;
	unsigned tries, port;
} again;

static void open_again(struct netio_send_socket *socket, enum plx_link_reason reason,
		       const char *why)
{
	again.tries++;
	assert_fails(netio_connect(socket, test_host(), again.port), -ESHUTDOWN,
		     "netio_connect: the connections of this loop are being closed");
	assert_fails(netio_subscribe(&again.subscriber, test_host(), again.port, 1), -ESHUTDOWN,
		     "netio_subscribe: the connections");
	assert_fails(netio_push_connect(&again.pusher, test_host(), again.port), -ESHUTDOWN,
		     "netio_push_connect: the connections");
	assert_fails(netio_listen(&again.listener, test_host(), 0), -ESHUTDOWN,
		     "netio_listen: the connections");
}

SOCKET_TEST(nothing_can_be_opened_during_a_drain)
{
	again = (struct again){0};
	listen_with(NULL);
	again.port = heard.port;
	assert_works(netio_send_socket_init(&ctx.evloop, &again.sender, NULL));
	again.sender.cb_connection_closed = open_again;
	assert_works(netio_subscribe_socket_init(&ctx.evloop, &again.subscriber, NULL));
	assert_works(netio_push_socket_init(&ctx.evloop, &again.pusher, NULL));
	assert_works(netio_listen_socket_init(&ctx.evloop, &again.listener, NULL));
	connect_to_listening(&again.sender);
	TURN_UNTIL(heard.established == 1);
	assert_int_equal(netio_drain(&ctx.evloop, LIMIT_NS), 0);
	assert_int_equal(again.tries, 1);

	/* Afterwards everything works again. */
	assert_works(netio_listen(&heard.socket, test_host(), 0));
	connect_to_listening(&again.sender);
	TURN_UNTIL(heard.established == 2);
	netio_send_socket_fini(&again.sender);
	netio_subscribe_socket_fini(&again.subscriber);
	netio_push_socket_fini(&again.pusher);
	netio_listen_socket_fini(&again.listener);
}

PLX_TEST_MAIN()
