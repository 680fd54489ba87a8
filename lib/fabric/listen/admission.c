/* SPDX-License-Identifier: BSD-3-Clause */
/* Tickets: what a listener knows of a connection, from accept(2) until its link has ended. All
 * under one lock, taken only when connections come and go. */
#include "admission.h"

#include "fabric_listen.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_MAX_NS   (PLX_NS_PER_S * 5 / 2) /* for a turn */
#define CLOSING_NS    PLX_NS_PER_MS          /* for one that makes room to be closed */
#define FULL_AGAIN_NS PLX_NS_PER_S /* when a listener that has all its links may have room */
#define PART          4 /* of the descriptors is the most that wait, and that are not open */

void admission_init(struct admission *admission, const struct plx_admission *limits,
		    uint64_t timeout_ns)
{
	uint32_t descriptors = (uint32_t)lesser(descriptors_limit() / PART + 1, UINT32_MAX - 1);
	uint64_t waiting = TURNS_MAX;

	*admission = (struct admission){.limits = *limits};
	pthread_mutex_init(&admission->lock, NULL);
	origins_init(&admission->origins);
	turns_init(&admission->turns, limits->accepts_per_s);
	if (limits->handshakes_max != PLX_NO_LIMIT)
		admission->limits.handshakes_max = (uint32_t)lesser(limits->handshakes_max,
								    descriptors);
	admission->wait_max_ns = lesser(timeout_ns / 2, WAIT_MAX_NS);
	if (admission->turns.gap_ns)
		waiting = lesser(waiting, admission->wait_max_ns / admission->turns.gap_ns + 1);
	admission->waiting_max = (uint32_t)lesser(waiting, descriptors);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(admission->log_limits); i++)
		admission->log_limits[i].burst = 1;
}

/* States, under the lock ----------------------------------------------------------------------- */

static struct admission *admission_of(struct ticket *ticket)
{
	return &ticket->shared->admission;
}

static void enter_silent(struct ticket *ticket, uint64_t now_ns)
{
	ticket->state = TICKET_SILENT;
	ticket->since_ns = now_ns;
	ticket->is_taken = ticket->is_half_open = true;
	TAILQ_INSERT_TAIL(&ticket->origin->silent, ticket, of_origin);
	origin_add(ticket->origin, ORIGIN_LINKS, 1);
	origin_add(ticket->origin, ORIGIN_HALF_OPEN, 1);
}

static void leave_state(struct ticket *ticket)
{
	struct origin *origin = ticket->origin, *top = origin_top(origin);

	if (ticket->state == TICKET_WAITING) {
		TAILQ_REMOVE(&origin->kept, ticket, of_origin);
		turns_leave(&admission_of(ticket)->turns, ticket->turn);
		origin_add(origin, ORIGIN_WAITING, -1);
		if (!top->shares[ORIGIN_WAITING])
			top->next_turn = 0;
	} else if (ticket->state == TICKET_SILENT) {
		TAILQ_REMOVE(&origin->silent, ticket, of_origin);
	}
}

/* It is open, or closed. Until then it counts, also if it makes room. */
static void leave_half_open(struct ticket *ticket)
{
	if (!ticket->is_half_open)
		return;
	ticket->is_half_open = false;
	origin_add(ticket->origin, ORIGIN_HALF_OPEN, -1);
	admission_of(ticket)->closing -= ticket->state == TICKET_LOST;
}

/* It makes room. */
static void lose(struct ticket *ticket, enum admission_cause cause, struct admission_answer *answer)
{
	leave_state(ticket);
	ticket->state = TICKET_LOST;
	admission_of(ticket)->closing += ticket->is_half_open;
	atomic_store_explicit(&ticket->evicted, true, memory_order_relaxed);
	counter_add_shared(&admission_of(ticket)->counts[cause], 1);
	ticket->refs++;
	answer->victim = ticket;
	answer->victim_cause = cause;
	answer->victim_key = ticket->origin->key;
}

/* Return: NULL: no memory. */
static struct ticket *join(struct listener_shared *shared, const struct plx_admit_request *asked,
			   uint64_t now_ns)
{
	struct admission *admission = &shared->admission;
	struct in6_addr key = origin_key(asked);
	struct ticket *ticket = calloc(1, sizeof(*ticket));

	if (!ticket)
		return NULL;
	ticket->origin = origin_find(&admission->origins, &key);
	if (!ticket->origin) {
		free(ticket);
		return NULL;
	}
	listener_ref(shared);
	ticket->shared = shared;
	ticket->refs = 1;
	ticket->holder.connection = asked->connection;
	ticket->close = asked->close;
	ticket->since_ns = now_ns;
	ticket->turn = turns_join(&admission->turns, &origin_top(ticket->origin)->next_turn);
	TAILQ_INSERT_TAIL(&ticket->origin->kept, ticket, of_origin);
	origin_add(ticket->origin, ORIGIN_WAITING, 1);
	return ticket;
}

