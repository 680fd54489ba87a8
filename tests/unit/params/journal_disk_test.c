/* SPDX-License-Identifier: BSD-3-Clause */
/* The writing thread, with a failing disk and waiting clients: what is reported as written is on
 * the disk, what is not is reported as failed, and the thread always ends. */
#include "plx_test.h"

#include "log_capture.h"
#include "tables_double.h"

#include <stdio.h>
#include <stdlib.h>

static struct store *store;
static struct journal *journal;
static struct client clients[1000];

static int start(void **state)
{
	play_anew();
	memset(clients, 0, sizeof(clients));
	log_capture();
	assert_int_equal(store_create(&store), 0);
	assert_int_equal(journal_open("played", store, &journal), 0);
	return 0;
}

static int stop(void **state)
{
	store_destroy(store);
	plx_log_set_sink(NULL, NULL);
	return 0;
}

static void start_thread(void)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	assert_int_equal(journal_start(journal, &cpus), 0);
}

static void put_many(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(put_one(journal, i + 1, i + 1, i, &clients[i]), 0);
}

/* A wrong or repeated answer fails the test. */
static void check_answers(uint32_t count, uint32_t error)
{
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(atomic_load(&clients[i].answers), 1);
		assert_int_equal(atomic_load(&clients[i].error), error);
		if (error == 0)
			assert_int_equal(atomic_load(&clients[i].revision), i + 1);
	}
	assert_int_equal(atomic_load(&played.early), 0);
}

