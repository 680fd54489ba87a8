/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-cat recv: messages that come to a listening socket, and reports about connections. */
#include "cat.h"

static struct netio_listen_socket receiver;

static void on_established(struct netio_recv_socket *socket)
{
	char peer[PLX_PEER_BYTES];

	cat_tell("%s connected over %s",
		 plx_peer_format(socket->peer, socket->program, socket->pid, peer),
		 socket->provider);
}

static void on_closed(struct netio_recv_socket *socket, enum plx_link_reason reason,
		      const char *why)
{
	cat_tell("%s gone: %s", socket->peer, why);
}

static void on_suspect(struct netio_recv_socket *socket, bool suspect)
{
	cat_tell_suspect(socket->peer, suspect);
}

static void on_received(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	cat_output_message(msg, NULL);
}

int cat_recv_start(struct netio_eventloop *evloop)
{
	if (netio_listen_socket_init(evloop, &receiver, NULL) != 0 || cat_output_start() != 0 ||
	    cat_stats_start(evloop) != 0)
		return -1;
	receiver.cb_connection_established = on_established;
	receiver.cb_connection_closed = on_closed;
	receiver.cb_connection_suspect = on_suspect;
	receiver.cb_msg_received = on_received;
	if (netio_listen(&receiver, cat_conf.addresses->host, cat_conf.addresses->port) != 0)
		return -1;
	cat_tell("listening on %s:%u", cat_conf.addresses->host,
		 netio_listen_socket_port(&receiver));
	return 0;
}
