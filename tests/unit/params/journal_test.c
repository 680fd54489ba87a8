/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal and its file: what a start knows of the previous run, however that ended. */
#include "store_file.h"

#include "journal.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

struct numbers {
	uint64_t revision;
	uint64_t id;
};

static void open_it(struct store **store, struct journal **journal)
{
	assert_int_equal(store_create(store), 0);
	assert_works(journal_open(path, *store, journal));
}

static void start_thread(struct journal *journal)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	assert_int_equal(journal_start(journal, &cpus), 0);
}

/* Define a parameter, like a client that does not wait for the disk. */
static struct numbers define(struct store *store, struct journal *journal, const char *name)
{
	struct param_kind kind = {.type = PARAM_INT};
	struct param_value value = {PARAM_INT, .integer = 1};
	const struct param *param;

	assert_int_equal(journal_reserve(journal), 0);
	assert_int_equal(store_define(store, name, strlen(name), &kind, &value, 1, &param), 0);
	journal_put(journal, param, false, NULL);
	return (struct numbers){param->revision, param->id};
}

/* A process that defines a parameter, reports its numbers, and is killed before it writes any. */
static struct numbers define_and_be_killed(const char *name)
{
	struct numbers told;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		struct journal *journal;
		struct store *store;

		open_it(&store, &journal);
		told = define(store, journal, name);
		if (write(ends[1], &told, sizeof(told)) != sizeof(told))
			_exit(1);
		pause();
	}
	assert_int_equal(read(ends[0], &told, sizeof(told)), sizeof(told));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	return told;
}

TEST(numbers_reported_before_a_kill_are_not_reused)
{
	struct numbers last = {0};

	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), "new%d", i);
		struct numbers told = define_and_be_killed(name);
		assert_true(told.revision > last.revision);
		assert_true(told.id > last.id);
		last = told;
	}
}

TEST(an_orderly_shutdown_leaves_no_gap_in_the_numbers)
{
	for (uint64_t i = 1; i <= 3; i++) {
		struct journal_stats stats;
		struct journal *journal;
		struct store *store;
		char name[24];

		open_it(&store, &journal);
		assert_int_equal(store_count(store), i - 1);
		start_thread(journal);
		snprintf(name, sizeof(name), "a%" PRIu64, i);
		struct numbers told = define(store, journal, name);
		assert_int_equal(told.revision, i);
		assert_int_equal(told.id, i);
		journal_close(journal, &stats);
		assert_int_equal(stats.changes, 1);
		assert_int_equal(stats.lost, 0);
		store_destroy(store);
	}
}

TEST(a_journal_that_was_not_started_leaves_no_gap_in_the_numbers)
{
	struct journal *journal;
	struct store *store;

	for (int i = 0; i < 2; i++) {
		open_it(&store, &journal);
		assert_int_equal(store_revision(store), 0);
		assert_int_equal(store_last_id(store), 0);
		journal_close(journal, NULL);
		store_destroy(store);
	}
}

TEST(two_journals_cannot_share_a_file)
{
	struct journal *journal, *other;
	struct store *store, *others;

	open_it(&store, &journal);
	journal_close(journal, NULL);
	store_destroy(store);
	open_it(&store, &journal);
	assert_int_equal(store_create(&others), 0);
	assert_fails(journal_open(path, others, &other), -EBUSY, "another process has it");
	store_destroy(others);
	journal_close(journal, NULL);
	store_destroy(store);
}

PLX_TEST_MAIN()
