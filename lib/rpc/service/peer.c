/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's link at the service, from HELLO to disconnect. */
#include "rpc_service.h"

#include <stdlib.h>

/* Time for a client to leave. */
#define LEAVE_NS (2 * PLX_NS_PER_S)

/* How long an idle client keeps one of the few places. */
#define IDLE_NS (10 * PLX_NS_PER_S)

static struct service_local *local_of(struct plx_acceptor *acceptor)
{
	return plx_container_of(acceptor, struct service_local, acceptor);
}

static struct peer *peer_of(struct plx_accepted *session)
{
	return (struct peer *)session;
}

static bool has_max_clients(const struct service_local *local)
{
	uint32_t most = local->service->attr.clients_max;

	return most && counter_get(&local->counts.clients) >= most;
}

static const char *on_hello(struct plx_acceptor *acceptor, struct plx_link *link,
			    const uint8_t *hello, uint32_t length)
{
	struct service_local *local = local_of(acceptor);
	struct rpc_greeting greeting;
	const char *wrong = rpc_greeting_read(hello, length, RPC_CLIENT, &greeting);

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

static void close_at(struct peer *peer, uint64_t end_ns)
{
	uint64_t now_ns = plx_loop_now_ns();

	if (now_ns < end_ns)
		plx_timer_start(&peer->timer, end_ns - now_ns);
	else
		plx_link_close(peer->session.link);
}

/* A pause has ended, or the client's time is up: to leave a draining service, or to send a
 * request. */
static void on_timer(struct plx_timer *timer, void *arg)
{
	struct peer *peer = arg;
	bool draining = peer->local->draining;
	bool waits_for_replies = peer->open.count != peer->open.gone ||
				 !STAILQ_EMPTY(&peer->backlog) || peer->tx.bytes ||
				 rpc_tx_is_full(&peer->tx);

	if (peer->paused) {
		peer->paused = false;
		plx_timer_start(&peer->timer, draining ? LEAVE_NS : IDLE_NS);
		turns_resume(peer);
	} else if (!draining) {
		close_at(peer, peer->arrived_ns + IDLE_NS);
	} else if (waits_for_replies) {
		plx_timer_start(&peer->timer, LEAVE_NS);
	} else {
		close_at(peer, peer->answered_ns + LEAVE_NS);
	}
}

static struct plx_accepted *on_create(struct plx_acceptor *acceptor)
{
	struct service_local *local = local_of(acceptor);
	struct peer *peer;

	if (local->ending || has_max_clients(local)) /* may have changed since its HELLO */
		return NULL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->local = local;
	STAILQ_INIT(&peer->backlog);
	peer->open.multiplier = local->service->multiplier;
	plx_task_init(&peer->serve, turns_serve, peer);
	plx_timer_init(&peer->timer, on_timer, peer);
	plx_timer_set_lax(&peer->timer, true);
	counter_add(&local->counts.clients, 1);
	return &peer->session;
}

static void on_opened(struct plx_accepted *session)
{
	struct peer *peer = peer_of(session);
	struct rpc_greeting greeting = rpc_peer_greeting(session->link, RPC_CLIENT);

	if (rpc_tx_init(&peer->tx, session->link) != 0) {
		plx_accepted_fail(session, "out of memory");
		return;
	}
	peer->is_same_host = plx_link_is_same_host(session->link);
	peer->identity = greeting.identity;
	peer->reply_max = rpc_payload_max(session->link, greeting.payload_max);
	if (peer->local->service->is_self_test_only)
		plx_timer_start(&peer->timer, IDLE_NS);
	if (peer->local->draining)
		peer_drain(peer);
}

static void on_failed(struct plx_accepted *session)
{
	turns_clear(peer_of(session));
}

static bool on_ended(struct plx_accepted *session, struct plx_link *link,
		     enum plx_link_reason reason, const char *text)
{
	struct peer *peer = peer_of(session);
	const struct service_local *local = peer->local;

	plx_timer_stop(&peer->timer);
	turns_clear(peer);
	open_abandon(peer, reason != PLX_LINK_CLOSED && !local->draining && !local->ending);
	rpc_tx_fini(&peer->tx);
	return true;
}

static void on_free(struct plx_accepted *session)
{
	struct service_local *local = peer_of(session)->local;

	free(session);
	counter_add(&local->counts.clients, -1);
	if (local->ending)
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
			  &(struct rpc_greeting){
				  .version_min = RPC_VERSION_MIN,
				  .version_max = RPC_VERSION_MAX,
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
	.failed = on_failed,
	.ended = on_ended,
	.free = on_free,
};

void peer_reject(struct peer *peer, const char *why)
{
	struct service_local *local = peer->local;

	if (peer->session.failure)
		return;
	if (plx_log_allowed(&local->log_limit, plx_loop_now_ns()))
		plx_log(rpc_log, PLX_LOG_WARNING, "client %s: %s; its link ends",
			plx_link_peer(peer->session.link), why);
	counter_add(&local->counts.protocol, 1);
	plx_accepted_fail(&peer->session, why);
}

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
		plx_timer_start(&peer->timer, LEAVE_NS);
}
