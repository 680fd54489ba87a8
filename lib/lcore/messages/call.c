/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls: a message there, and a message back. If the lane back is full, the call waits for room
 * through the caller's struct, so no response is lost. */
#include "lcore_priv.h"

static void call_done(void *arg)
{
	struct plx_call *call = arg;

	call->done(call, call->result, call->arg);
}

/* The lane back has room. */
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
	struct lane *back = lane_to(lcore_get(call->from)); /* created by plx_lcore_call */

	call->result = call->fn(call, call->arg);
	/* Not before responses that already wait. */
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
	/* Create the lane back here, where a failure can be returned. */
	if (!lane_open(id, atomic_load_explicit(&to->loop, memory_order_relaxed), /* by lcore_get */
		       lcore_get(plx_lcore_id())))
		return -ENOMEM;
	call->from = plx_lcore_id();
	return message_send(to, &message);
}
