/* SPDX-License-Identifier: BSD-3-Clause */
/* A few changes, then a pause. Each is put anywhere between the write of the previous one and the
 * sleep of the disk's thread. All must be written, although no later change would wake the
 * thread. */
#include "plx_test.h"

#include "tables_double.h"

#define ROUNDS    (PLX_TEST_SANITIZED ? 20000 : 200000)
#define BURST     4
#define MISSED_NS (20 * PLX_NS_PER_S)

/* Return: whether it was answered. Loop turns empty the lane, as on the lcore. */
static bool wait_for_answer(struct client *client)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned looks = 0; atomic_load(&client->answers) == 0; looks++) {
		if (looks % 1024 < 1023)
			continue;
		sched_yield();
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((uint64_t)(now.tv_sec - from.tv_sec) * PLX_NS_PER_S > MISSED_NS)
			return false;
	}
	plx_loop_turn();
	return true;
}

/* Long enough for the thread to be anywhere between two sleeps. */
static void linger(unsigned *random)
{
	for (int i = rand_r(random) % 200; i; i--)
		rand_r(random);
}

/* Return: how many were put; the last one has revision `revision` plus that. */
static uint64_t put_some(struct journal *journal, uint64_t revision, unsigned *random,
			 struct client *last)
{
	uint64_t count = 1 + (uint64_t)rand_r(random) % BURST;

	for (uint64_t i = 1; i <= count; i++) {
		linger(random);
		assert_int_equal(put_one(journal, revision + i, 1, 0, i == count ? last : NULL), 0);
	}
	return count;
}

/* This thread takes one CPU, the disk's thread the others, if any. */
static void take_a_cpu(cpu_set_t *others)
{
	cpu_set_t own;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(*others), others), 0);
	if (CPU_COUNT(others) == 1)
		return;
	while (!CPU_ISSET(cpu, others))
		cpu++;
	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	CPU_CLR(cpu, others);
	sched_setaffinity(0, sizeof(own), &own);
}

PLX_TEST(no_change_is_left_behind)
{
	struct journal_stats stats;
	struct journal *journal;
	struct store *store;
	uint64_t revision = 0;
	unsigned random = 1;
	cpu_set_t cpus;

	play_anew();
	take_a_cpu(&cpus);
	assert_int_equal(store_create(&store), 0);
	assert_int_equal(journal_open("played", store, &journal), 0);
	assert_int_equal(journal_start(journal, &cpus), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct client client = {0};

		revision += put_some(journal, revision, &random, &client);
		if (!wait_for_answer(&client))
			fail_msg("change %llu is not written", (unsigned long long)revision);
	}
	journal_close(journal, &stats);
	assert_int_equal(stats.changes, revision);
	store_destroy(store);
}

PLX_TEST_MAIN()
