/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-ping --listen: answers messages or, with --sink, drops them, and counts both. */
#include "ping.h"

#include <inttypes.h>
#include <stdlib.h>

#define COPY_MAX 64 /* longer ones are answered from their receive buffer */

/* Counts of one lcore; no other lcore writes them. */
struct counts {
	uint64_t links, messages, bytes;
};

/* Messages to answer, oldest first, starting at `answered`. Each stays in its receive buffer, so a
 * peer that takes no answers can send no more. */
struct peer {
	struct plx_buf *waiting[PING_WINDOW];
	unsigned received, answered;
	struct counts *counts;
};

static struct plx_lcore_var counts_var;

static int answer(struct plx_link *link, struct plx_buf *message)
{
	if (message->len <= COPY_MAX)
		return plx_link_send(link, message->data, message->len);

	int rc = plx_link_send_buf(link, plx_buf_ref(message), NULL, NULL);

	if (rc != 0)
		plx_buf_unref(message);
	return rc;
}

/* If the link is already closing, on_close reports it. */
static void give_up(struct plx_link *link, int rc)
{
	if (rc == -ENOTCONN)
		return;
	plx_app_say("an answer: %s", plx_error());
	plx_link_abort(link);
}

static void count(struct peer *peer, const struct plx_buf *message)
{
	peer->counts->messages++;
	peer->counts->bytes += message->len;
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct peer *peer = user;
	int rc = peer->received != peer->answered ? -EAGAIN : answer(link, message);

	count(peer, message);
	if (rc == -EAGAIN)
		peer->waiting[peer->received++ % PING_WINDOW] = plx_buf_ref(message);
	else if (rc != 0)
		give_up(link, rc);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct peer *peer = user;

	while (peer->answered != peer->received) {
		struct plx_buf *message = peer->waiting[peer->answered % PING_WINDOW];
		int rc = answer(link, message);

		if (rc == -EAGAIN)
			return;
		if (rc != 0)
			give_up(link, rc);
		plx_buf_unref(message);
		peer->answered++;
	}
}

static void on_dropped_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	count(user, message);
}

static void on_open(struct plx_link *link, void *user)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	char name[PLX_PEER_BYTES];

	plx_link_set_user(link, peer);
	if (!peer) {
		plx_link_abort(link);
		return;
	}
	peer->counts = plx_lcore_var_mine(counts_var);
	peer->counts->links++;
	plx_app_say("%s connected over %s", plx_link_peer_format(link, name),
		    plx_link_provider(link));
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct plx_link_stats stats;
	struct peer *peer = user;

	plx_link_stats_read(link, &stats);
	plx_app_say("%s gone: %s; %" PRIu64 " messages, %" PRIu64 " bytes", plx_link_peer(link),
		    plx_link_without_peer(link, text), stats.messages_received,
		    stats.bytes_received);
	while (peer && peer->answered != peer->received)
		plx_buf_unref(peer->waiting[peer->answered++ % PING_WINDOW]);
	free(peer);
}

static void report(void)
{
	PLX_LCORE_FOREACH (id) {
		const struct counts *of = plx_lcore_var_of(counts_var, id);

		plx_app_say("lcore %" PRIu32 ": %" PRIu64 " links, %" PRIu64 " messages, %" PRIu64
			    " bytes",
			    id, of->links, of->messages, of->bytes);
		plx_app_say_idle(id);
	}
}

int ping_serve(const struct ping_conf *conf)
{
	static const struct plx_link_events echo = {.on_open = on_open,
						    .on_message = on_message,
						    .on_writable = on_writable,
						    .on_close = on_close};
	static const struct plx_link_events sink = {
		.on_open = on_open, .on_message = on_dropped_message, .on_close = on_close};
	const struct plx_listen_attr attr = {
		.link = {.events = conf->sink ? &sink : &echo,
			 .rx_buf_bytes = ping_rx_buf_bytes(conf),
			 .rx_buf_count = ping_rx_buf_count(conf),
			 .protocol = PLX_PROTOCOL_ECHO},
		.spread = (enum plx_spread)conf->spread,
	};
	struct plx_listener *listener;

	if (plx_lcore_var_create(sizeof(struct counts), 0, &counts_var) != 0 ||
	    plx_link_listen(conf->listen, &attr, &listener) != 0)
		return plx_app_fail(&ping_app);
	plx_app_say("listening on %s", plx_listener_address(listener));
	if (conf->spread == PLX_SPREAD_NONE)
		plx_loop_run();
	else
		plx_app_serve();
	report();
	return 0;
}
