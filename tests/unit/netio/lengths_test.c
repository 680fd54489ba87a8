/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages, of every function that sends: copies have one limit, PLX_SEND_COPY_MAX, on idle
 * and on busy links; longer ones are sent by reference. */
#include "publish_fixture.h"

#include <sys/mman.h>

#define MIB(n) ((size_t)(n) << 20)
#define TAG    7
#define FILLER 60000  /* bytes of a message that fills a link */
#define LONG   MIB(1) /* from here on a message is noted */

static uint8_t *memory; /* of all messages: mostly pages of zeros, which take no memory */
static struct netio_send_socket sender;
static struct netio_buffered_send_socket buffered;
static struct netio_push_socket pusher;
static struct netio_unbuffered_publish_socket unbuffered;
static unsigned established, arrived, released;
static uint64_t key;
static size_t arrived_len;

static void note(const struct netio_msg *msg)
{
	if (msg->len < LONG)
		return;
	assert_memory_equal(msg->data, "head", 4);
	assert_memory_equal((const uint8_t *)msg->data + msg->len - 4, "tail", 4);
	arrived_len = msg->len;
	arrived++;
}

#define NOTES(callback, type)                                       \
	static void callback(type *of, const struct netio_msg *msg) \
	{                                                           \
		note(msg);                                          \
	}

NOTES(on_heard, struct netio_recv_socket)
NOTES(on_answer, struct netio_send_socket)
NOTES(on_published, struct netio_subscribe_socket)

PLX_COUNTS(on_up, established, struct netio_send_socket *socket)
PLX_COUNTS(on_buffered_up, established, struct netio_buffered_send_socket *socket)
PLX_COUNTS(on_pull_up, established, struct netio_push_receiver *receiver)
PLX_COUNTS(on_sent, released, struct netio_send_socket *socket, uint64_t its_key, int status)
PLX_COUNTS(on_replied, released, struct netio_recv_socket *socket, uint64_t its_key, int status)
PLX_COUNTS(on_taken, released, struct netio_unbuffered_publish_socket *socket, uint64_t its_key,
	   int status)

#define PAGES .page_bytes = NETIO_PAGE_BYTES_MAX, .page_count = 6 /* hold more than 40 MiB */

static void senders_up(void)
{
	const struct netio_connect_attr attr = {.message_max_bytes = WIRE_MESSAGE_MAX_LIMIT};
	const struct netio_buffered_attr pages = {.connect = attr, PAGES};
	const struct netio_push_attr push = {.connect = attr};

	listen_with(&(struct netio_listen_attr){.message_max_bytes = WIRE_MESSAGE_MAX_LIMIT});
	heard.socket.cb_msg_received = on_heard;
	heard.socket.cb_send_completed = on_replied;
	assert_works(netio_buffered_send_socket_init(&ctx.evloop, &buffered, &pages));
	buffered.cb_connection_established = on_buffered_up;
	connect_buffered_to_listening(&buffered);
	assert_works(netio_push_socket_init(&ctx.evloop, &pusher, &push));
	pusher.cb_connection_established = on_pull_up;
	assert_works(netio_push_connect(&pusher, test_host(), heard.port));
	TURN_UNTIL(established == 2 && heard.established == 2);
	assert_works(netio_send_socket_init(&ctx.evloop, &sender, &attr));
	sender.cb_connection_established = on_up;
	sender.cb_send_completed = on_sent;
	sender.cb_msg_received = on_answer;
	connect_to_listening(&sender); /* last: heard.from is its connection */
	TURN_UNTIL(established == 3 && heard.established == 3);
}

/* Two subscribers of each publisher, one buffered and one at once. */
static void subscribers_up(void)
{
	const struct netio_subscribe_attr attr = {
		.connect.message_max_bytes = WIRE_MESSAGE_MAX_LIMIT};
	unsigned ports[2];

	publish_with(&(struct netio_publish_attr){PAGES});
	assert_works(netio_unbuffered_publish_socket_init(&ctx.evloop, &unbuffered, NULL));
	unbuffered.cb_msg_published = on_taken;
	assert_works(netio_unbuffered_publish_listen(&unbuffered, test_host(), 0));
	ports[0] = port();
	ports[1] = netio_unbuffered_publish_socket_port(&unbuffered);
	for (unsigned i = 0; i < SUBS; i++) {
		sub_up(&subs[i], &attr);
		subs[i].socket.cb_msg_received = on_published;
		sub_to(&subs[i], ports[i / 2],
		       (struct netio_subscription){.tag = TAG,
						   .delivery = i % 2 ? NETIO_DELIVERY_AT_ONCE
								     : NETIO_DELIVERY_BUFFERED});
	}
}

