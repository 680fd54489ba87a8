/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's link at the service, from its greeting to its end. */
#include "service.h"

#include <inttypes.h>
#include <stdlib.h>

/* For a greeting, as long as links give each other for theirs; and for a client to leave. */
#define PATIENCE_NS (2 * PLX_NS_PER_S)

/* How long one of few places is kept for a client that asks for nothing. */
#define IDLE_NS (10 * PLX_NS_PER_S)

/* By one of the rules. */
static void throw_out(struct peer *peer)
{
	peer->thrown_out = true;
	rpc_add(&peer->here->counts.protocol, 1);
	plx_link_abort(peer->link);
	turns_drop(peer);
}

/* Greetings ------------------------------------------------------------------------------------ */

/* open_max 0: it is turned away. */
static void greet(struct plx_link *link, const struct plx_rpc_service *service, uint32_t open_max)
{
	uint8_t greeting[RPC_GREETING_BYTES];

	rpc_greeting_write(greeting,
			   &(struct rpc_greeting){
				   .version_min = RPC_VERSION_MIN,
				   .version_max = RPC_VERSION_MAX,
				   .role = RPC_SERVER,
				   .open_max = open_max,
				   .key_ms = (uint32_t)(service->attr.key_ns / PLX_NS_PER_MS),
				   .payload_max = service->attr.request_max,
				   .identity = service->identity,
			   });
	if (plx_link_send(link, greeting, sizeof(greeting)) != 0)
		plx_link_abort(link); /* nothing was sent before it: there is room */
}

/* message: what came instead; NULL: nothing did. */
static void not_greeted(struct peer *peer, const char *why, const struct plx_buf *message)
{
	plx_link_no_handshake(peer->link, why, message ? message->data : NULL,
			      message ? message->len : 0);
	throw_out(peer);
}

static void be_greeted(struct peer *peer, const struct plx_buf *message)
{
	struct rpc_greeting greeting;
	const char *wrong = rpc_greeting_read(message->data, message->len, RPC_CLIENT, &greeting);

	if (wrong) {
		not_greeted(peer, wrong, message);
		return;
	}
	peer->greeted = true;
	peer->is_same_host = plx_link_is_same_host(peer->link);
	peer->identity = greeting.identity;
	peer->reply_max = rpc_payload_max(peer->link, greeting.payload_max);
	plx_timer_stop(&peer->timer);
	if (peer->here->service->is_guest)
		plx_timer_start(&peer->timer, IDLE_NS);
	if (peer->here->draining)
		peer_drain(peer);
}

/* The link ------------------------------------------------------------------------------------- */

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct peer *peer = user;

	if (plx_unlikely(!peer || peer->thrown_out))
		return;
	if (plx_unlikely(!peer->greeted)) {
		be_greeted(peer, message);
		return;
	}
	turns_take(peer, message);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct peer *peer = user;

	if (!peer || peer->thrown_out)
		return;
	rpc_out_writable(&peer->out);
	turns_go_on(peer);
}

static void on_timer(struct plx_timer *timer, void *arg);

/* Return: 0; -ENOMEM. */
static int join(struct peer *peer, struct service_here *here, struct plx_link *link)
{
	if (rpc_out_init(&peer->out, link) != 0)
		return -ENOMEM;
	peer->here = here;
	peer->link = link;
	peer->backlog_end = &peer->backlog;
	peer->open.multiplier = here->service->multiplier;
	plx_task_init(&peer->serve, turns_serve, peer);
	plx_timer_init(&peer->timer, on_timer, peer);
	plx_timer_set_lax(&peer->timer, true);
	plx_timer_start(&peer->timer, PATIENCE_NS);
	peer->next = here->peers;
	peer->prev_next = &here->peers;
	if (peer->next)
		peer->next->prev_next = &peer->next;
	here->peers = peer;
	rpc_add(&here->counts.clients, 1);
	return 0;
}

static bool is_crowded(const struct service_here *here)
{
	uint32_t most = here->service->attr.clients_max;

	return most && plx_atomic_load(&here->counts.clients, PLX_RELAXED) >= most;
}

/* It hears why, and the link ends with what was sent. */
static void turn_away(struct service_here *here, struct plx_link *link)
{
	if (plx_log_allowed(&here->log_limit, plx_loop_now_ns()))
		plx_log(&rpc_log, PLX_LOG_NOTICE,
			"client %s is turned away: there are %" PRIu32 " on lcore %" PRIu32
			", as many as may be",
			plx_link_peer(link), here->service->attr.clients_max, here->lcore);
	plx_link_set_user(link, NULL);
	greet(link, here->service, 0);
	plx_link_close(link);
}

