/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends numbered fragments, many in a page, as fast as the receiver takes them. It reconnects if
 * the connection ends.
 * Run it:  netio_send 127.0.0.1 12345 1 100000      SOURCE 1, 100000 fragments; see netio_recv */
#include "netio/netio.h"
#include <stdio.h>

#define FRAGMENT_BYTES 120

struct sender {
	struct netio_context ctx;
	struct netio_buffered_send_socket socket;
	netio_tag_t source;
	uint64_t next, count;
};

/* Called when the connection is established, and after AGAIN when there is room again. */
static void send_fragments(struct netio_buffered_send_socket *socket)
{
	struct sender *sender = socket->data;
	uint64_t fragment[FRAGMENT_BYTES / 8] = {0};
	struct iovec iov = {fragment, sizeof(fragment)};

	for (; sender->next < sender->count; sender->next++) {
		fragment[0] = sender->next;
		if (netio_buffered_sendv_tagged(socket, sender->source, &iov, 1) != NETIO_STATUS_OK)
			return;
	}
	netio_buffered_disconnect(socket); /* sends what is left, and then closes */
}

static void on_closed(struct netio_buffered_send_socket *socket, enum plx_link_reason reason,
		      const char *why)
{
	struct sender *sender = socket->data;

	if (sender->next < sender->count)
		fprintf(stderr, "%s; trying again\n", why);
	else
		netio_terminate(&sender->ctx.evloop);
}

int main(int argc, char **argv)
{
	static struct sender sender;
	struct netio_buffered_stats stats;
	uint64_t port;
	int rc;

	if (argc != 5 || plx_parse_uint("PORT", argv[2], 1, 65535, &port) != 0 ||
	    plx_parse_uint("SOURCE", argv[3], 0, 0, &sender.source) != 0 ||
	    plx_parse_uint("COUNT", argv[4], 1, 0, &sender.count) != 0) {
		fprintf(stderr, "usage: netio_send HOST PORT SOURCE COUNT\n");
		return 2;
	}
	if (netio_init(&sender.ctx) != 0 ||
	    netio_buffered_send_socket_init(&sender.ctx.evloop, &sender.socket, NULL) != 0)
		return 1; /* NetIO logs what fails to standard error */
	sender.socket.data = &sender;
	sender.socket.cb_connection_established = send_fragments;
	sender.socket.cb_buffers_available = send_fragments;
	sender.socket.cb_connection_closed = on_closed;
	if (netio_buffered_connect(&sender.socket, argv[1], (unsigned)port) != 0)
		return 1;
	rc = netio_run(&sender.ctx.evloop);
	netio_buffered_stats_read(&sender.socket, &stats);
	printf("%llu fragments sent, %llu lost\n", (unsigned long long)stats.messages,
	       (unsigned long long)stats.messages_lost);
	if (netio_fini(&sender.ctx) != 0)
		rc = -1;
	return rc != 0 || sender.next < sender.count || stats.messages_lost;
}