static void wait_until_it_failed(int left)
{
	while (atomic_load(&played.fails) > left)
		rest_ns(PLX_NS_PER_MS);
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

TEST(nothing_is_answered_before_it_is_on_the_disk)
{
	struct journal_stats stats;

	atomic_store(&played.fails, 1);
	put_many(3);
	start_thread();
	wait_until_it_failed(0);
	assert_int_equal(atomic_load(&clients[0].answers), 0);
	while (atomic_load(&clients[2].answers) == 0)
		rest_ns(PLX_NS_PER_MS);
	journal_close(journal, &stats);
	check_answers(3, 0);
	assert_int_equal(stats.changes, 3);
	assert_int_equal(stats.commits, 1);
	assert_int_equal(stats.failures, 1);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(log_count("the disk is full; trying again in 1 s"), 1);
}

TEST(what_is_lost_at_the_end_is_told_so)
{
	struct journal_stats stats;

	atomic_store(&played.fails, 1000);
	put_many(10);
	start_thread();
	wait_until_it_failed(999);
	journal_close(journal, &stats);
	check_answers(10, PARAMS_NOT_WRITTEN);
	assert_int_equal(stats.changes, 0);
	assert_int_equal(stats.lost, 10);
	assert_int_equal(log_count("10 changes are lost"), 1);
}

/* Five changes, whose clients get one notice that they are not written: nothing waits for a file
 * that will never accept them. */
static struct journal_stats give_up(const char *why)
{
	struct journal_stats stats;
	char line[128];

	put_many(5);
	start_thread();
	while (atomic_load(&clients[4].answers) == 0)
		rest_ns(PLX_NS_PER_MS);
	journal_close(journal, &stats);
	check_answers(5, PARAMS_NOT_WRITTEN);
	assert_int_equal(stats.changes, 0);
	assert_int_equal(stats.commits, 0);
	assert_int_equal(stats.lost, 5);
	snprintf(line, sizeof(line), "%s; this process keeps changes in memory only", why);
	assert_int_equal(log_count(line), 1);
	return stats;
}

TEST(a_file_that_is_damaged_is_given_up)
{
	atomic_store(&played.is_damaged, true);
	give_up("it is damaged");
}

/* Nothing would find what is written there. */
TEST(a_file_that_was_moved_is_given_up)
{
	atomic_store(&played.is_moved, true);
	assert_true(give_up("it was moved").is_moved);
}

TEST(a_file_that_was_moved_is_noticed_at_the_end)
{
	struct journal_stats stats;

	put_many(1);
	start_thread();
	while (atomic_load(&clients[0].answers) == 0)
		rest_ns(PLX_NS_PER_MS);
	atomic_store(&played.is_moved, true);
	journal_close(journal, &stats);
	check_answers(1, 0);
	assert_int_equal(stats.lost, 0);
	assert_true(stats.is_moved);
}

TEST(an_end_with_more_answers_than_fit_into_the_lane)
{
	struct journal_stats stats;

	put_many(1000);
	start_thread();
	journal_close(journal, &stats);
	check_answers(1000, 0);
	assert_int_equal(stats.changes, 1000);
	assert_int_equal(stats.lost, 0);
}

TEST(an_end_where_nobody_takes_answers)
{
	struct journal_stats stats;
	int answered = 0;

	atomic_store(&played.stuck, true);
	put_many(1000);
	start_thread();
	journal_close(journal, &stats);
	for (int i = 0; i < 1000; i++)
		answered += atomic_load(&clients[i].answers);
	assert_int_equal(answered, LANE_SLOTS);
	assert_int_equal(stats.changes, 1000); /* they are on the disk anyway */
	assert_int_equal(atomic_load(&played.committed), 1000);
}

TEST(what_the_file_does_not_take_is_in_nobodys_way)
{
	struct journal_stats stats;

	atomic_store(&played.fails, 1); /* it is skipped in the second try too */
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(put_one(journal, i + 1, i + 1, i == 1 ? REFUSED : 5, &clients[i]),
				 0);
	start_thread();
	wait_until_it_failed(0);
	while (atomic_load(&clients[2].answers) == 0)
		rest_ns(PLX_NS_PER_MS);
	journal_close(journal, &stats);
	assert_int_equal(atomic_load(&clients[0].error), 0);
	assert_int_equal(atomic_load(&clients[1].answers), 1);
	assert_int_equal(atomic_load(&clients[1].error), PARAMS_NOT_WRITTEN);
	assert_int_equal(atomic_load(&clients[2].error), 0);
	assert_int_equal(stats.changes, 2);
	assert_int_equal(stats.lost, 1);
	assert_int_equal(log_count("a change is not written: it does not take that"), 1);
}

/* A record that cannot be read back is our bug, and must not be reported as written. */
TEST(a_record_that_is_none_is_told_so)
{
	struct journal_stats stats;
	struct param param = {.name = "a//b",
			      .name_length = 4,
			      .revision = 1,
			      .id = 1,
			      .kind = {.type = PARAM_INT},
			      .value = {.type = PARAM_INT}};

	assert_int_equal(journal_reserve(journal), 0);
	journal_put(journal, &param, false, (struct plx_rpc_request *)&clients[0]);
	start_thread();
	journal_close(journal, &stats);
	check_answers(1, PARAMS_NOT_WRITTEN);
	assert_int_equal(stats.lost, 1);
}

TEST(there_is_room_before_a_change_is_made)
{
	struct journal_stats stats;

	for (uint32_t i = 0; i < ROOM; i++)
		assert_int_equal(put_one(journal, i + 1, 1, 0, NULL), 0);
	assert_int_equal(journal_reserve(journal), -EAGAIN);
	start_thread();
	while (journal_reserve(journal) != 0)
		rest_ns(PLX_NS_PER_MS);
	assert_int_equal(journal_reserve(journal), 0); /* the same */
	journal_close(journal, &stats);
	assert_int_equal(stats.changes, ROOM);
	assert_in_range(stats.commits, ROOM / GROUP_MAX, ROOM);
}

/* Whenever the process is killed, the file knows of every number given. */
TEST(numbers_are_marked_before_they_are_given)
{
	uint64_t count = 400000, not_marked = 0;

	assert_true(atomic_load(&played.mark) >= UNWRITTEN_MAX);
	atomic_store(&played.slow_ns, PLX_NS_PER_MS);
	start_thread();
	for (uint64_t i = 1; i <= count; i++) {
		while (put_one(journal, i, i, 0, NULL) != 0)
			rest_ns(PLX_NS_PER_US);
		not_marked += i > atomic_load(&played.mark) || i > atomic_load(&played.id_mark);
	}
	store_set_revision(store, count, count);
	journal_close(journal, NULL);
	assert_int_equal(not_marked, 0);
	assert_int_equal(atomic_load(&played.mark), count); /* the next start continues there */
	assert_int_equal(atomic_load(&played.id_mark), count);
}

PLX_TEST_MAIN()
