/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that takes from a listening socket's queue sleeps whenever the queue is empty, and must
 * wake for each message: more are pushed only after it has taken all. queue.c has a delay at each
 * step. */
#include "plx_test.h"

#include "delays.h"
#include "listener.h"

#include <poll.h>
#include <pthread.h>

#define SLOTS    2
#define STILL_NS (20 * PLX_NS_PER_S) /* without progress before the test fails */

static struct queue *queue;
static uint64_t rounds;
static _Atomic uint64_t taken;
static _Atomic unsigned wrong;

static void took(const struct netio_msg *msg)
{
	uint64_t before = atomic_load_explicit(&taken, memory_order_relaxed);

	wrong += msg->tag != before;
	atomic_store_explicit(&taken, before + 1, memory_order_relaxed);
}

static void *wait_for_all(void *arg)
{
	struct netio_msg msg;

	while (taken < rounds) {
		wrong += queue_take_wait(queue, &msg, PLX_NEVER) != 0;
		took(&msg);
	}
	return NULL;
}

static void *poll_for_all(void *arg)
{
	struct pollfd fd = {.fd = queue_fd(queue), .events = POLLIN};
	struct netio_msg msg;

	while (taken < rounds) {
		wrong += poll(&fd, 1, -1) != 1;
		while (queue_take(queue, &msg) == 0)
			took(&msg);
	}
	return NULL;
}

/* Some pushes wake it for each message, some for several. */
static void push_all(void)
{
	for (uint64_t pushed = 0; pushed < rounds;) {
		uint64_t limit_ns = plx_now_ns() + STILL_NS, end = pushed + 1 + roll() % SLOTS;

		for (; pushed < end && pushed < rounds; pushed++) {
			assert_true(queue_push(queue, &(struct netio_msg){.tag = pushed}));
			if (roll() % 2)
				queue_wake_if_pushed(queue);
			stress_step();
		}
		queue_wake_if_pushed(queue);
		while (atomic_load_explicit(&taken, memory_order_relaxed) < pushed) {
			sched_yield();
			if (plx_now_ns() > limit_ns)
				fail_msg("message %llu of %llu is slept through",
					 (unsigned long long)taken, (unsigned long long)rounds);
		}
		for (uint32_t i = roll() % 512; i > 0;
		     i--) /* it may be asleep by now, or about to sleep */
			plx_pause();
	}
}

static void push_to(void *(*taker)(void *))
{
	pthread_t thread;

	plx_clock_init();
	taken = wrong = 0;
	assert_works(queue_create(SLOTS, &queue));
	assert_int_equal(pthread_create(&thread, NULL, taker, NULL), 0);
	push_all();
	pthread_join(thread, NULL);
	assert_int_equal(wrong, 0);
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

int main(int argc, char **argv)
{
	rounds = getenv("PLX_TEST_SOAK") ? 3000000 : 50000;
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	return plx_test_run("tests", NULL, NULL);
}
