/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls: a message there, and a message back. The lane back may be full, and no response may be
 * lost: then the call waits for room in that lane, through the caller's own struct. */
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

static void respond_late(struct plx_task *task, void *arg)
{
	respond(arg);
}

static void call_run(void *arg)
{
	struct plx_call *call = arg;
	struct lane *back = lane_to(lcore_get(call->from)); /* plx_lcore_call made it */

	call->result = call->fn(call, call->arg);
	/* Not before those that wait already. */
	if (!tasks_wait(&back->waiting) && lane_room(back)) {
		respond(call);
		return;
	}
	counter_add(&back->full, 1);
	plx_task_init(&call->response, respond_late, call);
	lane_wait("plx_lcore_call", back, &call->response); /* cannot fail */
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
	if (!lane_open(id, atomic_load_explicit(&to->loop, memory_order_relaxed), /* by lcore_get */
		       lcore_get(plx_lcore_id())))
		return -ENOMEM;
	call->from = plx_lcore_id();
	return message_send(to, &message);
}
