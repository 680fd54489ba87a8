/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing by reference: which subscribers a message reaches, and when its memory is free. */
#include "pubsub_fixture.h"

#define KEYS 8192

static struct netio_unbuffered_publish_socket publisher;
static unsigned available, published, published_of[KEYS];
static int status;
static bool inside; /* inside a call into the socket */
static uint64_t number;
static uint8_t bytes[1u << 20];

static void on_available(struct netio_unbuffered_publish_socket *socket)
{
	assert_false(inside);
	available++;
}

static void on_published(struct netio_unbuffered_publish_socket *socket, uint64_t key, int how)
{
	assert_ptr_equal(socket, &publisher);
	assert_false(inside);
	assert_in_range(key, 0, KEYS - 1);
	published_of[key]++;
	published++;
	status = how;
}

static unsigned port(void)
{
	return netio_unbuffered_publish_socket_port(&publisher);
}

static void publish_with(const struct netio_publish_attr *attr)
{
	available = came = went = published = 0;
	memset(published_of, 0, sizeof(published_of));
	number = 0;
	publishing = &publisher;
	status = 1;
	assert_int_equal(netio_unbuffered_publish_socket_init(&ctx.evloop, &publisher, attr), 0);
	publisher.cb_connection_established = on_established;
	publisher.cb_connection_closed = on_closed;
	publisher.cb_buffers_available = on_available;
	publisher.cb_msg_published = on_published;
	assert_int_equal(netio_unbuffered_publish_listen(&publisher, test_host(), 0), 0);
}

static int pubsub_down(void **state)
{
	unsigned wrong = subs_down();

	netio_unbuffered_publish_socket_fini(&publisher);
	netio_unbuffered_publish_socket_fini(&publisher);
	return netio_down(state) || wrong;
}

/* For tests that run with several values. */
static void end_case(void)
{
	subs_down();
	netio_unbuffered_publish_socket_fini(&publisher);
	turn_ms(5);
}

PLX_READS(struct netio_publish_stats, stats, (void),
	  netio_unbuffered_publish_stats_read(&publisher, &it))

/* Two pieces of memory that stays unchanged until it is published. */
static int publish_key(netio_tag_t tag, const void *data, size_t len, uint64_t key, int flags)
{
	struct iovec iov[2] = {{(void *)data, len / 2}, {(uint8_t *)data + len / 2, len - len / 2}};

	inside = true;
	int rc = netio_unbuffered_publishv(&publisher, tag, iov, 2, &key, flags, NULL);
	inside = false;
	return rc;
}

/* The next 8-byte message: its number, which is also its key. */
static uint64_t numbers[KEYS];

static int publish(netio_tag_t tag, int flags)
{
	numbers[number] = number;
	int rc = publish_key(tag, &numbers[number], 8, number, flags);
	if (rc == 0)
		number++;
	return rc;
}

#define PUBSUB_TEST(test) PLX_TEST_WITH(test, netio_up, pubsub_down)

PUBSUB_TEST(a_message_is_reported_once_to_the_publisher)
{
	publish_with(NULL);
	assert_int_equal(publish(1, 0), NETIO_STATUS_NO_SUBSCRIBERS);
	assert_int_equal(publish(1, 4), -EINVAL);
	for (unsigned i = 0; i < SUBS; i++)
		SUBSCRIBE(i, .tag = 1);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(publish(1, 0), NETIO_STATUS_OK);
		TURN_UNTIL(published == i + 1);
		assert_int_equal(published_of[i], 1);
		assert_int_equal(status, 0);
	}
	for (unsigned i = 0; i < SUBS; i++)
		TURN_UNTIL(subs[i].messages == 100);
	assert_int_equal(subs[0].tag, 1);
}

PUBSUB_TEST(the_users_header_comes_first)
{
	struct iovec iov = {"data", 4};
	uint64_t key = 7, usr = 0;

	publish_with(&(struct netio_publish_attr){.timeout_ns = PLX_NEVER});
	SUBSCRIBE(0, .tag = 1);
	SUBSCRIBE(1, .tag = 1, .delivery = NETIO_DELIVERY_BUFFERED);
	memcpy(&usr, "abc", 3);
	assert_works(netio_unbuffered_publishv_usr(&publisher, 1, &iov, 1, &key, 0, NULL, usr, 3));
	TURN_UNTIL(subs[0].messages == 1 && published_of[7] == 1);
	assert_int_equal(subs[0].len, 7);
	assert_memory_equal(subs[0].bytes, "abcdata", 7);
	assert_int_equal(subs[1].messages, 0); /* in a page */
	assert_fails(netio_unbuffered_publishv_usr(&publisher, 1, &iov, 1, &key, 0, NULL, usr, 9),
		     -EINVAL, "usr_size 9: give 0 to 8");
	assert_works(netio_unbuffered_publishv_usr(&publisher, 1, NULL, 0, &key, 0, NULL, usr, 8));
	TURN_UNTIL(subs[0].messages == 2 && published_of[7] == 2);
	assert_int_equal(subs[0].len, 8);
	netio_unbuffered_publish_socket_fini(&publisher);
	TURN_UNTIL(subs[1].messages == 2);
	subs_expect_wrong();
}

