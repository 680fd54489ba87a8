/* SPDX-License-Identifier: BSD-3-Clause */
/* Every function that sends, by copy or by reference, and what happens to long messages. */
#ifndef LENGTHS_FIXTURE_H
#define LENGTHS_FIXTURE_H

#include "pubsub_fixture.h"

#include "plx_rpc.h"

#include <sys/mman.h>

#define MIB(n)  ((size_t)(n) << 20)
#define TAG     7
#define ANSWERS 400    /* requests that the service keeps, to answer them */
#define FILLER  60000  /* bytes of a message that fills a link */
#define LONG    MIB(1) /* from here on a message is noted */

static uint8_t *memory; /* of all messages: mostly pages of zeros, which take no memory */
static struct netio_send_socket sender;
static struct netio_buffered_send_socket buffered;
static struct netio_push_socket pusher;
static struct netio_publish_socket publisher;
static struct netio_unbuffered_publish_socket unbuffered;
static struct plx_rpc_service *service;
static struct plx_rpc_client *caller;
static struct plx_rpc_request *kept[ANSWERS];
static unsigned established, ended, kept_count, arrived, released;
static uint64_t key;
static size_t arrived_len;

/* What arrives -------------------------------------------------------------------------------- */

static inline void note(const void *data, size_t len)
{
	if (len < LONG)
		return;
	assert_memory_equal(data, "head", 4);
	assert_memory_equal((const uint8_t *)data + len - 4, "tail", 4);
	arrived_len = len;
	arrived++;
}

#define NOTES(callback, type)                                              \
	static inline void callback(type *of, const struct netio_msg *msg) \
	{                                                                  \
		note(msg->data, msg->len);                                 \
	}

NOTES(on_heard, struct netio_recv_socket)
NOTES(on_answer, struct netio_send_socket)
NOTES(on_published, struct netio_subscribe_socket)

static inline void on_result(const struct plx_rpc_result *result, void *arg)
{
	if (result->status == PLX_RPC_OK)
		note(result->data, result->length);
}

static inline void on_request(struct plx_rpc_request *request, const void *data, uint32_t length,
			      void *arg)
{
	note(data, length);
	plx_rpc_reply(request, NULL, 0);
}

static inline void on_keep(struct plx_rpc_request *request, const void *data, uint32_t length,
			   void *arg)
{
	kept[kept_count++] = request;
}

PLX_COUNTS(on_up, established, struct netio_send_socket *socket)
PLX_COUNTS(on_buffered_up, established, struct netio_buffered_send_socket *socket)
PLX_COUNTS(on_pull_up, established, struct netio_push_receiver *receiver)
PLX_COUNTS(on_down, ended, struct netio_send_socket *socket, enum plx_link_reason reason,
	   const char *why)
PLX_COUNTS(on_buffered_down, ended, struct netio_buffered_send_socket *socket,
	   enum plx_link_reason reason, const char *why)
PLX_COUNTS(on_pull_down, ended, struct netio_push_receiver *receiver, enum plx_link_reason reason,
	   const char *why)
PLX_COUNTS(on_sent, released, struct netio_send_socket *socket, uint64_t its_key, int status)
PLX_COUNTS(on_replied, released, struct netio_recv_socket *socket, uint64_t its_key, int status)
PLX_COUNTS(on_taken, released, struct netio_unbuffered_publish_socket *socket, uint64_t its_key,
	   int status)

/* The sockets --------------------------------------------------------------------------------- */

#define PAGES .page_bytes = NETIO_PAGE_BYTES_MAX, .page_count = 6 /* hold more than 40 MiB */

static inline void senders_up(const char *provider)
{
	struct netio_connect_attr attr = {.provider = provider,
					  .message_max_bytes = WIRE_MESSAGE_MAX_LIMIT};

	listen_with(&(struct netio_listen_attr){.provider = provider,
						.message_max_bytes = WIRE_MESSAGE_MAX_LIMIT});
	heard.socket.cb_msg_received = on_heard;
	heard.socket.cb_send_completed = on_replied;
	assert_works(netio_buffered_send_socket_init(
		&ctx.evloop, &buffered, &(struct netio_buffered_attr){.connect = attr, PAGES}));
	buffered.cb_connection_established = on_buffered_up;
	buffered.cb_connection_closed = on_buffered_down;
	connect_buffered_to_listening(&buffered);
	assert_works(netio_push_socket_init(&ctx.evloop, &pusher,
					    &(struct netio_push_attr){.connect = attr}));
	pusher.cb_connection_established = on_pull_up;
	pusher.cb_connection_closed = on_pull_down;
	assert_works(netio_push_connect(&pusher, test_host(), heard.port));
	TURN_UNTIL(established == 2 && heard.established == 2);
	assert_works(netio_send_socket_init(&ctx.evloop, &sender, &attr));
	sender.cb_connection_established = on_up;
	sender.cb_connection_closed = on_down;
	sender.cb_send_completed = on_sent;
	sender.cb_msg_received = on_answer;
	connect_to_listening(&sender); /* last: heard.from is its connection */
	TURN_UNTIL(established == 3 && heard.established == 3);
}

