/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions per message of links, of NetIO's sockets, and of calls, and of an idle turn, as
 * callgrind counts them.
 *
 *     valgrind --tool=callgrind --instr-atstart=no instructions PROVIDER raw|link|...  MESSAGES
 *
 * One lcore has both ends, so nothing waits: it sends a batch, and turns its loop until all of it
 * has arrived. Only measured messages are counted. scripts/bench.sh --only instructions runs it. */
#include "instructions.h"
#include "floating.h"

#include "netio/netio.h"
#include "plx_fabric.h"
#include "plx_lcore.h"
#include "plx_rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

#define PAGE_BATCH 32 /* messages that share a page */
#define WARM_UP    2000
#define ECHO       1 /* the method */
#define TAG        7

static struct netio_context ctx;
static struct netio_listen_socket listening;
static struct netio_send_socket unbuffered;
static struct netio_buffered_send_socket buffered;
static struct netio_publish_socket publishing;
static struct netio_subscribe_socket subscribing;
static struct plx_rpc_client *client;
static uint64_t received;
static bool ready;
static uint8_t message[SIZE];
static const struct iovec iov = {message, SIZE};

void fail(const char *what)
{
	fprintf(stderr, "instructions: %s: %s\n", what, plx_error());
	exit(1);
}

static bool is_ready(void *unused)
{
	return ready;
}

static void on_message(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	received++;
}

/* Links: each message is returned by its receiver ------------------------------------------ */

static void on_link_message(struct plx_link *link, struct plx_buf *buf, void *user)
{
	received++;
	if (plx_unlikely(plx_link_send(link, buf->data, buf->len) != 0))
		fail("send");
}

static void on_open(struct plx_link *link, void *user)
{
	ready = user == &ready;
	if (ready && plx_link_send(link, message, SIZE) != 0)
		fail("send");
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	plx_fail(EIO, "%s", text);
	fail("a link ended");
}

static int open_link(void)
{
	static const struct plx_link_events events = {
		.on_open = on_open, .on_message = on_link_message, .on_close = on_close};
	struct plx_listen_attr listen = {.link = {.events = &events}};
	struct plx_link_attr attr = {.events = &events, .user = &ready};
	struct plx_listener *listener;
	struct plx_link *link;

	return plx_link_listen(ADDRESS ":0", &listen, &listener)
		     ?: plx_link_connect(plx_listener_address(listener), &attr, &link);
}

static int send_nothing(void)
{
	return 0;
}

/* NetIO's sockets and calls ---------------------------------------------------------------- */

static unsigned listen_for_messages(void)
{
	if (netio_listen_socket_init(&ctx.evloop, &listening, NULL) != 0)
		fail("listen");
	listening.cb_msg_received = on_message;
	if (netio_listen(&listening, ADDRESS, 0) != 0)
		fail("listen");
	return netio_listen_socket_port(&listening);
}

static void on_connected(struct netio_send_socket *socket)
{
	ready = true;
}

static int open_unbuffered(void)
{
	if (netio_send_socket_init(&ctx.evloop, &unbuffered, NULL) != 0)
		fail("send socket");
	unbuffered.cb_connection_established = on_connected;
	return netio_connect(&unbuffered, ADDRESS, listen_for_messages());
}

static int send_unbuffered(void)
{
	return netio_send(&unbuffered, message, SIZE);
}

static void on_buffered_connected(struct netio_buffered_send_socket *socket)
{
	ready = true;
}

static int open_buffered(void)
{
	if (netio_buffered_send_socket_init(&ctx.evloop, &buffered, NULL) != 0)
		fail("buffered send socket");
	buffered.cb_connection_established = on_buffered_connected;
	return netio_buffered_connect(&buffered, ADDRESS, listen_for_messages());
}

static int send_buffered(void)
{
	int rc = 0;

	for (unsigned i = 0; i < PAGE_BATCH && rc == 0; i++)
		rc = netio_buffered_sendv_tagged(&buffered, 0, &iov, 1);
	netio_buffered_flush(&buffered);
	return rc;
}

static void on_published(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	received++;
}

static void on_subscribed(struct netio_subscriber *subscriber,
			  const struct netio_subscription *what)
{
	ready = true;
}

static int open_publish(void)
{
	if (netio_publish_socket_init(&ctx.evloop, &publishing, NULL) != 0)
		fail("publish socket");
	publishing.cb_subscribed = on_subscribed;
	if (netio_publish_listen(&publishing, ADDRESS, 0) != 0 ||
	    netio_subscribe_socket_init(&ctx.evloop, &subscribing, NULL) != 0)
		fail("publish socket");
	subscribing.cb_msg_received = on_published;
	return netio_subscribe(&subscribing, ADDRESS, netio_publish_socket_port(&publishing), TAG);
}

