/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to an lcore: from other lcores by lanes (lane.c), from other threads by one shared ring.
 *
 * A sender to that ring always sets its bit of the doorbell; the receiver clears the bit, then
 * empties the ring. Both are read-modify-writes of one word, so one comes first. If the sender's
 * does, the receiver's reads from it and sees the push (B1 -> B2). If the receiver's does, the bit
 * stays set. So this bell needs only acquire and release. Waking a sleeping receiver needs more:
 * there setting the bit is S1 of sleep.c. */
#include "lcore_priv.h"

#include <string.h>

/* One message -------------------------------------------------------------------------------- */

/* Most messages are a function and an argument: copy only these. */
void message_copy(struct message *to, const struct message *from)
{
	to->fn = from->fn;
	to->size_bytes = from->size_bytes;
	if (from->size_bytes == MESSAGE_ARG)
		to->arg = from->arg;
	else
		memcpy(to->data, from->data, sizeof(to->data));
}

void message_deliver(const struct message *message)
{
	if (plx_likely(message->size_bytes == MESSAGE_ARG))
		message->fn.arg(message->arg);
	else
		message->fn.data(message->data, message->size_bytes);
}

/* Threads that are no lcores ----------------------------------------------------------------- */

static struct plx_ring_attr others_attr(void)
{
	return (struct plx_ring_attr){
		.kind = PLX_RING_MPSC,
		.capacity = lcore_lane_slots,
		.element_bytes = sizeof(struct message),
	};
}

size_t others_size(void)
{
	const struct plx_ring_attr attr = others_attr();
	size_t size_bytes = 0;

	plx_ring_size(&attr, &size_bytes); /* cannot fail: the number was checked */
	return size_bytes;
}

void others_init(struct loop *loop, void *memory)
{
	const struct plx_ring_attr attr = others_attr();

	memset(memory, 0, others_size()); /* puts the slots on this lcore's NUMA node */
	plx_ring_init(memory, &attr, &loop->others);
}

static int others_send(struct loop *loop, const struct message *message)
{
	if (!plx_ring_push(loop->others, message))
		return -EAGAIN; /* the ring counts it */
	LCORE_STEP();
	/* B1 -> B2, and S1 */
	atomic_fetch_or_explicit(&loop->bell.others, OTHERS_RING, memory_order_seq_cst);
	wake_if_asleep(&loop->bell);
	return 0;
}

static unsigned others_receive(struct loop *loop, unsigned max)
{
	unsigned received = 0;
	struct message message;

	while (received < max && plx_ring_pop(loop->others, &message)) {
		received++;
		message_deliver(&message);
	}
	if (received == max) /* there may be more; relaxed: only this lcore reads it next */
		atomic_fetch_or_explicit(&loop->bell.others, OTHERS_RING, memory_order_relaxed);
	return received;
}

/* Receiving ---------------------------------------------------------------------------------- */

struct rung {
	struct bell *bell;
	uint64_t others;
};

/* A C++ callback has thrown, and more may wait. */
static void ring_again(struct rung *rung)
{
	if (plx_unlikely(rung->others != 0)) /* relaxed: only this lcore reads it next */
		atomic_fetch_or_explicit(&rung->bell->others, rung->others, memory_order_relaxed);
}

/* Return: how many signals ran, and messages of others. */
static unsigned receive_others(struct loop *loop, unsigned *messages_out)
{
	/* B2 <- B1 */
	uint64_t others = atomic_exchange_explicit(&loop->bell.others, 0, memory_order_acquire);
	struct rung rung PLX_CLEANUP(ring_again) = {&loop->bell, others};
	unsigned signals = others & OTHERS_SIGNALS ? signals_run(loop) : 0;

	if (others & OTHERS_RING)
		*messages_out = others_receive(loop, MESSAGES_TURN_MAX / 2);
	rung.others = 0;
	return signals;
}

unsigned messages_receive(struct loop *loop)
{
	unsigned received = 0, signals = 0;

	/* Relaxed: checked again below. */
	if (atomic_load_explicit(&loop->bell.others, memory_order_relaxed))
		signals = receive_others(loop, &received);
	received += lanes_receive(loop, MESSAGES_TURN_MAX - received);
	if (received)
		counter_add(&loop->counts.messages, received);
	return received + signals;
}

