/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that takes from a listening socket's queue sleeps whenever the queue is empty, and must
 * wake for each message: more are pushed only after it has taken all. queue.c has a delay at each
 * step. */
#include "delays.h"

#include "listener.h"

#include <poll.h>

#define SLOTS 2

static struct queue *queue;
static _Atomic uint64_t taken;

static void took(const struct netio_msg *msg)
{
	uint64_t before = atomic_load_explicit(&taken, memory_order_relaxed);

	assert_int_equal(msg->tag, before);
	atomic_store_explicit(&taken, before + 1, memory_order_relaxed);
	stress_went_on();
}

static void *wait_for_all(void *arg)
{
	struct netio_msg msg;

	while (taken < stress_amount) {
		assert_works(queue_take_wait(queue, &msg, PLX_NEVER));
		took(&msg);
	}
	return NULL;
}

static void *poll_for_all(void *arg)
{
	struct pollfd fd = {.fd = queue_fd(queue), .events = POLLIN};
	struct netio_msg msg;

	while (taken < stress_amount) {
		assert_int_equal(poll(&fd, 1, -1), 1);
		while (queue_take(queue, &msg) == 0)
			took(&msg);
	}
	return NULL;
}

/* Some pushes wake it for each message, some for several. */
static void push_all(void)
{
	for (uint64_t pushed = 0; pushed < stress_amount;) {
		uint64_t end = pushed + 1 + dice(SLOTS);

		for (; pushed < end && pushed < stress_amount; pushed++) {
			assert_true(queue_push(queue, &(struct netio_msg){.tag = pushed}));
			if (dice(2))
				queue_wake_if_pushed(queue);
			stress_step();
		}
		queue_wake_if_pushed(queue);
		while (atomic_load_explicit(&taken, memory_order_relaxed) < pushed)
			sched_yield();
		/* It may be asleep by now, or about to sleep. */
		for (uint32_t i = dice(512); i > 0; i--)
			plx_pause();
	}
}

static void push_to(void *(*taker)(void *))
{
	pthread_t thread;

	plx_clock_init();
	taken = 0;
	assert_works(queue_create(SLOTS, &queue));
	threads_start(&thread, 1, taker, NULL, 0);
	push_all();
	threads_join(&thread, 1);
	queue_destroy(queue);
}

PLX_TEST(no_message_is_slept_through_by_a_thread_that_waits)
{
	push_to(wait_for_all);
}

PLX_TEST(no_message_is_slept_through_by_a_thread_that_polls_the_descriptor)
{
	push_to(poll_for_all);
}

STRESS_MAIN(50000, 3000000)