/* Short pages, so that few messages wait in them while a subscriber has no room. */
static const struct netio_publish_attr short_pages = {.page_bytes = 256};

/* Until a subscriber that keeps messages takes no more. Return: the status of the refused one. */
static int fill_up(void)
{
	int rc;

	do {
		while (publish(1, NETIO_REENTRY) == NETIO_STATUS_OK)
			;
		turn_ms(5);
		rc = publish(1, NETIO_REENTRY);
	} while (rc == NETIO_STATUS_OK);
	return rc;
}

/* As a program does: each time there is room. */
static void publish_again(void)
{
	do {
		available = 0;
		TURN_UNTIL(available > 0);
	} while (publish(1, NETIO_REENTRY) != NETIO_STATUS_OK);
}

static void slow(struct sub *sub)
{
	sub_up(sub, &(struct netio_subscribe_attr){.buffer_bytes = 1024, .buffer_count = 2});
	sub->kept.more = 256;
	sub_to(sub, port(), (struct netio_subscription){.tag = 1});
}

/* While its subscriber reads nothing. */
PUBSUB_TEST(a_burst_finds_room_for_128_short_messages_with_all_defaults)
{
	publish_with(NULL);
	SUBSCRIBE(0, .tag = 1);
	while (number < KEYS - 1 && publish(1, 0) == NETIO_STATUS_OK)
		;
	assert_in_range(number, 128, KEYS - 2);
	fill(bytes, number, 2000); /* a longer one does not overtake them */
	assert_int_equal(publish_key(1, bytes, 2000, KEYS - 1, 0), NETIO_STATUS_AGAIN);
	publish_again();
	TURN_UNTIL(published == number && subs[0].messages == number);
	for (unsigned i = 0; i < number; i++)
		assert_int_equal(published_of[i], 1);
	assert_int_equal(publish_key(1, bytes, 2000, KEYS - 1, 0), NETIO_STATUS_OK);
	TURN_UNTIL(published_of[KEYS - 1] == 1 && subs[0].len == 2000);
	subs_expect_wrong();
}

/* A message that only the second of two subscribers has. */
static void publish_partial(void)
{
	publish_with(&short_pages);
	slow(&subs[0]);
	SUBSCRIBE(1, .tag = 1);
	assert_int_equal(fill_up(), NETIO_STATUS_PARTIAL);
}

PUBSUB_TEST(publishing_returns_partial_if_some_subscribers_have_room)
{
	publish_partial();
	TURN_UNTIL(subs[1].messages == number + 1);
	turn_ms(20);
	assert_int_equal(published, number); /* it must stay */
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(publish(1, NETIO_REENTRY), NETIO_STATUS_PARTIAL);
	assert_int_equal(subs[1].messages, number + 1);
	/* A later subscriber does not get it. */
	SUBSCRIBE(2, .tag = 1);
	release_all(&subs[0].kept);
	publish_again();
	TURN_UNTIL(published == number && subs[0].messages == number);
	assert_int_equal(subs[2].messages, 0);
	for (unsigned i = 0; i < number; i++)
		assert_int_equal(published_of[i], 1);
}

PUBSUB_TEST(a_partial_message_ends_when_its_subscriber_disconnects)
{
	publish_partial();
	turn_ms(20);
	available = 0;
	netio_subscribe_socket_fini(&subs[0].socket);
	TURN_UNTIL(went == 1);
	assert_int_equal(available, 1);
	assert_int_equal(publish(1, NETIO_REENTRY), NETIO_STATUS_OK);
	TURN_UNTIL(published == number);
	assert_int_equal(status, -ECONNRESET); /* of the last one, which it missed */
	for (unsigned i = 0; i < number; i++)
		assert_int_equal(published_of[i], 1);
}

PUBSUB_TEST(an_abandoned_message_is_reported_as_published)
{
	publish_partial();
	uint64_t refused = number;
	/* Its key cannot be reused meanwhile. */
	assert_int_equal(publish(1, 0), -EALREADY);
	turn_ms(20);
	assert_int_equal(published_of[refused], 0);
	assert_int_equal(netio_unbuffered_publish_give_up(&publisher, 1, refused), 0);
	assert_int_equal(netio_unbuffered_publish_give_up(&publisher, 1, refused), -ENOENT);
	assert_int_equal(published_of[refused], 0); /* not inside the call */
	TURN_UNTIL(published == refused + 1);
	assert_int_equal(published_of[refused], 1);
	assert_int_equal(status, -ECANCELED);
	assert_int_equal(stats().given_up, 1);
	number++;
	release_all(&subs[0].kept);
	TURN_UNTIL(subs[0].gaps == 1); /* before the next message, although it has no pages */
	TURN_UNTIL(publish(1, NETIO_REENTRY) == NETIO_STATUS_OK);
	TURN_UNTIL(published == number && subs[1].messages == number);
	TURN_UNTIL(subs[0].messages + 1 == number);
	assert_int_equal(subs[0].missed[NETIO_GAP_GIVEN_UP], 1);
}