/* Two subscribers of each publisher, one buffered and one at once. */
static inline void subscribers_up(const char *provider)
{
	const struct netio_publish_attr pages = {.provider = provider, PAGES};
	const struct netio_publish_attr few = {.provider = provider};
	const struct netio_subscribe_attr attr = {
		.connect = {.provider = provider, .message_max_bytes = WIRE_MESSAGE_MAX_LIMIT}};
	unsigned ports[2];

	assert_works(netio_publish_socket_init(&ctx.evloop, &publisher, &pages));
	assert_works(netio_publish_listen(&publisher, test_host(), 0));
	assert_works(netio_unbuffered_publish_socket_init(&ctx.evloop, &unbuffered, &few));
	unbuffered.cb_msg_published = on_taken;
	assert_works(netio_unbuffered_publish_listen(&unbuffered, test_host(), 0));
	ports[0] = netio_publish_socket_port(&publisher);
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

enum { TAKE, KEEP };

static inline void service_up(const char *provider)
{
	const struct plx_rpc_service_attr attr = {.request_max = PLX_RPC_PAYLOAD_MAX};
	const struct plx_rpc_client_attr client = {.link.provider = provider,
						   .reply_max = PLX_RPC_PAYLOAD_MAX,
						   .deadline_ns = PLX_NEVER,
						   .calls_max = ANSWERS + 40};
	const struct plx_rpc_method methods[] = {
		{.id = TAKE, .name = "take", .handler = on_request},
		{.id = KEEP, .name = "keep", .handler = on_keep},
	};
	const struct plx_listen_attr listen = {.link.provider = provider};
	const struct plx_rpc_call call = {.method = KEEP, .done = on_result};

	assert_works(plx_rpc_service_create(&attr, &service));
	for (unsigned i = 0; i < PLX_ARRAY_LEN(methods); i++)
		assert_works(plx_rpc_service_add(service, &methods[i]));
	assert_works(plx_rpc_service_listen(service, "127.0.0.1:0", &listen));
	assert_works(plx_rpc_client_create(
		(const char *const[]){plx_rpc_service_address(service, 0), NULL}, &client,
		&caller));
	for (unsigned i = 0; i < ANSWERS; i++)
		assert_works(plx_rpc_call_start(caller, &call, NULL, 0, NULL));
	TURN_UNTIL(kept_count == ANSWERS);
}

static inline void all_up(const char *provider)
{
	established = ended = kept_count = arrived = released = 0;
	key = 0;
	memory = mmap(NULL, MIB(1024), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memcpy(memory, "head", 4);
	senders_up(provider);
	subscribers_up(provider);
	service_up(provider);
}

static inline int all_down(void **state)
{
	plx_rpc_client_destroy(caller);
	plx_rpc_service_destroy(service);
	while (kept_count)
		plx_rpc_refuse(kept[--kept_count], PLX_RPC_CANCELLED, 0);
	subs_down();
	netio_publish_socket_fini(&publisher);
	netio_unbuffered_publish_socket_fini(&unbuffered);
	netio_send_socket_fini(&sender);
	netio_buffered_send_socket_fini(&buffered);
	netio_push_socket_fini(&pusher);
	sockets_down(state);
	return munmap(memory, MIB(1024));
}

/* The functions ------------------------------------------------------------------------------- */

static inline int send_copy(size_t len)
{
	return netio_send(&sender, memory, len);
}

static inline int send_buffered(size_t len)
{
	int rc = netio_buffered_send(&buffered, memory, len);

	netio_buffered_flush(&buffered);
	return rc;
}

static inline int reply_copy(size_t len)
{
	return netio_reply(heard.from, memory, len);
}

static inline int push_copy(size_t len)
{
	return netio_push(&pusher, memory, len);
}

static inline int publish_copy(size_t len)
{
	int rc = netio_buffered_publish(&publisher, TAG, memory, len, 0, NULL);

	netio_buffered_publish_flush(&publisher);
	return rc;
}

static inline int call_service(size_t len)
{
	const struct plx_rpc_call call = {.method = TAKE, .done = on_result};

	return plx_rpc_call_start(caller, &call, memory, len, NULL);
}

static inline int answer_call(size_t len)
{
	assert_true(kept_count > 0);
	return plx_rpc_reply(kept[--kept_count], memory, len);
}

static inline int send_reference(size_t len)
{
	return netio_sendv_ref(&sender, 0, &(struct iovec){memory, len}, 1, key);
}

static inline int reply_reference(size_t len)
{
	return netio_reply_ref(heard.from, memory, len, key);
}

static inline int publish_reference(size_t len)
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

static inline void set_tail(size_t len)
{
	memcpy(memory + len - 4, "tail", 4);
}

/* Send one by reference, as soon as there is room. */
static inline void refer(const struct api *api, size_t len)
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
static inline void expect_references(unsigned copies, size_t len)
{
	TURN_UNTIL(arrived == copies && released == key);
	assert_int_equal(arrived_len, len);
	arrived = released = 0;
	key = 0;
}

static const struct api by_reference[] = {
	{"netio_sendv_ref", send_reference, 1, NULL},
	{"netio_reply_ref", reply_reference, 1, NULL},
	{"netio_unbuffered_publishv", publish_reference, 2, NULL},
};

/* Nothing was lost meanwhile. */
static inline void expect_no_loss(void)
{
	assert_int_equal(ended + heard.closed, 0);
	for (unsigned i = 0; i < SUBS; i++) {
		assert_int_equal(subs[i].closed, 0);
		assert_int_equal(subs[i].gaps, 0);
	}
}

#define LENGTHS_TEST(test)                                   \
	static void test##_over(const char *provider);       \
	PLX_TEST_WITH(test##_over_tcp, lengths_up, all_down) \
	{                                                    \
		test##_over("tcp");                          \
	}                                                    \
	PLX_TEST_WITH(test##_over_shm, lengths_up, all_down) \
	{                                                    \
		test##_over("shm");                          \
	}                                                    \
	static void test##_over(const char *provider)

PLX_FIXTURE(lengths_up, 0, netio_up_with("--partial-mem 4G"))

#endif
