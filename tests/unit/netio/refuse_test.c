/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscriptions that a publisher has no room for: refused, and requested again. And other refusals.
 */
#include "publish_fixture.h"

PUBSUB_TEST(too_many_subscriptions_are_refused)
{
	publish_to_one(&(struct netio_publish_attr){.subscriptions_max = 2});
	SUBSCRIBE(0, .tag = 2);
	assert_int_equal(netio_subscribe(&subs[0].socket, test_host(), port(), 3), 0);
	TURN_UNTIL(subs[0].not_taken == 1);
	assert_int_equal(subs[0].what.tag, 3);
	assert_non_null(strstr(subs[0].why, "takes no more subscriptions"));
	assert_int_equal(subs[0].unsubscribed, 0);
	assert_true(stats().refused >= 1);

	/* It is tried again, and there is room now. */
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1), 0);
	TURN_UNTIL(subs[0].unsubscribed == 1 && subs[0].subscribed == 3);
	assert_int_equal(subs[0].what.tag, 3);
	assert_int_equal(stats().subscriptions, 2);
	assert_int_equal(publish(3, 8, 0), 0);
	FLUSH_UNTIL(subs[0].messages == 1);
}

static void begin_refused(void)
{
	publish_to_one(&(struct netio_publish_attr){.subscriptions_max = 1});
	sub_up(&subs[1],
	       &(struct netio_subscribe_attr){.connect = {.reconnect_min_ns = PLX_NS_PER_MS,
							  .reconnect_max_ns = PLX_NS_PER_MS}});
	REQUEST(1, .tag = 3);
}

PUBSUB_TEST(a_refused_subscription_may_end_while_it_waits)
{
	begin_refused();
	TURN_UNTIL(subs[1].not_taken == 3);
	assert_fails(netio_subscribe(&subs[1].socket, test_host(), port(), 3), -EEXIST,
		     "subscribed to");
	assert_int_equal(netio_unsubscribe(&subs[1].socket, test_host(), port(), 3), 0);
	TURN_UNTIL(subs[1].unsubscribed == 1 && subs[1].closed == 1);
	assert_int_equal(subs[1].subscribed, 0);
}

PUBSUB_TEST(a_refused_subscription_outlives_its_connection)
{
	unsigned at;

	begin_refused();
	TURN_UNTIL(subs[1].not_taken == 1);
	at = port();
	netio_subscribe_socket_fini(&subs[0].socket);
	netio_publish_socket_fini(&publisher);
	TURN_UNTIL(subs[1].closed == 1);
	assert_int_equal(netio_publish_socket_init(&ctx.evloop, &publisher, NULL), 0);
	assert_int_equal(netio_publish_listen(&publisher, test_host(), at), 0);
	TURN_UNTIL(subs[1].subscribed == 1);
	assert_int_equal(subs[1].lost + subs[1].resumed, 0);
}

/* They are not all requested at once. */
PUBSUB_TEST(many_refused_subscriptions_find_room)
{
	publish_to_one(&(struct netio_publish_attr){.subscriptions_max = 250});
	for (netio_tag_t tag = 2; tag <= 240; tag++)
		REQUEST(0, .tag = tag);
	TURN_UNTIL(subs[0].subscribed == 240);
	sub_up(&subs[1], NULL);
	for (netio_tag_t tag = 1; tag <= 240; tag++)
		REQUEST(1, .tag = tag);
	TURN_UNTIL(subs[1].subscribed == 10 && subs[1].not_taken >= 230);
	netio_subscribe_socket_fini(&subs[0].socket);
	TURN_UNTIL(subs[1].subscribed == 240);
	assert_int_equal(stats().subscriptions, 240);
}

PUBSUB_TEST(without_reconnecting_a_refusal_ends_the_subscription)
{
	publish_to_one(&(struct netio_publish_attr){.subscriptions_max = 1});
	sub_up(&subs[1], &(struct netio_subscribe_attr){.connect.reconnect_min_ns = PLX_NEVER});
	REQUEST(1, .tag = 3);
	TURN_UNTIL(subs[1].unsubscribed == 1 && subs[1].closed == 1);
	assert_int_equal(subs[1].not_taken, 1);
}

/* Programs without callbacks see the reason in the logs of both sides. */
PUBSUB_TEST(refusals_are_logged_once_on_both_sides)
{
	begin_refused();
	subs[1].socket.cb_subscription_refused = NULL;
	TURN_UNTIL(stats().refused == 4);
	assert_int_equal(log_count("refuses a subscription: the publisher takes no more "
				   "subscriptions; trying again"),
			 1);
	assert_int_equal(log_count("is refused a subscription: it has 0, of 131072 "
				   "(subscriber_subscriptions_max), and all have 1, of 1 "
				   "(subscriptions_max)"),
			 1);
}

PUBSUB_TEST(a_range_counts_as_its_number_of_blocks)
{
	publish_with(&(struct netio_publish_attr){.subscriptions_max = 200,
						  .subscriber_subscriptions_max = 130,
						  .subscribers_max = 2});
	SUBSCRIBE(0, .tag = 1, .last = UINT64_MAX - 1);
	for (netio_tag_t tag = 1; tag <= 4; tag++)
		SUBSCRIBE(0, .tag = tag);
	assert_int_equal(netio_subscribe(&subs[0].socket, test_host(), port(), 5), 0);
	TURN_UNTIL(subs[0].not_taken == 1);
	SUBSCRIBE(1, .tag = 1, .last = UINT64_MAX);
	REQUEST(1, .tag = 3, .last = UINT64_MAX - 3);
	TURN_UNTIL(subs[1].not_taken == 1);
	assert_int_equal(stats().subscriptions, 6);
	assert_true(stats().refused >= 2);
	/* And their number is limited. */
	sub_up(&subs[2], NULL);
	assert_int_equal(netio_subscribe(&subs[2].socket, test_host(), port(), 5), 0);
	TURN_UNTIL(subs[2].refused > 0);
	/* A leaving subscriber frees its slot. */
	netio_subscribe_socket_fini(&subs[0].socket);
	TURN_UNTIL(subs[2].subscribed == 1);
}

PUBSUB_TEST(bad_arguments_are_refused_with_the_reason)
{
	publish_with(NULL);
	assert_fails(publish(1, 8, 4), -EINVAL, "give 0 or NETIO_REENTRY");
	assert_int_equal(netio_publish_listen(&publisher, test_host(), 0), -EALREADY);
}

PLX_TEST_MAIN()
