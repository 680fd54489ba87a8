/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions per message of NetIO's sockets and of calls: socket_budget_test.sh.
 *
 *     socket_budget unbuffered|buffered|publish|call MESSAGES
 *
 * One lcore has both ends, so nothing waits: it sends a batch, and turns its loop until all of it
 * has arrived. A profiler counts send_and_receive. The provider is of NETIO_OPTIONS. */
#include "netio/netio.h"
#include "plx_lcore.h"
#include "plx_rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE       64 /* bytes per message */
#define PAGE_BATCH 32 /* messages that share a page */
#define WARM_UP    2000
#define ECHO       1 /* the method */
#define TAG        7
#define LIMIT_NS   (10 * PLX_NS_PER_S)

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

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "socket_budget: %s: %s\n", what, plx_error());
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

static unsigned listen_for_messages(void)
{
	if (netio_listen_socket_init(&ctx.evloop, &listening, NULL) != 0)
		fail("listen");
	listening.cb_msg_received = on_message;
	if (netio_listen(&listening, "127.0.0.78", 0) != 0)
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
	return netio_connect(&unbuffered, "127.0.0.78", listen_for_messages());
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
	return netio_buffered_connect(&buffered, "127.0.0.78", listen_for_messages());
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
	if (netio_publish_listen(&publishing, "127.0.0.78", 0) != 0 ||
	    netio_subscribe_socket_init(&ctx.evloop, &subscribing, NULL) != 0)
		fail("publish socket");
	subscribing.cb_msg_received = on_published;
	return netio_subscribe(&subscribing, "127.0.0.78", netio_publish_socket_port(&publishing),
			       TAG);
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
	    plx_rpc_service_listen(service, "127.0.0.78:0", NULL) != 0)
		fail("service");
	addresses[0] = plx_rpc_service_address(service, 0);
	if (plx_rpc_client_create(addresses, NULL, &client) != 0)
		fail("client");
	return send_call();
}

static const struct part {
	const char *name;
	int (*open)(void);
	int (*send)(void);
	unsigned batch;
} parts[] = {
	{"unbuffered", open_unbuffered, send_unbuffered, 1},
	{"buffered", open_buffered, send_buffered, PAGE_BATCH},
	{"publish", open_publish, send_publish, PAGE_BATCH},
	{"call", open_call, send_call, 1},
};

/* Return: turns of the loop in which nothing arrived. */
static uint64_t run(const struct part *part, uint64_t messages)
{
	uint64_t empty = 0;

	for (uint64_t i = 0, before; i < messages; i += part->batch) {
		uint64_t expected = received + part->batch;

		if (part->send() != 0)
			fail(part->name);
		while (received < expected) {
			before = received;
			plx_loop_turn();
			empty += received == before;
		}
	}
	return empty;
}

uint64_t send_and_receive(const struct part *part, uint64_t messages);

__attribute__((noinline, used)) uint64_t send_and_receive(const struct part *part,
							  uint64_t messages)
{
	return run(part, messages);
}

int main(int argc, char **argv)
{
	uint64_t messages = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;

	for (size_t i = 0; messages && i < PLX_ARRAY_LEN(parts); i++) {
		if (strcmp(argv[1], parts[i].name) != 0)
			continue;
		if (netio_init(&ctx) != 0 || parts[i].open() != 0)
			fail("start");
		if (plx_loop_until(is_ready, NULL, LIMIT_NS) != 0)
			fail("connect");
		run(&parts[i], WARM_UP);
		printf("empty %llu\n", (unsigned long long)send_and_receive(&parts[i], messages));
		return 0;
	}
	fprintf(stderr, "usage: socket_budget unbuffered|buffered|publish|call MESSAGES\n");
	return 2;
}
