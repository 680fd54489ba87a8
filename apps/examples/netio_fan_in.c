/* SPDX-License-Identifier: BSD-3-Clause */
/* A fan-in, as of data acquisition: several sources send numbered fragments, in pages, to one
 * receiver, which sees that none of a source's is missing.
 *
 *     netio_fan_in recv PORT SOURCES            ends when that many sources have gone
 *     netio_fan_in send HOST PORT SOURCE COUNT  SOURCE: a number, which goes as the tag */
#include "netio/netio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAGMENT_BYTES 120

static struct netio_context ctx;

/* Receiving: what is known of a source belongs to its connection. -------------------------------
 */

struct source {
	uint64_t next, missing, bytes;
	netio_tag_t tag;
};

static unsigned sources_left;
static uint64_t missing;

static void on_source(struct netio_recv_socket *socket)
{
	socket->data = calloc(1, sizeof(struct source));
	if (!socket->data)
		netio_recv_socket_close(socket);
	printf("%s connected\n", socket->peer);
	fflush(stdout);
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
	struct source *source = socket->data;

	if (!source)
		return;
	printf("source %llu: %llu fragments, %llu missing, %llu bytes; %s\n",
	       (unsigned long long)source->tag, (unsigned long long)source->next,
	       (unsigned long long)source->missing, (unsigned long long)source->bytes, why);
	missing += source->missing;
	free(source);
	if (--sources_left == 0)
		netio_terminate(&ctx.evloop);
}

static int receive(unsigned port)
{
	static struct netio_listen_socket socket;

	if (netio_listen_socket_init(&ctx.evloop, &socket, NULL) != 0)
		return 1;
	socket.cb_connection_established = on_source;
	socket.cb_connection_closed = on_source_gone;
	socket.cb_msg_received = on_fragment;
	if (netio_listen(&socket, "127.0.0.1", port) != 0)
		return 1;
	printf("listening on %u\n", netio_listen_socket_port(&socket));
	fflush(stdout);
	netio_run(&ctx.evloop);
	return sources_left || missing;
}

/* Sending: until there is no room, and on when there is. ----------------------------------------
 */

static struct {
	struct netio_buffered_send_socket socket;
	netio_tag_t tag;
	uint64_t number, count;
} out;

static void send_fragments(struct netio_buffered_send_socket *socket)
{
	uint64_t fragment[FRAGMENT_BYTES / 8] = {0};
	struct iovec iov = {fragment, sizeof(fragment)};

	for (; out.number < out.count; out.number++) {
		fragment[0] = out.number;
		if (netio_buffered_sendv_tagged(socket, out.tag, &iov, 1) != NETIO_STATUS_OK)
			return; /* AGAIN: this is called again */
	}
	netio_buffered_disconnect(socket); /* which sends what is left */
}

static void on_refused(struct netio_buffered_send_socket *socket, enum plx_link_reason reason,
		       const char *why)
{
	fprintf(stderr, "%s; trying again\n", why);
}

static void on_closed(struct netio_buffered_send_socket *socket, enum plx_link_reason reason,
		      const char *why)
{
	if (out.number < out.count)
		fprintf(stderr, "%s; trying again\n", why);
	else
		netio_terminate(&ctx.evloop);
}

static int send_all(const char *host, unsigned port)
{
	struct netio_buffered_stats stats;

	if (netio_buffered_send_socket_init(&ctx.evloop, &out.socket, NULL) != 0)
		return 1;
	out.socket.cb_connection_established = send_fragments;
	out.socket.cb_buffers_available = send_fragments;
	out.socket.cb_connection_refused = on_refused;
	out.socket.cb_connection_closed = on_closed;
	if (netio_buffered_connect(&out.socket, host, port) != 0)
		return 1;
	netio_run(&ctx.evloop);
	netio_buffered_stats(&out.socket, &stats);
	return out.number < out.count || stats.messages_lost;
}

int main(int argc, char **argv)
{
	bool receives = argc == 4 && strcmp(argv[1], "recv") == 0;
	int status;

	if (!receives && (argc != 6 || strcmp(argv[1], "send") != 0)) {
		fprintf(stderr, "usage: netio_fan_in recv PORT SOURCES\n"
				"       netio_fan_in send HOST PORT SOURCE COUNT\n");
		return 2;
	}
	if (netio_init(&ctx) != 0)
		return 1;
	if (receives) {
		sources_left = (unsigned)strtoul(argv[3], NULL, 10);
		status = receive((unsigned)strtoul(argv[2], NULL, 10));
	} else {
		out.tag = strtoull(argv[4], NULL, 10);
		out.count = strtoull(argv[5], NULL, 10);
		status = send_all(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
	}
	return netio_fini(&ctx) != 0 || status;
}