static void leave(struct ticket *ticket)
{
	leave_state(ticket);
	leave_half_open(ticket);
	if (ticket->is_taken)
		origin_add(ticket->origin, ORIGIN_LINKS, -1);
	origin_release(&admission_of(ticket)->origins, ticket->origin);
	ticket->origin = NULL;
	ticket->holder = (struct ticket_holder){0};
}

/* End its use, and that of a reference to the ticket, if not NULL. */
static void unlock(struct admission *admission, struct ticket *ticket)
{
	bool is_last = ticket && --ticket->refs == 0;

	pthread_mutex_unlock(&admission->lock);
	if (!is_last)
		return;
	listener_unref(ticket->shared);
	free(ticket);
}

/* Verdicts, under the lock --------------------------------------------------------------------- */

static enum admission_cause over_links(struct admission *admission, const struct origin *origin)
{
	uint64_t most = admission->limits.links_per_host_max;

	if (admission->origins.root.shares[ORIGIN_LINKS] >= admission->limits.links_max)
		return ADMISSION_LINKS;
	for (; origin->parent; origin = origin->parent, most *= NETWORK_TIMES) {
		if (origin->shares[ORIGIN_LINKS] >= most && most < PLX_NO_LIMIT)
			return ADMISSION_HOST;
	}
	return ADMISSION_NONE;
}

/* The oldest silent one that can be ended; at_once: by its provider. */
static struct ticket *oldest_silent(struct origin *origin, bool at_once)
{
	struct ticket *each;

	TAILQ_FOREACH (each, &origin->silent, of_origin) {
		if (each->holder.connection ||
		    (!at_once && (each->holder.request || each->holder.link)))
			return each;
	}
	return NULL;
}

/* Networks are compared if they differ, otherwise the addresses in them. */
static bool holds_as_many(struct origin *own, struct origin *most)
{
	if (origin_top(own) != origin_top(most)) {
		own = origin_top(own);
		most = origin_top(most);
	}
	return own->shares[ORIGIN_HALF_OPEN] + 1 >= most->shares[ORIGIN_HALF_OPEN];
}

/* Find room for one more that is not open: at the limit, the address that has most of them loses
 * its oldest silent one. A provider closes its own first; others take a moment. Return: why it must
 * be refused. */
static enum admission_cause make_room(struct admission *admission, const struct ticket *ticket,
				      uint64_t now_ns, struct admission_answer *answer)
{
	struct origin *most;
	struct ticket *oldest;
	uint64_t age_ns;

	if (admission->origins.root.shares[ORIGIN_HALF_OPEN] < admission->limits.handshakes_max)
		return ADMISSION_NONE;
	answer->wait_ns = CLOSING_NS;
	/* Each makes room for one that waits. */
	if (admission->closing >= admission->turns.waiting ||
	    admission->turns.waiting > admission->waiting_max)
		return ADMISSION_NONE;
	most = origin_most(&admission->origins, ORIGIN_HALF_OPEN);
	oldest = most ? oldest_silent(most, false) : NULL;
	if (!oldest)
		return ADMISSION_HANDSHAKES;
	age_ns = plx_time_since(oldest->since_ns, now_ns);
	if (age_ns < ADMISSION_GRACE_NS && holds_as_many(ticket->origin, most)) {
		answer->wait_ns = ADMISSION_GRACE_NS - age_ns;
		return ADMISSION_NONE;
	}
	lose(oldest, ADMISSION_EVICTED, answer);
	if (oldest->holder.connection) /* its provider closes it now */
		answer->wait_ns = 0;
	return ADMISSION_NONE;
}

/* At the limit of those that wait, the address that has most of them loses its newest one. Return:
 * whether that is this one. */
static bool is_one_too_many(struct admission *admission, const struct ticket *ticket,
			    struct admission_answer *answer)
{
	struct ticket *newest;

	if (admission->turns.waiting <= admission->waiting_max)
		return false;
	newest = TAILQ_LAST(&origin_most(&admission->origins, ORIGIN_WAITING)->kept, tickets);
	if (newest == ticket)
		return true;
	lose(newest, ADMISSION_RATE, answer);
	return false;
}

static uint64_t again_ns(const struct admission *admission, enum admission_cause cause)
{
	if (cause == ADMISSION_LINKS || cause == ADMISSION_HOST)
		return FULL_AGAIN_NS;
	if (cause == ADMISSION_RATE)
		return greater(admission->turns.waiting * admission->turns.gap_ns,
			       ADMISSION_GRACE_NS);
	return ADMISSION_GRACE_NS;
}