static int all_up(void **state)
{
	netio_up_with("--partial-mem 4G");
	established = arrived = released = 0;
	key = 0;
	memory = mmap(NULL, MIB(1024), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memcpy(memory, "head", 4);
	senders_up();
	subscribers_up();
	return 0;
}

/* Nothing was lost meanwhile. */
static int all_down(void **state)
{
	assert_int_equal(heard.closed, 0);
	for (unsigned i = 0; i < SUBS; i++)
		assert_int_equal(subs[i].closed + subs[i].gaps, 0);
	netio_unbuffered_publish_socket_fini(&unbuffered);
	netio_send_socket_fini(&sender);
	netio_buffered_send_socket_fini(&buffered);
	netio_push_socket_fini(&pusher);
	hear_no_more(&heard);
	pubsub_down(state);
	return munmap(memory, MIB(1024));
}

#define LENGTHS_TEST(test) PLX_TEST_WITH(test, all_up, all_down)

/* The functions ------------------------------------------------------------------------------- */

static int send_copy(size_t len)
{
	return netio_send(&sender, memory, len);
}

static int send_buffered(size_t len)
{
	int rc = netio_buffered_send(&buffered, memory, len);

	netio_buffered_flush(&buffered);
	return rc;
}

static int reply_copy(size_t len)
{
	return netio_reply(heard.from, memory, len);
}

static int push_copy(size_t len)
{
	return netio_push(&pusher, memory, len);
}

static int publish_copy(size_t len)
{
	int rc = netio_buffered_publish(&publisher, TAG, memory, len, 0, NULL);

	netio_buffered_publish_flush(&publisher);
	return rc;
}

static int send_reference(size_t len)
{
	return netio_sendv_ref(&sender, 0, &(struct iovec){memory, len}, 1, key);
}

static int reply_reference(size_t len)
{
	return netio_reply_ref(heard.from, memory, len, key);
}

static int publish_reference(size_t len)
{
	return netio_unbuffered_publishv(&unbuffered, TAG, &(struct iovec){memory, len}, 1, &key,
					 NETIO_REENTRY, NULL);
}

/* A function and how often one message of it arrives. */
struct api {
	const char *name;
	int (*send)(size_t len);
	unsigned copies;
	const char *instead; /* what a refusal names */
};

static void set_tail(size_t len)
{
	memcpy(memory + len - 4, "tail", 4);
}

static const struct api copying[] = {
	{"netio_send", send_copy, 1, "netio_sendv_ref"},
	{"netio_buffered_send", send_buffered, 1, "netio_sendv_ref"},
	{"netio_reply", reply_copy, 1, "netio_replyv_ref"},
	{"netio_push", push_copy, 1, "netio_sendv_ref"},
	{"netio_buffered_publish", publish_copy, 2, "netio_unbuffered_publishv"},
};

static void expect_refusal(const struct api *api, size_t len)
{
	char length[32];
	int rc = api->send(len);

	if (rc != -EMSGSIZE)
		fail_msg("%s, %zu bytes: %d", api->name, len, rc);
	snprintf(length, sizeof(length), "%zu bytes", len);
	assert_error_has(length);
	assert_error_has("33554432");
	assert_error_has(api->instead);
}

LENGTHS_TEST(only_copies_up_to_the_limit_are_accepted)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(copying); i++) {
		const struct api *api = &copying[i];

		arrived = 0;
		set_tail(PLX_SEND_COPY_MAX);
		assert_works(api->send(PLX_SEND_COPY_MAX));
		TURN_UNTIL(arrived == api->copies);
		assert_int_equal(arrived_len, PLX_SEND_COPY_MAX);
		expect_refusal(api, PLX_SEND_COPY_MAX + 1);
		for (unsigned j = 0; j < 40 && api->send(FILLER) == 0; j++)
			continue;
		expect_refusal(api, PLX_SEND_COPY_MAX + 1); /* the link is busy */
		expect_refusal(api, MIB(1024) - 1);
		turn_ms(20);
		assert_int_equal(arrived, api->copies);
	}
}

static const struct api by_reference[] = {
	{"netio_sendv_ref", send_reference, 1, NULL},
	{"netio_reply_ref", reply_reference, 1, NULL},
	{"netio_unbuffered_publishv", publish_reference, 2, NULL},
};

/* Send one by reference, as soon as there is room. */
static void refer(const struct api *api, size_t len)
{
	uint64_t end_ns = plx_now_ns() + LIMIT_NS;
	int rc;

	key++;
	set_tail(len);
	while ((rc = api->send(len)) == NETIO_STATUS_AGAIN || rc == NETIO_STATUS_PARTIAL) {
		plx_loop_turn();
		assert_true(plx_now_ns() < end_ns);
	}
	if (rc)
		fail_msg("%s, %zu bytes: %s", api->name, len, plx_error());
}

/* All that were sent by reference arrive, the last one with that length. */
static void expect_references(unsigned copies, size_t len)
{
	TURN_UNTIL(arrived == copies && released == key);
	assert_int_equal(arrived_len, len);
	arrived = released = 0;
	key = 0;
}

/* With buffered delivery, too: the pages of this publisher hold 2 MiB. */
LENGTHS_TEST(longer_messages_arrive_by_reference)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(by_reference); i++) {
		const struct api *api = &by_reference[i];

		assert_fails(api->send(MIB(1024) - 1), -EMSGSIZE, "1073737728");
		refer(api, MIB(3));
		expect_references(api->copies, MIB(3));
		refer(api, MIB(33));
		refer(api, MIB(33)); /* the link is busy */
		expect_references(2 * api->copies, MIB(33));
	}
}

PLX_TEST_MAIN()
