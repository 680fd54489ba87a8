/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls: a message there, and a message back. The lane back may be full, and a response is not to
 * be lost: then the call waits in a list of that lane, linked through the caller's own struct, and
 * is tried again each turn. Each lane has its own list, so that a caller whose loop does not run
 * holds up nobody else's responses. */
#include "lcore_priv.h"

static void call_done(void *arg)
{
	struct plx_call *call = arg;

	call->done(call, call->result, call->arg);
}

/* There is room in the lane back. */
static void respond(struct plx_call *call)
{
	struct message message = {.fn.arg = call_done, .size_bytes = MESSAGE_ARG, .arg = call};

	message_send(lcore_get(call->from), &message);
}

/* One response for each lane that has room again, so that no turn sends more than there are lcores.
 */
unsigned replies_retry(struct loop *loop)
{
	struct lane **at = &loop->bell.waiting;
	unsigned sent = 0;

	while (*at) {
		struct lane *lane = *at;

		if (lane_room(lane)) {
			/* Once it is sent the call is its caller's again. */
			struct plx_call *next = lane->replies->next;

			respond(lane->replies);
			lane->replies = next;
			sent++;
		}
		if (lane->replies)
			at = &lane->next_waiting;
		else
			*at = lane->next_waiting;
	}
	return sent;
}

static void let_wait(struct lane *lane, struct plx_call *call)
{
	struct bell *bell = &loop_self->bell;

	counter_add(&lane->full, 1);
	call->next = NULL;
	if (lane->replies) {
		lane->last_reply->next = call;
	} else {
		lane->replies = call;
		lane->next_waiting = bell->waiting;
		bell->waiting = lane;
	}
	lane->last_reply = call;
}

static void call_run(void *arg)
{
	struct plx_call *call = arg;
	struct lane *back = lane_to(lcore_get(call->from)); /* plx_lcore_call made it */

	call->result = call->fn(call, call->arg);
	/* Not before those that wait already. */
	if (!back->replies && lane_room(back))
		respond(call);
	else
		let_wait(back, call);
}

int plx_lcore_call(uint32_t id, struct plx_call *call)
{
	struct message message = {.fn.arg = call_run, .size_bytes = MESSAGE_ARG, .arg = call};
	struct lcore *to = lcore_get(id);

	if (!loop_self)
		return plx_fail_no_lcore("plx_lcore_call");
	if (!to)
		return lcore_fail_unknown("plx_lcore_call", id);
	if (!call->fn || !call->done)
		return plx_fail(EINVAL, "plx_lcore_call: no %s: give both functions",
				call->fn ? "done" : "fn");
	/* The lane back is made here, where there is somebody to tell if it cannot be. */
	if (!lane_open(to, lcore_get(plx_lcore_id())))
		return -ENOMEM;
	call->from = plx_lcore_id();
	return message_send(to, &message);
}
