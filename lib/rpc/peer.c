/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's link at the service: greetings, batches, and what waits for its turn, so that no
 * client has more than its part of one. What waits stays where it was received: it takes its place
 * out of the client's window, so it is bounded, and the client is held up, nobody else. */
#include "service.h"

#include <inttypes.h>
#include <stdlib.h>

/* For a greeting, as long as links give each other for theirs; and for a client to leave. */
#define PATIENCE_NS (2 * PLX_NS_PER_S)

/* How long one of few places is kept for a client that asks for nothing. */
#define IDLE_NS (10 * PLX_NS_PER_S)

/* When to try again, where as much of a client waits as may. */
#define CROWDED_NS PLX_NS_PER_MS

static inline void begin_turn(struct peer *peer)
{
	uint64_t now_ns = plx_loop_now_ns();

	if (peer->turn_ns == now_ns)
		return;
	peer->turn_ns = now_ns;
	peer->turn_count = 0;
	peer->turn_cycles = 0;
}

/* Whether it may have one more request begun in this turn, and takes its replies. */
static inline bool may_serve(const struct peer *peer)
{
	const struct plx_rpc_service *service = peer->here->service;

	return !peer->thrown_out && !peer->paused && peer->turn_count < service->attr.turn_max &&
	       peer->turn_cycles < service->turn_cycles && !rpc_out_is_full(&peer->out);
}

/* Nothing of it is served for so long: it takes what it sends out of its own window. */
static void pause(struct peer *peer, uint64_t delay_ns)
{
	peer->paused = true;
	plx_timer_start(&peer->timer, delay_ns);
}

/* What guests of the process may cost it is counted by record, whatever that asks for. */
static __attribute__((noinline)) void charge_guest(struct peer *peer, uint32_t records)
{
	uint64_t delay_ns = selftest_charge(peer->here, records);

	if (delay_ns)
		pause(peer, delay_ns);
}

/* A batch, from *offset on. Return: whether it is done; if not, where it goes on is at *offset, and
 * the peer may be about to end. */
static bool serve_batch(struct peer *peer, struct plx_buf *message, size_t *offset)
{
	struct rpc_record record;
	const char *wrong;
	uint32_t before;

	begin_turn(peer);
	before = peer->turn_count;
	for (;;) {
		if (plx_unlikely(!may_serve(peer))) {
			wrong = NULL;
			break;
		}
		if (!rpc_record_next(message->data, message->len, offset, &record, &wrong))
			break;
		if (plx_unlikely(!serve_record(peer, &record, message, &wrong)))
			break;
	}
	if (plx_unlikely(wrong))
		peer_throw_out(peer, wrong);
	if (plx_unlikely(peer->here->service->is_guest))
		charge_guest(peer, peer->turn_count - before);
	return *offset == message->len || peer->thrown_out;
}

/* Short ones are bounded by the link's window. */
static inline uint64_t long_bytes(const struct plx_buf *message)
{
	return message->len > RPC_BATCH_BYTES ? message->len : 0;
}

static struct backlog *take_first(struct peer *peer)
{
	struct backlog *first = peer->backlog;

	peer->backlog = first->next;
	if (!peer->backlog)
		peer->backlog_end = &peer->backlog;
	peer->backlog_bytes -= long_bytes(first->message);
	return first;
}

static void put_back(struct peer *peer, struct backlog *first)
{
	peer->backlog_bytes += long_bytes(first->message);
	first->next = peer->backlog;
	if (!first->next)
		peer->backlog_end = &first->next;
	peer->backlog = first;
}

/* Serve what waits, as far as this turn goes. Return: how many messages were looked at. */
static int serve_backlog(struct rpc_turns *turns, uint64_t now_ns)
{
	struct peer *peer = plx_container_of(turns, struct peer, turns);
	int work = 0;

	begin_turn(peer);
	while (peer->backlog && may_serve(peer)) {
		struct backlog *first = take_first(peer);

		peer->arrived_ns = first->arrived_ns;
		work++;
		if (!serve_batch(peer, first->message, &first->offset)) {
			put_back(peer, first);
			break;
		}
		plx_buf_unref(first->message);
		free(first);
	}
	rpc_out_flush(&peer->out);
	/* What the client does not take holds it up, until on_writable; or its timer ends a pause.
	 */
	if (!peer->backlog || rpc_out_is_full(&peer->out) || peer->paused)
		rpc_turns_stop(&peer->turns);
	return work;
}

/* The rest of a message waits. */
static __attribute__((noinline)) void put_off(struct peer *peer, struct plx_buf *message,
					      size_t offset)
{
	struct backlog *last = malloc(sizeof(*last));

	if (!last) {
		peer_throw_out(peer, "there is no memory for what it sent");
		return;
	}
	*last = (struct backlog){
		.message = plx_buf_ref(message), .offset = offset, .arrived_ns = plx_loop_now_ns()};
	*peer->backlog_end = last;
	peer->backlog_end = &last->next;
	peer->backlog_bytes += long_bytes(message);
	rpc_add(&peer->here->counts.deferred, 1);
	if (!rpc_out_is_full(&peer->out) && !peer->paused)
		rpc_turns_ask(&peer->turns);
}

