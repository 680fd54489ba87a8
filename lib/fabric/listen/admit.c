/* SPDX-License-Identifier: BSD-3-Clause */
/* A listener's answers to its providers, and the connections that make room for others. */
#include "fabric_link.h"
#include "fabric_listen.h"

#include <inttypes.h>
#include <stdio.h>

/* Making room ---------------------------------------------------------------------------------- */

static void end_evicted(struct plx_link *link)
{
	if (link->state < LINK_OPEN || link->state == LINK_REFUSING)
		close_now(link, PLX_LINK_ABORTED,
			  "as many connections are being opened as may be at a time "
			  "(--handshakes-max), and its address has the most of them");
}

static int evict_there(struct plx_call *call, void *arg)
{
	struct plx_link *link = admission_holder(arg).link;

	if (link)
		end_evicted(link);
	return 0;
}

static void evicted_there(struct plx_call *call, int result, void *arg)
{
	admission_unref(arg);
}

/* Return: whether the answer comes later. */
static bool evict(struct ticket *ticket, const struct ticket_holder *holder, uint64_t again_ns)
{
	uint8_t data[BUSY_BYTES];

	busy_write(again_ns, data);
	ticket->call = (struct plx_call){.fn = evict_there, .done = evicted_there, .arg = ticket};
	if (holder->connection)
		ticket->close(holder->connection, data, sizeof(data));
	else if (holder->request)
		handover_evict(holder->request, data, sizeof(data));
	else if (holder->link && holder->lcore == plx_lcore_id())
		end_evicted(holder->link);
	else if (holder->link) /* if the lane is full, its time-outs end it */
		return plx_lcore_call(holder->lcore, &ticket->call) == 0;
	return false;
}

/* Log a refusal or an eviction by a limit. */
static void report(struct listener_shared *shared, enum admission_cause cause,
		   const struct in6_addr *key, const char *peer, const char *what)
{
	char why[ADMIT_WHY_BYTES], line[ADDRESS_TEXT_BYTES + ADMIT_WHY_BYTES + 48];

	admission_text(&shared->admission, cause, key, why, sizeof(why));
	snprintf(line, sizeof(line), "connection from %s %s: %s", peer, what, why);
	log_warning("%s", line);
	pthread_mutex_lock(&shared->admission.lock);
	/* A longer line is cut: the last byte stays 0. */
	memcpy(shared->last_refused, line, sizeof(shared->last_refused) - 1);
	pthread_mutex_unlock(&shared->admission.lock);
}

static void make_room(struct listener_shared *shared, const struct admission_answer *answer)
{
	struct ticket *victim = answer->victim;
	const struct ticket_holder holder = admission_holder(victim);
	char peer[ORIGIN_TEXT_BYTES];

	if (plx_log_allowed(&shared->admission.log_limits[answer->victim_cause], plx_loop_now_ns()))
		report(shared, answer->victim_cause, &answer->victim_key,
		       origin_key_text(&answer->victim_key, peer), "closed before it was open");
	if (answer->victim_cause == ADMISSION_RATE && !holder.request) {
		counter_add_shared(&shared->requests, 1);
		counter_add_shared(&shared->refused, 1);
	}
	if (!evict(victim, &holder, answer->again_ns))
		admission_unref(victim);
}

/* Asking --------------------------------------------------------------------------------------- */

static void refuse(struct listener_shared *shared, const struct plx_admit_request *asked,
		   const struct admission_answer *answer)
{
	struct in6_addr key = origin_key(asked);
	char peer[ADDRESS_TEXT_BYTES];

	counter_add_shared(&shared->refused, 1);
	if (!plx_log_allowed(&shared->admission.log_limits[answer->cause], plx_loop_now_ns()))
		return;
	if (asked->peer)
		address_format(asked->peer, peer, sizeof(peer));
	else
		origin_key_text(&key, peer);
	report(shared, answer->cause, &key, peer, "refused");
}

void admit_ask(struct listener_shared *shared, const struct plx_admit_request *asked,
	       struct admission_answer *answer_out)
{
	admission_ask(shared, asked, plx_loop_now_ns(), answer_out);
	if (answer_out->victim)
		make_room(shared, answer_out);
	if (answer_out->verdict == PLX_ADMIT_REFUSE)
		refuse(shared, asked, answer_out);
}

/* The provider's calls ------------------------------------------------------------------------- */

static void accepted(void *arg, const struct plx_admit_request *asked,
		     struct plx_admit_answer *answer_out)
{
	struct listener_shared *shared = arg;
	struct admission_answer answer;

	admit_ask(shared, asked, &answer);
	/* It will be no FI_CONNREQ. */
	if (answer.verdict == PLX_ADMIT_REFUSE)
		counter_add_shared(&shared->requests, 1);
	*answer_out = (struct plx_admit_answer){
		.verdict = answer.verdict,
		.wait_ns = answer.wait_ns,
		.ticket = answer.ticket,
		.data_length = BUSY_BYTES,
	};
	busy_write(answer.again_ns, answer_out->data);
}

static void opened(void *arg)
{
	admission_hold(arg, (struct ticket_holder){0});
}

static void ended(void *arg, enum plx_admit_end end, const char *why)
{
	struct ticket *ticket = arg;

	if (why && end != PLX_ADMIT_EVICTED) /* evictions were counted and logged */
		listener_no_handshake(ticket, end == PLX_ADMIT_LEFT, why);
	admission_leave(ticket);
}

static void *no_descriptor(void *arg)
{
	struct listener_shared *shared = arg;
	void *connection = admission_descriptor(&shared->admission);

	if (!connection)
		return NULL;
	counter_add_shared(&shared->admission.counts[ADMISSION_EVICTED], 1);
	if (plx_log_allowed(&shared->admission.log_limits[ADMISSION_EVICTED], plx_loop_now_ns()))
		log_warning("a connection is closed before it is open: this process has used up "
			    "its %" PRIu64 " descriptors (`ulimit -n`)",
			    descriptors_limit());
	return connection;
}

void admit_offer(struct plx_listener *listener)
{
	const struct plx_admit_calls calls = {
		.accepted = accepted,
		.opened = opened,
		.ended = ended,
		.no_descriptor = no_descriptor,
		.arg = listener->shared,
	};

	if (listener->set->driver->admit)
		listener->set->driver->admit(listener->pep, &calls);
}
