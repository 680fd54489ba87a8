/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from more threads than there are CPUs, and between lcores, at full speed: every one
 * arrives once, on its lcore, in its sender's order, and every refusal is counted. */
#include "lcores.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define LCORES  3
#define SENDERS (8 + LCORES) /* threads, and each lcore */

static struct lcores lcores;
static uint32_t messages_each; /* from each sender to each lcore */

/* What an lcore has received; its own. */
struct inbox {
	PLX_ALIGNED_LINE uint32_t next[SENDERS];
	uint64_t received;
	uint64_t wrong;
};

static struct inbox inboxes[LCORES];
static _Atomic uint32_t lcores_done;
static _Atomic uint64_t refused[LCORES];

/* arg: receiver, sender, and the sender's sequence. */
static void receive(void *arg)
{
	uint64_t word = (uintptr_t)arg;
	struct inbox *inbox = &inboxes[plx_lcore_id() / 10];
	uint32_t *next = &inbox->next[word >> 32 & 0xff];

	if (word >> 40 != plx_lcore_id() || (uint32_t)word != *next)
		inbox->wrong++;
	*next = (uint32_t)word + 1;
	if (++inbox->received == (uint64_t)SENDERS * messages_each &&
	    atomic_fetch_add(&lcores_done, 1) + 1 == LCORES)
		plx_stop();
}

static int send_to(uint32_t to, uint32_t sender, uint32_t sequence)
{
	uint64_t word = (uint64_t)to << 40 | (uint64_t)sender << 32 | sequence;
	int err = plx_lcore_send(to, receive, (void *)(uintptr_t)word);

	if (err == -EAGAIN)
		atomic_fetch_add(&refused[to / 10], 1);
	return err;
}

static void *send_from_thread(void *arg)
{
	uint32_t sender = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < messages_each; i++) {
		for (uint32_t to = 0; to < LCORES * 10; to += 10) {
			while (send_to(to, sender, i) == -EAGAIN)
				sched_yield();
		}
	}
	return NULL;
}

/* An lcore's own messages: as many as there is room for in each turn. */
static int send_from_lcore(void *arg, uint64_t now_ns)
{
	uint32_t *sent = arg; /* to each lcore */
	int work = 0;

	for (uint32_t to = 0; to < LCORES; to++) {
		for (unsigned burst = 0; burst < 8 && sent[to] < messages_each; burst++) {
			if (send_to(to * 10, 8 + plx_lcore_id() / 10, sent[to]))
				break;
			sent[to]++;
			work++;
		}
	}
	if (!work)
		sched_yield(); /* there may be more lcores than CPUs */
	return work;
}

static int run_lcore(void *arg)
{
	uint32_t sent[LCORES] = {0};
	struct plx_poller *poller;
	int err = plx_poller_add("send", send_from_lcore, sent, 0, &poller);

	if (err)
		return err;
	err = plx_loop_run();
	plx_poller_remove(poller);
	return err;
}

static void all_messages_arrive_once_and_in_order(void **state)
{
	pthread_t threads[8];
	int result = -1;

	lcores_up(&lcores, LCORES);
	for (uintptr_t i = 0; i < PLX_ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, send_from_thread, (void *)i), 0);
	assert_int_equal(plx_lcore_launch_all(run_lcore, NULL, &result), 0);
	assert_int_equal(result, 0);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	PLX_LCORE_FOREACH_WORKER (id) {
		assert_int_equal(plx_lcore_join(id, 10 * PLX_NS_PER_S, &result), 0);
		assert_int_equal(result, 0);
	}
	for (uint32_t i = 0; i < LCORES; i++) {
		struct plx_lcore_stats stats;

		assert_int_equal(inboxes[i].received, (uint64_t)SENDERS * messages_each);
		assert_int_equal(inboxes[i].wrong, 0);
		assert_int_equal(plx_lcore_stats(i * 10, &stats), 0);
		assert_int_equal(stats.messages, inboxes[i].received);
		assert_int_equal(stats.messages_full, atomic_load(&refused[i]));
		assert_int_equal(stats.turns - stats.idle_turns > 0, 1);
	}
	lcores_down(&lcores);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_messages_arrive_once_and_in_order),
	};

	messages_each = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 50000;
	alarm(100); /* a lost message would keep the loops running for ever */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