/* A long message is a single record. Return: NULL, or what is wrong with it. */
static __attribute__((noinline)) const char *wrong_long(const struct peer *peer,
							const struct plx_buf *message)
{
	const struct rpc_header *header = (const struct rpc_header *)message->data;

	if (message->len > peer->here->service->attr.request_max + RPC_RECORD_BYTES + RPC_KEY_BYTES)
		return "it sent more than a request may have";
	if (le32toh(header->length) != message->len - RPC_RECORD_BYTES)
		return "it sent a long message that is not one record";
	return NULL;
}

/* Where what waits fills its bound a long request is refused, before those that wait. Return:
 * whether it was seen to. */
static __attribute__((noinline)) bool refuse_long(struct peer *peer, const struct plx_buf *message)
{
	struct service_here *here = peer->here;
	struct rpc_record record;
	const char *wrong;
	size_t offset = 0;

	if (peer->backlog_bytes + message->len <= here->service->attr.waiting_max ||
	    !rpc_record_next(message->data, message->len, &offset, &record, &wrong) ||
	    record.header.kind != RPC_REQUEST)
		return false;
	rpc_add(&here->counts.busy, 1);
	reply_refusal(peer, record.header.call, PLX_RPC_BUSY, CROWDED_NS);
	rpc_out_flush(&peer->out);
	return true;
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

static void be_greeted(struct peer *peer, const struct plx_buf *message)
{
	struct rpc_greeting greeting;
	const char *wrong = rpc_greeting_read(message->data, message->len, RPC_CLIENT, &greeting);

	if (wrong) {
		peer_throw_out(peer, wrong);
		return;
	}
	peer->greeted = true;
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
	bool is_long = message->len > RPC_BATCH_BYTES;
	const char *wrong;
	size_t offset = 0;

	if (plx_unlikely(!peer || peer->thrown_out))
		return;
	if (plx_unlikely(!peer->greeted)) {
		be_greeted(peer, message);
		return;
	}
	wrong = plx_unlikely(is_long) ? wrong_long(peer, message) : NULL;
	if (plx_unlikely(wrong != NULL)) {
		peer_throw_out(peer, wrong);
		return;
	}
	if (plx_unlikely(peer->backlog != NULL || peer->paused)) {
		if (!is_long || !refuse_long(peer, message))
			put_off(peer, message, 0);
		return;
	}
	peer->arrived_ns = plx_loop_now_ns();
	if (plx_unlikely(!serve_batch(peer, message, &offset) && !peer->thrown_out))
		put_off(peer, message, offset);
	rpc_out_flush(&peer->out);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct peer *peer = user;

	if (!peer || peer->thrown_out)
		return;
	rpc_out_writable(&peer->out);
	if (peer->backlog && !rpc_out_is_full(&peer->out) && !peer->paused)
		rpc_turns_ask(&peer->turns);
}

static void on_timer(struct plx_timer *timer, void *arg);

/* Return: 0; -ENOMEM. */
static int join(struct peer *peer, struct service_here *here, struct plx_link *link)
{
	bool is_first = !here->home;

	if (is_first)
		here->home = rpc_home_use();
	if (!here->home)
		return -ENOMEM;
	if (rpc_out_init(&peer->out, here->home, link) != 0) {
		if (is_first) {
			rpc_home_leave(here->home);
			here->home = NULL;
		}
		return -ENOMEM;
	}
	peer->here = here;
	peer->link = link;
	peer->backlog_end = &peer->backlog;
	peer->open.multiplier = here->service->multiplier;
	peer->turns = (struct rpc_turns){.home = here->home, .fn = serve_backlog};
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

static void drop_backlog(struct peer *peer)
{
	while (peer->backlog) {
		struct backlog *first = peer->backlog;

		peer->backlog = first->next;
		plx_buf_unref(first->message);
		free(first);
	}
	peer->backlog_end = &peer->backlog;
	peer->backlog_bytes = 0;
	rpc_turns_stop(&peer->turns);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct peer *peer = user;
	struct service_here *here;

	if (!peer)
		return;
	here = peer->here;
	peer->link = NULL;
	plx_timer_stop(&peer->timer);
	drop_backlog(peer);
	open_all_gone(peer);
	rpc_out_fini(&peer->out);
	*peer->prev_next = peer->next;
	if (peer->next)
		peer->next->prev_next = peer->prev_next;
	free(peer);
	rpc_add(&here->counts.clients, (uint64_t)-1);
	if (!here->peers) {
		rpc_home_leave(here->home);
		here->home = NULL;
	}
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
	peer->thrown_out = true;
	rpc_add(&here->counts.protocol, 1);
	if (plx_log_allowed(&here->log_limit, plx_loop_now_ns()))
		plx_log(&rpc_log, PLX_LOG_WARNING, "client %s: %s; its link ends",
			plx_link_peer(peer->link), why);
	plx_link_abort(peer->link);
	drop_backlog(peer);
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
	if (peer->backlog && !rpc_out_is_full(&peer->out))
		rpc_turns_ask(&peer->turns);
}

/* It has had its time: to greet, to wait, to leave a service that drains, or to want anything. */
static void on_timer(struct plx_timer *timer, void *arg)
{
	struct peer *peer = arg;

	if (!peer->greeted)
		peer_throw_out(peer, "it did not greet");
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