/* Return: why it is refused. */
static enum admission_cause decide(struct admission *admission, struct ticket *ticket, bool is_new,
				   uint64_t now_ns, struct admission_answer *answer)
{
	enum admission_cause cause = over_links(admission, ticket->origin);
	bool has_turn;

	assert(ticket->state == TICKET_WAITING);
	if (cause != ADMISSION_NONE)
		return cause;
	answer->wait_ns = turns_wait_ns(&admission->turns, ticket->turn, is_new, now_ns);
	has_turn = !answer->wait_ns;
	if (has_turn)
		cause = make_room(admission, ticket, now_ns, answer);
	if (cause != ADMISSION_NONE)
		return cause;
	if (!answer->wait_ns) {
		turns_use(&admission->turns, now_ns);
		leave_state(ticket);
		enter_silent(ticket, now_ns);
		answer->verdict = PLX_ADMIT_TAKE;
		return ADMISSION_NONE;
	}
	if (plx_time_since(ticket->since_ns, now_ns) > admission->wait_max_ns)
		return has_turn ? ADMISSION_HANDSHAKES : ADMISSION_RATE;
	if (is_new && is_one_too_many(admission, ticket, answer))
		return ADMISSION_RATE;
	answer->verdict = PLX_ADMIT_KEEP;
	return ADMISSION_NONE;
}

/* Connections --------------------------------------------------------------------------------- */

void admission_ask(struct listener_shared *shared, const struct plx_admit_request *asked,
		   uint64_t now_ns, struct admission_answer *answer_out)
{
	struct admission *admission = &shared->admission;
	struct ticket *ticket = asked->ticket;
	bool is_refused;

	*answer_out = (struct admission_answer){.verdict = PLX_ADMIT_REFUSE,
						.cause = ADMISSION_NONE};
	pthread_mutex_lock(&admission->lock);
	if (!ticket)
		ticket = join(shared, asked, now_ns);
	if (ticket)
		answer_out->cause = decide(admission, ticket, !asked->ticket, now_ns, answer_out);
	answer_out->again_ns = again_ns(admission, answer_out->victim ? answer_out->victim_cause
								      : answer_out->cause);
	is_refused = answer_out->cause != ADMISSION_NONE;
	if (is_refused) {
		counter_add_shared(&admission->counts[answer_out->cause], 1);
		leave(ticket);
	}
	answer_out->ticket = is_refused ? NULL : ticket;
	unlock(admission, is_refused ? ticket : NULL);
}

bool admission_hold(struct ticket *ticket, struct ticket_holder holder)
{
	bool is_evicted;

	pthread_mutex_lock(&admission_of(ticket)->lock);
	is_evicted = ticket->state == TICKET_LOST;
	if (is_evicted)
		holder = (struct ticket_holder){0};
	ticket->holder = holder;
	pthread_mutex_unlock(&admission_of(ticket)->lock);
	return !is_evicted;
}

void admission_opened(struct ticket *ticket)
{
	pthread_mutex_lock(&admission_of(ticket)->lock);
	leave_state(ticket);
	leave_half_open(ticket);
	ticket->state = TICKET_OPEN;
	pthread_mutex_unlock(&admission_of(ticket)->lock);
}

void admission_leave(struct ticket *ticket)
{
	if (!ticket)
		return;
	pthread_mutex_lock(&admission_of(ticket)->lock);
	leave(ticket);
	unlock(admission_of(ticket), ticket);
}

/* Evictions ------------------------------------------------------------------------------------ */

struct ticket_holder admission_holder(struct ticket *ticket)
{
	struct ticket_holder holder;

	pthread_mutex_lock(&admission_of(ticket)->lock);
	holder = ticket->holder;
	pthread_mutex_unlock(&admission_of(ticket)->lock);
	return holder;
}

void admission_unref(struct ticket *ticket)
{
	pthread_mutex_lock(&admission_of(ticket)->lock);
	unlock(admission_of(ticket), ticket);
}

/* The oldest silent connection that a provider has, of the address that has most of those that are
 * not open. */
static struct ticket *provider_silent(struct origin *origin)
{
	struct ticket *found = oldest_silent(origin, true), *each;
	struct origin *below;
	uint32_t most = 0;

	LIST_FOREACH (below, &origin->busy, of_parent) {
		each = below->shares[ORIGIN_HALF_OPEN] >= most ? provider_silent(below) : NULL;
		if (each) {
			most = below->shares[ORIGIN_HALF_OPEN];
			found = each;
		}
	}
	return found;
}

/* Such a silent connection, else the newest that waits. */
void *admission_descriptor(struct admission *admission)
{
	struct origin *most;
	struct ticket *found;
	void *connection;

	pthread_mutex_lock(&admission->lock);
	found = provider_silent(&admission->origins.root);
	most = origin_most(&admission->origins, ORIGIN_WAITING);
	if (!found && most)
		found = TAILQ_LAST(&most->kept, tickets);
	connection = found ? found->holder.connection : NULL;
	pthread_mutex_unlock(&admission->lock);
	return connection;
}
