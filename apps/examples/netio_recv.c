/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives numbered fragments from several senders, and checks that no fragment is missing.
 * Run it:  netio_recv 12345 2      ends after two senders have disconnected; see netio_send
 * EAL options are in the environment: NETIO_OPTIONS='-l 2' netio_recv ... */
#include "netio/netio.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct receiver {
	struct netio_context ctx;
	struct netio_listen_socket socket;
	uint64_t sources_left, missing;
};

/* State of one sender, kept with its connection. */
struct source {
	uint64_t next, missing, bytes;
	netio_tag_t tag;
};

static void on_source(struct netio_recv_socket *socket)
{
	socket->data = calloc(1, sizeof(struct source));
	if (!socket->data)
		netio_recv_socket_close(socket);
	printf("%s connected\n", socket->peer);
}

static void on_fragment(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	struct source *source = socket->data;
	uint64_t number;

	if (!source || msg->len < sizeof(number))
		return;
	memcpy(&number, msg->data, sizeof(number));
	source->missing += number - source->next;
	source->next = number + 1;
	source->bytes += msg->len;
	source->tag = msg->tag;
}

static void on_source_gone(struct netio_recv_socket *socket, enum plx_link_reason reason,
			   const char *why)
{
	struct receiver *receiver = socket->listen_socket->data;
	struct source *source = socket->data;

	if (!source)
		return;
	printf("source %llu: %llu fragments, %llu missing, %llu bytes; %s\n",
	       (unsigned long long)source->tag, (unsigned long long)source->next,
	       (unsigned long long)source->missing, (unsigned long long)source->bytes, why);
	receiver->missing += source->missing;
	free(source);
	if (--receiver->sources_left == 0)
		netio_terminate(&receiver->ctx.evloop);
}

int main(int argc, char **argv)
{
	static struct receiver receiver;
	uint64_t port;
	int rc;

	if (argc != 3 || plx_parse_uint("PORT", argv[1], 0, 65535, &port) != 0 ||
	    plx_parse_uint("SOURCES", argv[2], 1, 0, &receiver.sources_left) != 0) {
		fprintf(stderr, "usage: netio_recv PORT SOURCES\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (netio_init(&receiver.ctx) != 0 ||
	    netio_listen_socket_init(&receiver.ctx.evloop, &receiver.socket, NULL) != 0)
		return 1; /* NetIO logs what fails to standard error */
	receiver.socket.data = &receiver;
	receiver.socket.cb_connection_established = on_source;
	receiver.socket.cb_connection_closed = on_source_gone;
	receiver.socket.cb_msg_received = on_fragment;
	if (netio_listen(&receiver.socket, "127.0.0.1", (unsigned)port) != 0)
		return 1;
	printf("listening on 127.0.0.1:%u\n", netio_listen_socket_port(&receiver.socket));
	rc = netio_run(&receiver.ctx.evloop);
	return netio_fini(&receiver.ctx) != 0 || rc != 0 || receiver.sources_left ||
	       receiver.missing;
}