PUBSUB_TEST(a_failed_peer_releases_sent_memory)
{
	publish_with(NULL);
	slow(&subs[0]);
	fill(bytes, 0, sizeof(bytes));
	assert_int_equal(publish_key(1, bytes, sizeof(bytes), 0, 0), NETIO_STATUS_OK);
	cut_subscriber();
	TURN_UNTIL(published == 1);
	assert_true(status < 0);
	TURN_UNTIL(went == 1);
	assert_int_equal(published, 1);
}

PUBSUB_TEST(copies_and_references_stay_in_order)
{
	publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = 4});
	sub_up(&subs[0], &(struct netio_subscribe_attr){.buffer_bytes = 1024, .buffer_count = 2});
	SUBSCRIBE(0, .tag = 1);
	SUBSCRIBE(0, .tag = 2, .delivery = NETIO_DELIVERY_BUFFERED);
	while (number < 3000)
		if (publish(1 + (number * 7 % 5 != 0), NETIO_REENTRY) != NETIO_STATUS_OK)
			plx_loop_turn();
	netio_unbuffered_publish_socket_fini(&publisher);
	TURN_UNTIL(subs[0].messages == 3000);
}

/* Without room, copies replace references, and drops are reported. */
PUBSUB_TEST(a_slow_subscriber_delays_no_other)
{
	for (enum netio_policy policy = NETIO_POLICY_DROP_OLD; policy <= NETIO_POLICY_CONFLATE;
	     policy++) {
		publish_with(&(struct netio_publish_attr){.page_bytes = 256, .page_count = 4});
		sub_up(&subs[0],
		       &(struct netio_subscribe_attr){.buffer_bytes = 256, .buffer_count = 2});
		subs[0].kept.more = 64;
		SUBSCRIBE(0, .tag = 1, .policy = policy);
		SUBSCRIBE(1, .tag = 1);
		for (unsigned i = 0; i < 500; i++) {
			assert_int_equal(publish(1, 0), NETIO_STATUS_OK);
			TURN_UNTIL(published == number && subs[1].messages == number);
			assert_int_equal(published_of[i], 1);
			assert_int_equal(status, 0);
		}
		assert_int_equal(subs[1].wrong + subs[1].gaps, 0);
		release_all(&subs[0].kept);
		TURN_UNTIL(subs[0].messages + missed(&subs[0]) == number);
		assert_true(missed(&subs[0]) > 300);
		assert_int_equal(missed(&subs[0]),
				 stats().dropped_old + stats().dropped_new + stats().conflated);
		/* It has caught up: by reference again. */
		TURN_UNTIL(stats().pages_under_way == 0);
		assert_int_equal(publish(1, 0), NETIO_STATUS_OK);
		assert_int_equal(stats().pages_under_way, 0);
		TURN_UNTIL(subs[0].messages + missed(&subs[0]) == number);
		end_case();
	}
}

/* Else it would arrive on an idle link, and be too big on a busy one. */
PUBSUB_TEST(a_message_that_no_pages_hold_is_dropped_by_policy_alone)
{
	static const enum netio_policy policies[] = {NETIO_POLICY_DROP_OLD, NETIO_POLICY_DROP_NEW,
						     NETIO_POLICY_CONFLATE};

	for (unsigned i = 0; i < 2 * PLX_ARRAY_LEN(policies); i++) {
		publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = 4});
		SUBSCRIBE(0, .tag = 1, .policy = policies[i / 2],
			  .delivery = i % 2 ? NETIO_DELIVERY_BUFFERED : NETIO_DELIVERY_AT_ONCE);
		for (uint64_t key = 0; key < 2; key++) { /* the link is still busy with the first */
			fill(bytes, key, sizeof(bytes));
			assert_int_equal(publish_key(1, bytes, sizeof(bytes), key, 0), 0);
		}
		TURN_UNTIL(subs[0].messages + subs[0].gaps == 2 && published == 2);
		assert_int_equal(subs[0].messages, 1);
		assert_int_equal(subs[0].missed[NETIO_GAP_DROPPED_NEW], 1);
		assert_int_equal(stats().too_big, 0);
		end_case();
	}
}

PLX_TEST_MAIN()