bool messages_wait(struct loop *loop)
{
	/* S4 */
	return atomic_load_explicit(&loop->bell.others, memory_order_seq_cst) || lanes_wait(loop);
}

uint64_t messages_fini(struct loop *loop)
{
	return lanes_fini(loop) + plx_ring_depth(loop->others);
}

/* Sending ------------------------------------------------------------------------------------ */

/* The lane from the calling lcore. Return: NULL with an error text. */
static struct lane *lane_to(struct lcore *to)
{
	struct lane *lane = loop_self->out[to->id];

	if (plx_unlikely(!lane)) {
		lane = lane_open(plx_lcore_id(), loop_self, to);
		loop_self->out[to->id] = lane;
	}
	return lane;
}

/* Send from the calling thread. Return: 0; -EAGAIN, counted; -ENOMEM no lane. */
static int message_send(struct lcore *lcore, const struct message *message)
{
	/* L2 of lcore.c */
	struct loop *to = atomic_load_explicit(&lcore->loop, memory_order_acquire);
	struct lane *lane;

	if (plx_unlikely(!loop_self))
		return others_send(to, message);
	lane = lane_to(lcore);
	if (plx_unlikely(!lane))
		return -ENOMEM;
	return lane_send(lane, &to->bell, plx_lcore_id(), message);
}

static inline int send_checked(const char *what, uint32_t id, const struct message *message)
{
	struct lcore *lcore = lcore_get(id);

	if (plx_unlikely(!lcore))
		return lcore_fail_unknown(what, id);
	if (plx_unlikely(!message->fn.arg))
		return plx_fail(EINVAL, "%s: no function to call: give one", what);
	return message_send(lcore, message);
}

int plx_lcore_send(uint32_t id, plx_message_fn fn, void *arg)
{
	struct message message = {.fn.arg = fn, .size_bytes = MESSAGE_ARG, .arg = arg};

	return send_checked("plx_lcore_send", id, &message);
}

int plx_lcore_send_data(uint32_t id, plx_message_data_fn fn, const void *data, size_t size_bytes)
{
	struct message message = {.fn.data = fn, .size_bytes = (uint32_t)size_bytes};

	if (plx_unlikely(size_bytes > PLX_MESSAGE_BYTES))
		return plx_fail(EMSGSIZE,
				"plx_lcore_send_data: %zu bytes: a message carries at most %d; "
				"send a pointer to them",
				size_bytes, PLX_MESSAGE_BYTES);
	if (size_bytes)
		memcpy(message.data, data, size_bytes);
	return send_checked("plx_lcore_send_data", id, &message);
}

int plx_lcore_on_room(uint32_t id, struct plx_task *task)
{
	struct lcore *to = lcore_get(id);
	struct lane *lane;

	if (!loop_self)
		return plx_fail_no_lcore("plx_lcore_on_room");
	if (!to)
		return lcore_fail_unknown("plx_lcore_on_room", id);
	lane = lane_to(to);
	return lane ? lane_wait("plx_lcore_on_room", lane, task) : -ENOMEM;
}

/* Calls -------------------------------------------------------------------------------------- */

/* A message there, and one back. If the lane back is full, the call waits for room through the
 * caller's struct, so no response is lost. */

static void call_done(void *arg)
{
	struct plx_call *call = arg;

	call->done(call, call->result, call->arg);
}

/* The lane back has room. */
static void respond(struct plx_task *task, void *arg)
{
	struct plx_call *call = arg;
	struct message message = {.fn.arg = call_done, .size_bytes = MESSAGE_ARG, .arg = call};

	message_send(lcore_get(call->from), &message);
}

static void call_run(void *arg)
{
	struct plx_call *call = arg;
	struct lane *back = lane_to(lcore_get(call->from)); /* created by plx_lcore_call */

	call->result = call->fn(call, call->arg);
	/* Not before responses that already wait. */
	if (!tasks_wait(&back->waiting) && lane_room(back)) {
		respond(NULL, call);
		return;
	}
	counter_add(&back->full, 1);
	plx_task_init(&call->response, respond, call);
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