static int send_publish(void)
{
	int rc = 0;

	for (unsigned i = 0; i < PAGE_BATCH && rc == 0; i++)
		rc = netio_buffered_publish(&publishing, TAG, message, SIZE, 0, NULL);
	netio_buffered_publish_flush(&publishing);
	return rc;
}

static void on_echo(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	plx_rpc_reply(request, data, length);
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	received += result->status == PLX_RPC_OK;
	ready = true;
}

static int send_call(void)
{
	static const struct plx_rpc_call call = {.method = ECHO, .done = on_done};

	return plx_rpc_call_start(client, &call, message, SIZE, NULL);
}

static int open_call(void)
{
	static const struct plx_rpc_service_attr attr = {.open_max = UINT32_MAX,
							 .open_total = UINT32_MAX};
	static const struct plx_rpc_method echo = {.id = ECHO, .name = "echo", .handler = on_echo};
	const char *addresses[] = {NULL, NULL};
	struct plx_rpc_service *service;

	if (plx_rpc_service_create(&attr, &service) != 0 ||
	    plx_rpc_service_add(service, &echo) != 0 ||
	    plx_rpc_service_listen(service, ADDRESS ":0", NULL) != 0)
		fail("service");
	addresses[0] = plx_rpc_service_address(service, 0);
	if (plx_rpc_client_create(addresses, NULL, &client) != 0)
		fail("client");
	return send_call();
}

/* An idle turn of one lcore among LCORES, each of which has already sent it a message: its cost
 * does not depend on their number
 * -------------------------------------------------------------------- */

#define LCORES "0-63"

static void nothing(void *arg)
{
}

static int send_one(void *arg)
{
	return plx_lcore_send(plx_lcore_main(), nothing, NULL);
}

static int open_idle(void)
{
	PLX_LCORE_FOREACH_WORKER (id) {
		int result = 0;

		if (plx_lcore_launch(id, send_one, NULL) != 0 ||
		    plx_lcore_join(id, PLX_NEVER, &result) != 0 || result)
			fail("a message from each lcore");
	}
	ready = true;
	return 0;
}

static int turn(void)
{
	plx_loop_turn();
	received++;
	return 0;
}

static const struct part {
	const char *name;
	int (*open)(void);
	int (*send)(void);
	unsigned batch;
} parts[] = {
	{"link", open_link, send_nothing, 1},
	{"unbuffered", open_unbuffered, send_unbuffered, 1},
	{"buffered", open_buffered, send_buffered, PAGE_BATCH},
	{"publish", open_publish, send_publish, PAGE_BATCH},
	{"call", open_call, send_call, 1},
	{"idle", open_idle, turn, 1},
};

static void run(const struct part *part, uint64_t messages)
{
	for (uint64_t i = 0; i < messages; i += part->batch) {
		uint64_t expected = received + part->batch;

		if (part->send() != 0)
			fail(part->name);
		while (received < expected)
			plx_loop_turn();
	}
}

static void count_part(const struct part *part, uint64_t messages)
{
	if (netio_init(&ctx) != 0 || part->open() != 0)
		fail("start");
	if (plx_loop_until(is_ready, NULL, CONNECT_NS) != 0)
		fail("connect");
	run(part, WARM_UP);
	CALLGRIND_START_INSTRUMENTATION;
	run(part, messages);
	CALLGRIND_STOP_INSTRUMENTATION;
}

static void count_raw(const char *provider, uint64_t messages)
{
	raw_open(provider);
	raw_run(WARM_UP);
	CALLGRIND_START_INSTRUMENTATION;
	raw_run(messages);
	CALLGRIND_STOP_INSTRUMENTATION;
}

int main(int argc, char **argv)
{
	uint64_t messages = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
	bool is_idle = argc == 4 && strcmp(argv[2], "idle") == 0;
	char settings[128 + FLOATING_BYTES], lcores[FLOATING_BYTES];

	/* --turn-time: callgrind runs 50 times slower. */
	snprintf(settings, sizeof(settings),
		 "--idle poll --turn-time 1s --huge none --provider %s %s%s",
		 argc > 1 ? argv[1] : "", is_idle ? "-l " : "",
		 is_idle ? floating(LCORES, lcores) : "");
	setenv("NETIO_OPTIONS", settings, true);
	if (messages && strcmp(argv[2], "raw") == 0) {
		count_raw(argv[1], messages);
		return 0;
	}
	for (size_t i = 0; messages && i < PLX_ARRAY_LEN(parts); i++) {
		if (strcmp(argv[2], parts[i].name) == 0) {
			count_part(&parts[i], messages);
			return 0;
		}
	}
	fprintf(stderr,
		"usage: instructions PROVIDER raw|link|unbuffered|buffered|publish|call|idle "
		"MESSAGES\n");
	return 2;
}
