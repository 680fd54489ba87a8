/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-recv: counts messages from NetIO sockets, buffered or not. A listening socket with
 * callbacks, and the peer of netio-throughput.
 *
 * Try it:  netio-recv --listen 127.0.0.1:12345
 *          netio-throughput --connect 127.0.0.1:12345 */
#include "throughput.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_NS (3 * PLX_NS_PER_S)

static const char *listen_address;
static uint64_t buffer_bytes = 65536;
static uint64_t buffer_count; /* 0: the library's default */
static uint64_t message_max_bytes = 16 << 20;

static const struct plx_option options[] = {
	PLX_ADDRESS("listen", &listen_address,
		    "host:port to listen on; *:port is every address, port 0 a free one",
		    .required = true),
	PLX_SIZE("rx-buf", "SIZE", &buffer_bytes, NETIO_PAGE_BYTES_MIN, NETIO_PAGE_BYTES_MAX,
		 "bytes per receive buffer: the senders' page size (default 64K)"),
	PLX_UINT("rx-bufs", "N", &buffer_count, 2, 200,
		 "receive buffers per connection (default: 2M of them, but 6 to 16)"),
	PLX_SIZE("message-max", "SIZE", &message_max_bytes, 256, 1 << 29,
		 "longest message (default 16M)"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "netio-recv",
	.summary = "Count the messages that NetIO sockets send.",
	.examples = "  netio-recv --listen 127.0.0.1:12345\n"
		    "  netio-recv --listen '*:12345' --rx-buf 1M",
	.more = "man netio-recv, or doc/apps/netio-recv.md",
	.options = options,
};

struct peer {
	struct bench_count count;
	struct netio_msg asked; /* a request that found no room for its answer; tag 0: none */
};

static void on_established(struct netio_recv_socket *socket)
{
	char peer[PLX_PEER_BYTES];

	socket->data = calloc(1, sizeof(struct peer));
	if (!socket->data) {
		netio_recv_socket_close(socket);
		return;
	}
	plx_app_say("%s connected over %s",
		    plx_peer_format(socket->peer, socket->program, socket->pid, peer),
		    socket->provider);
}

static void on_closed(struct netio_recv_socket *socket, enum plx_link_reason reason,
		      const char *why)
{
	struct peer *peer = socket->data;

	if (!peer)
		return;
	plx_app_say("%s gone: %s; %" PRIu64 " messages, %" PRIu64 " bytes", socket->peer, why,
		    peer->count.messages, peer->count.bytes);
	if (peer->asked.tag)
		netio_msg_release(&peer->asked);
	free(peer);
}

static void on_suspect(struct netio_recv_socket *socket, bool suspect)
{
	plx_app_say("%s %s", socket->peer, suspect ? "is silent" : "is heard again");
}

static int answer(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	struct peer *peer = socket->data;

	if (msg->tag == BENCH_TAG_ECHO)
		return netio_reply(socket, msg->data, msg->len);
	peer->count.now_ns = plx_now_ns();
	return netio_reply(socket, &peer->count, sizeof(peer->count));
}

/* A peer waits for the answer before its next request; others are dropped. */
static void asked(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	struct peer *peer = socket->data;

	if (peer->asked.tag || answer(socket, msg) != NETIO_STATUS_AGAIN)
		return;
	peer->asked = *msg;
	netio_msg_keep(msg);
}

static void on_available(struct netio_recv_socket *socket)
{
	struct peer *peer = socket->data;

	if (!peer || !peer->asked.tag || answer(socket, &peer->asked) == NETIO_STATUS_AGAIN)
		return;
	netio_msg_release(&peer->asked);
	peer->asked.tag = 0;
}

static void on_message(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	struct peer *peer = socket->data;

	if (plx_unlikely(!peer))
		return;
	if (plx_unlikely(msg->tag)) {
		asked(socket, msg);
		return;
	}
	peer->count.messages++;
	peer->count.bytes += msg->len;
}

static int serve(void)
{
	struct netio_listen_attr attr = {
		.buffer_bytes = (uint32_t)buffer_bytes,
		.buffer_count = (uint32_t)buffer_count,
		.message_max_bytes = message_max_bytes,
	};
	struct netio_listen_socket socket;
	struct netio_context ctx;
	char host[PLX_ADDRESS_MAX];
	unsigned port;

	if (plx_address_split("--listen", listen_address, host, &port) != 0 ||
	    netio_init(&ctx) != 0 || netio_listen_socket_init(&ctx.evloop, &socket, &attr) != 0)
		return 1;
	socket.cb_connection_established = on_established;
	socket.cb_connection_closed = on_closed;
	socket.cb_connection_suspect = on_suspect;
	socket.cb_msg_received = on_message;
	socket.cb_buffers_available = on_available;
	if (netio_listen(&socket, host, port) != 0)
		return 1;
	plx_app_say("listening on %s:%u", host, netio_listen_socket_port(&socket));
	netio_run(&ctx.evloop);
	netio_drain(&ctx.evloop, DRAIN_NS); /* logs it if it takes longer */
	return netio_fini(&ctx) ? 1 : 0;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	return status == PLX_APP_RUN ? plx_app_finish(&app, serve()) : status;
}
