/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's link at the service, from HELLO to disconnect. */
#include "rpc_service.h"

#include <stdlib.h>

/* Time for a client to leave a draining service, and how often to look whether it may. */
#define LEAVE_NS (2 * PLX_NS_PER_S)
#define LOOK_NS  (250 * PLX_NS_PER_MS)

/* How long an idle client keeps one of the few places. */
#define IDLE_NS (10 * PLX_NS_PER_S)

static bool has_max_clients(const struct service_local *local)
{
	return counter_get(&local->counts.clients) >= local->service->attr.clients_max;
}

static const char *on_hello(struct plx_acceptor *acceptor, struct plx_link *link)
{
	struct service_local *local = plx_container_of(acceptor, struct service_local, acceptor);
	struct rpc_greeting greeting;
	const char *wrong = rpc_peer_greeting(link, RPC_CLIENT, &greeting);

	if (wrong)
		counter_add(&local->counts.protocol, 1);
	else if (local->ending)
		wrong = "the service ends";
	else if (has_max_clients(local))
		wrong = "the service has as many clients as it takes";
	return wrong;
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct peer *peer = user;

	if (plx_unlikely(!peer || peer->session.failure))
		return;
	turns_receive(peer, message);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct peer *peer = user;

	if (!peer || peer->session.failure)
		return;
	rpc_tx_writable(&peer->tx);
	turns_resume(peer);
}

static void end_link(struct peer *peer, const char *why)
{
	struct service_local *local = peer->local;
	char client[PLX_PEER_BYTES];

	if (peer->session.failure)
		return;
	if (plx_log_allowed(&local->log_limit, plx_loop_now_ns()))
		plx_log(rpc_log, PLX_LOG_WARNING, "client %s: %s; its link ends",
			plx_link_peer_format(peer->session.link, client), why);
	session_link_fail(&peer->session, why);
}

void peer_reject(struct peer *peer, const char *why)
{
	if (!peer->session.failure)
		counter_add(&peer->local->counts.protocol, 1);
	end_link(peer, why);
}

static void close_idle(struct peer *peer)
{
	uint64_t now_ns = plx_loop_now_ns(), end_ns = peer->turn_at_ns + IDLE_NS;

	if (now_ns < end_ns)
		plx_timer_start(&peer->timer, end_ns - now_ns);
	else
		plx_link_close(peer->session.link);
}

/* Since the service owes it nothing more, a client has LEAVE_NS to leave if it has taken its
 * replies. Whatever it does, it has PLX_CLOSE_NS. */
static void look_whether_it_leaves(struct peer *peer)
{
	uint64_t now_ns = plx_loop_now_ns(), passed_ns, left_ns;
	bool takes_replies = !rpc_tx_is_full(&peer->tx);

	if (peer->open_count != peer->gone_count && takes_replies)
		peer->answered_ns = now_ns; /* not yet: the service owes it replies */
	passed_ns = plx_time_since(peer->answered_ns, now_ns);
	left_ns = plx_time_since(passed_ns, PLX_CLOSE_NS);
	if (left_ns == 0) {
		end_link(peer, "it did not take its replies and leave within 5 s, in a drain");
		return;
	}
	if (passed_ns >= LEAVE_NS && takes_replies && !peer->tx.bytes &&
	    STAILQ_EMPTY(&peer->backlog))
		plx_link_close(peer->session.link);
	plx_timer_start(&peer->timer, left_ns < LOOK_NS ? left_ns : LOOK_NS);
}

/* A pause has ended, or the client's time is up: to leave a draining service, or to send a
 * request. */
static void on_timer(struct plx_timer *timer, void *arg)
{
	struct peer *peer = arg;

	peer->paused = false;
	turns_resume(peer);
	if (peer->local->draining)
		look_whether_it_leaves(peer);
	else
		close_idle(peer);
}

static struct session_link *on_create(struct plx_acceptor *acceptor)
{
	struct service_local *local = plx_container_of(acceptor, struct service_local, acceptor);
	struct peer *peer;

	if (local->ending || has_max_clients(local)) /* may have changed since its HELLO */
		return NULL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->local = local;
	STAILQ_INIT(&peer->backlog);
	peer->rest.go_on = turns_go_on;
	plx_timer_init(&peer->timer, on_timer, peer);
	plx_timer_set_lax(&peer->timer, true);
	counter_add(&local->counts.clients, 1);
	return &peer->session;
}

static void on_opened(struct session_link *session)
{
	struct peer *peer = (struct peer *)session;
	struct rpc_greeting greeting = {0};

	rpc_peer_greeting(session->link, RPC_CLIENT, &greeting); /* checked in on_hello */
	rpc_tx_init(&peer->tx, session->link);
	peer->turn = turn_of(session->link);
	peer->identity = greeting.identity;
	peer->reply_max = rpc_payload_max(session->link, greeting.payload_max);
	if (peer->local->service->is_self_test_only)
		plx_timer_start(&peer->timer, IDLE_NS);
	if (peer->local->draining)
		peer_drain(peer);
}

static void on_failed(struct session_link *session)
{
	turns_clear((struct peer *)session);
}

static bool on_ended(struct session_link *session, struct plx_link *link,
		     enum plx_link_reason reason, const char *text)
{
	struct peer *peer = (struct peer *)session;
	const struct service_local *local = peer->local;

	plx_timer_stop(&peer->timer);
	turns_clear(peer);
	open_abandon(peer, reason != PLX_LINK_CLOSED && !local->draining && !local->ending);
	rpc_tx_fini(&peer->tx);
	return true;
}

static void on_free(struct session_link *session)
{
	struct service_local *local = ((struct peer *)session)->local;

	free(session);
	counter_add(&local->counts.clients, -1);
	service_end_if_idle(local);
}

static const struct plx_link_events events = {
	PLX_ACCEPTED_EVENTS,
	.on_message = on_message,
	.on_writable = on_writable,
};

void peer_describe_link(const struct plx_rpc_service *service, struct plx_link_attr *attr)
{
	rpc_describe_link(attr, &events, service->attr.request_max + RPC_KEY_BYTES,
			  (struct rpc_greeting){
				  .role = RPC_SERVER,
				  .open_max = service->attr.open_max,
				  .key_ms = (uint32_t)(service->attr.key_ns / PLX_NS_PER_MS),
				  .payload_max = service->attr.request_max,
				  .identity = service->identity,
			  });
}

const struct plx_acceptor_owner peer_owner = {
	.hello = on_hello,
	.create = on_create,
	.opened = on_opened,
	.base.failed = on_failed,
	.ended = on_ended,
	.free = on_free,
};

/* Notify the client, so that it uses another service and closes the link after its last reply. No
 * request in flight is lost. */
void peer_drain(struct peer *peer)
{
	struct rpc_header header = {.kind = RPC_DRAIN};

	if (!rpc_tx_reserve(&peer->tx, &header)) {
		plx_link_abort(peer->session.link);
		return;
	}
	rpc_tx_flush(&peer->tx);
	peer->answered_ns = plx_loop_now_ns(); /* gives it time to leave */
	if (!peer->paused)
		plx_timer_start(&peer->timer, LOOK_NS);
}
