/* SPDX-License-Identifier: BSD-3-Clause */
/* The writing thread, with a failing disk and waiting clients: what is reported as written is on
 * the disk, what is not is reported as failed, and the thread always ends. */
#include "plx_test.h"

#include "log_capture.h"
#include "tables_double.h"

static struct store *store;
static struct journal *journal;
static struct journal_stats stats; /* at its end */
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

static void end(void)
{
	journal_close(journal, &stats);
}

static void wait_for_answer(unsigned i)
{
	wait_doing(atomic_load(&clients[i].answers) != 0, rest_ns(PLX_NS_PER_MS));
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
	wait_doing(atomic_load(&played.fails) <= left, rest_ns(PLX_NS_PER_MS));
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

TEST(a_change_is_answered_only_once_it_is_on_disk)
{
	atomic_store(&played.fails, 1);
	put_many(3);
	start_thread();
	wait_until_it_failed(0);
	assert_int_equal(atomic_load(&clients[0].answers), 0);
	wait_for_answer(2);
	end();
	check_answers(3, 0);
	assert_int_equal(stats.changes, 3);
	assert_int_equal(stats.commits, 1);
	assert_int_equal(stats.failures, 1);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(log_count("the disk is full; trying again in 1 s"), 1);
}

TEST(changes_lost_at_shutdown_are_reported)
{
	atomic_store(&played.fails, 1000);
	put_many(10);
	start_thread();
	wait_until_it_failed(999);
	end();
	check_answers(10, PARAMS_NOT_WRITTEN);
	assert_int_equal(stats.changes, 0);
	assert_int_equal(stats.lost, 10);
	assert_int_equal(log_count("10 changes are lost"), 1);
}

/* Five changes, whose clients get one notice that they are not written: nothing waits for a file
 * that will never accept them. */
static void give_up(const char *why)
{
	char line[128];

	put_many(5);
	start_thread();
	wait_for_answer(4);
	end();
	check_answers(5, PARAMS_NOT_WRITTEN);
	assert_int_equal(stats.changes, 0);
	assert_int_equal(stats.commits, 0);
	assert_int_equal(stats.lost, 5);
	snprintf(line, sizeof(line), "%s; this process keeps changes in memory only", why);
	assert_int_equal(log_count(line), 1);
}

TEST(a_damaged_file_is_abandoned)
{
	atomic_store(&played.is_damaged, true);
	give_up("it is damaged");
}

/* Nothing would find what is written there. */
TEST(a_moved_file_is_abandoned)
{
	atomic_store(&played.is_moved, true);
	give_up("it was moved");
	assert_true(stats.is_moved);
}

TEST(a_moved_file_is_detected_at_shutdown)
{
	put_many(1);
	start_thread();
	wait_for_answer(0);
	atomic_store(&played.is_moved, true);
	end();
	check_answers(1, 0);
	assert_int_equal(stats.lost, 0);
	assert_true(stats.is_moved);
}

TEST(a_shutdown_may_have_more_answers_than_fit_into_the_lane)
{
	put_many(1000);
	start_thread();
	end();
	check_answers(1000, 0);
	assert_int_equal(stats.changes, 1000);
	assert_int_equal(stats.lost, 0);
}

TEST(a_shutdown_ends_even_if_no_answers_are_read)
{
	int answered = 0;

	atomic_store(&played.stuck, true);
	put_many(1000);
	start_thread();
	end();
	for (int i = 0; i < 1000; i++)
		answered += atomic_load(&clients[i].answers);
	assert_int_equal(answered, LANE_SLOTS);
	assert_int_equal(stats.changes, 1000); /* they are on the disk anyway */
	assert_int_equal(atomic_load(&played.committed), 1000);
}

TEST(a_change_refused_by_the_file_blocks_no_other)
{
	atomic_store(&played.fails, 1); /* it is skipped in the second try too */
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(put_one(journal, i + 1, i + 1, i == 1 ? REFUSED : 5, &clients[i]),
				 0);
	start_thread();
	wait_until_it_failed(0);
	wait_for_answer(2);
	end();
	assert_int_equal(atomic_load(&clients[0].error), 0);
	assert_int_equal(atomic_load(&clients[1].answers), 1);
	assert_int_equal(atomic_load(&clients[1].error), PARAMS_NOT_WRITTEN);
	assert_int_equal(atomic_load(&clients[2].error), 0);
	assert_int_equal(stats.changes, 2);
	assert_int_equal(stats.lost, 1);
	assert_int_equal(log_count("a change is not written: it does not take that"), 1);
}

/* A record that cannot be read back is our bug, and must not be reported as written. */
TEST(an_invalid_record_is_reported)
{
	struct param param = int_param("a//b", 1, 1, 0);

	assert_int_equal(journal_reserve(journal), 0);
	journal_put(journal, &param, false, (struct plx_rpc_request *)&clients[0]);
	start_thread();
	end();
	check_answers(1, PARAMS_NOT_WRITTEN);
	assert_int_equal(stats.lost, 1);
}

TEST(room_is_reserved_before_a_change)
{
	for (uint32_t i = 0; i < ROOM; i++)
		assert_int_equal(put_one(journal, i + 1, 1, 0, NULL), 0);
	assert_int_equal(journal_reserve(journal), -EAGAIN);
	start_thread();
	while (journal_reserve(journal) != 0)
		rest_ns(PLX_NS_PER_MS);
	assert_int_equal(journal_reserve(journal), 0); /* the same */
	end();
	assert_int_equal(stats.changes, ROOM);
	assert_in_range(stats.commits, ROOM / GROUP_MAX, ROOM);
}

/* Whenever the process is killed, the file knows of every number given. */
TEST(numbers_are_marked_in_the_file_before_use)
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
