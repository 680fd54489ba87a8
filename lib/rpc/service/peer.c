/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's link at the service, from its HELLO to its end. */
#include "rpc_service.h"

#include <inttypes.h>
#include <stdlib.h>

/* For a client to leave. */
#define PATIENCE_NS (2 * PLX_NS_PER_S)

/* How long one of few places is kept for a client that asks for nothing. */
#define IDLE_NS (10 * PLX_NS_PER_S)

static struct service_here *here_of(struct plx_acceptor *acceptor)
{
	return plx_container_of(acceptor, struct service_here, acceptor);
}

static struct peer *peer_of(struct plx_accepted *session)
{
	return (struct peer *)session;
}

/* HELLO ---------------------------------------------------------------------------------------- */

static bool is_crowded(const struct service_here *here)
{
	uint32_t most = here->service->attr.clients_max;

	return most && plx_atomic_load(&here->counts.clients, PLX_RELAXED) >= most;
}

static const char *on_hello(struct plx_acceptor *acceptor, struct plx_link *link,
			    const uint8_t *hello, uint32_t length)
{
	struct service_here *here = here_of(acceptor);
	struct rpc_greeting greeting;
	const char *wrong = rpc_greeting_read(hello, length, RPC_CLIENT, &greeting);

	if (wrong)
		rpc_add(&here->counts.protocol, 1);
	else if (here->ending)
		wrong = "the service ends";
	else if (is_crowded(here))
		wrong = "the service has as many clients as it takes";
	return wrong;
}

/* The link ------------------------------------------------------------------------------------- */

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct peer *peer = user;

	if (plx_unlikely(!peer || peer->session.failure))
		return;
	turns_take(peer, message);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct peer *peer = user;

	if (!peer || peer->session.failure)
		return;
	rpc_out_writable(&peer->out);
	turns_go_on(peer);
}

static void on_timer(struct plx_timer *timer, void *arg);

static struct plx_accepted *on_create(struct plx_acceptor *acceptor)
{
	struct service_here *here = here_of(acceptor);
	struct peer *peer;

	if (here->ending || is_crowded(here)) /* by now */
		return NULL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->here = here;
	peer->backlog_end = &peer->backlog;
	peer->open.multiplier = here->service->multiplier;
	plx_task_init(&peer->serve, turns_serve, peer);
	plx_timer_init(&peer->timer, on_timer, peer);
	plx_timer_set_lax(&peer->timer, true);
	rpc_add(&here->counts.clients, 1);
	return &peer->session;
}

static void on_opened(struct plx_accepted *session)
{
	struct peer *peer = peer_of(session);
	struct rpc_greeting greeting = {0};
	uint32_t length;
	const uint8_t *hello = plx_link_hello(session->link, &length);

	rpc_greeting_read(hello, length, RPC_CLIENT, &greeting); /* it was judged */
	if (rpc_out_init(&peer->out, session->link) != 0) {
		plx_accepted_fail(session, "out of memory");
		return;
	}
	peer->is_same_host = plx_link_is_same_host(session->link);
	peer->identity = greeting.identity;
	peer->reply_max = rpc_payload_max(session->link, greeting.payload_max);
	if (peer->here->service->is_guest)
		plx_timer_start(&peer->timer, IDLE_NS);
	if (peer->here->draining)
		peer_drain(peer);
}

static void on_failed(struct plx_accepted *session)
{
	turns_drop(peer_of(session));
}

static bool on_ended(struct plx_accepted *session, struct plx_link *link,
		     enum plx_link_reason reason, const char *text)
{
	struct peer *peer = peer_of(session);
	const struct service_here *here = peer->here;

	plx_timer_stop(&peer->timer);
	turns_drop(peer);
	open_all_gone(peer, reason != PLX_LINK_CLOSED && !here->draining && !here->ending);
	rpc_out_fini(&peer->out);
	return true;
}

static void on_free(struct plx_accepted *session)
{
	struct service_here *here = peer_of(session)->here;

	free(session);
	rpc_add(&here->counts.clients, (uint64_t)-1);
	if (here->ending)
		service_peer_left(here);
}

static const struct plx_link_events events = {
	PLX_ACCEPTED_EVENTS,
	.on_message = on_message,
	.on_writable = on_writable,
};

void peer_describe_link(const struct plx_rpc_service *service, struct plx_link_attr *attr)
{
	attr->events = &events;
	attr->protocol = PLX_PROTOCOL_RPC;
	attr->hello_length = RPC_GREETING_BYTES;
	rpc_greeting_write(attr->hello,
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

void peer_throw_out(struct peer *peer, const char *why)
{
	struct service_here *here = peer->here;

	if (peer->session.failure)
		return;
	if (plx_log_allowed(&here->log_limit, plx_loop_now_ns()))
		plx_log(&rpc_log, PLX_LOG_WARNING, "client %s: %s; its link ends",
			plx_link_peer(peer->session.link), why);
	rpc_add(&here->counts.protocol, 1);
	plx_accepted_fail(&peer->session, why);
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
		plx_link_close(peer->session.link);
}

static void look_at_idling(struct peer *peer)
{
	uint64_t now_ns = plx_loop_now_ns(), end_ns = peer->arrived_ns + IDLE_NS;

	if (now_ns < end_ns)
		plx_timer_start(&peer->timer, end_ns - now_ns);
	else
		plx_link_close(peer->session.link);
}

static void end_pause(struct peer *peer)
{
	peer->paused = false;
	plx_timer_start(&peer->timer, peer->here->draining ? PATIENCE_NS : IDLE_NS);
	turns_go_on(peer);
}

/* It has had its time: to wait, to leave a service that drains, or to want anything. */
static void on_timer(struct plx_timer *timer, void *arg)
{
	struct peer *peer = arg;

	if (peer->paused)
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

	if (!rpc_out_claim(&peer->out, &header)) {
		plx_link_abort(peer->session.link);
		return;
	}
	rpc_out_flush(&peer->out);
	peer->answered_ns = plx_loop_now_ns(); /* it has had no time to leave yet */
	if (!peer->paused)
		plx_timer_start(&peer->timer, PATIENCE_NS);
}