static void on_open(struct plx_link *link, void *user)
{
	struct service_here *here = service_find_here((uintptr_t)user);
	struct peer *peer;

	if (here && !here->ending && is_crowded(here)) {
		turn_away(here, link);
		return;
	}
	peer = here && !here->ending ? calloc(1, sizeof(*peer)) : NULL;
	if (!peer || join(peer, here, link) != 0) {
		free(peer);
		plx_link_set_user(link, NULL);
		plx_link_abort(link);
		return;
	}
	plx_link_set_user(link, peer);
	greet(link, here->service, here->service->attr.open_max);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct peer *peer = user;
	struct service_here *here;

	if (!peer)
		return;
	here = peer->here;
	if (!peer->greeted && !peer->thrown_out && !here->ending && reason != PLX_LINK_ABORTED)
		plx_link_no_handshake(link, "it went away before it greeted", NULL, 0);
	peer->link = NULL;
	plx_timer_stop(&peer->timer);
	turns_drop(peer);
	open_all_gone(peer, reason != PLX_LINK_CLOSED && !here->draining && !here->ending);
	rpc_out_fini(&peer->out);
	*peer->prev_next = peer->next;
	if (peer->next)
		peer->next->prev_next = peer->prev_next;
	free(peer);
	rpc_add(&here->counts.clients, (uint64_t)-1);
	if (here->ending)
		service_peer_left(here);
}

const struct plx_link_events peer_events = {
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_close = on_close,
};

void peer_throw_out(struct peer *peer, const char *why)
{
	struct service_here *here = peer->here;

	if (peer->thrown_out)
		return;
	if (plx_log_allowed(&here->log_limit, plx_loop_now_ns()))
		plx_log(&rpc_log, PLX_LOG_WARNING, "client %s: %s; its link ends",
			plx_link_peer(peer->link), why);
	throw_out(peer);
}

/* Whether it waits for nothing, and has been told all. */
static bool has_nothing_open(const struct peer *peer)
{
	return peer->open.count == peer->open.gone && !peer->backlog && !peer->out.bytes &&
	       !rpc_out_is_full(&peer->out);
}

static void look_at_leaving(struct peer *peer)
{
	uint64_t now_ns = plx_loop_now_ns(), end_ns = peer->answered_ns + PATIENCE_NS;

	if (!has_nothing_open(peer))
		plx_timer_start(&peer->timer, PATIENCE_NS);
	else if (now_ns < end_ns)
		plx_timer_start(&peer->timer, end_ns - now_ns);
	else
		plx_link_close(peer->link);
}

static void look_at_idling(struct peer *peer)
{
	uint64_t now_ns = plx_loop_now_ns(), end_ns = peer->arrived_ns + IDLE_NS;

	if (now_ns < end_ns)
		plx_timer_start(&peer->timer, end_ns - now_ns);
	else
		plx_link_close(peer->link);
}

static void end_pause(struct peer *peer)
{
	peer->paused = false;
	plx_timer_start(&peer->timer, peer->here->draining ? PATIENCE_NS : IDLE_NS);
	turns_go_on(peer);
}

/* It has had its time: to greet, to wait, to leave a service that drains, or to want anything. */
static void on_timer(struct plx_timer *timer, void *arg)
{
	struct peer *peer = arg;

	if (!peer->greeted)
		not_greeted(peer, "it did not greet", NULL);
	else if (peer->paused)
		end_pause(peer);
	else if (peer->here->draining)
		look_at_leaving(peer);
	else
		look_at_idling(peer);
}

/* A client that knows goes elsewhere, and closes the link when it has its answers: so nothing that
 * is on its way is lost. */
void peer_drain(struct peer *peer)
{
	struct rpc_header header = {.kind = RPC_DRAIN};

	if (!peer->greeted) {
		plx_link_abort(peer->link);
		return;
	}
	if (!rpc_out_claim(&peer->out, &header)) {
		plx_link_abort(peer->link);
		return;
	}
	rpc_out_flush(&peer->out);
	peer->answered_ns = plx_loop_now_ns(); /* it has had no time to leave yet */
	if (!peer->paused)
		plx_timer_start(&peer->timer, PATIENCE_NS);
}
