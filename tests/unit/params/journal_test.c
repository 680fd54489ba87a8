/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal, with a disk that fails: what is reported as written is on the disk, what is not is
 * reported as lost, and numbers are never given twice. */
#include "disk.h"
#include "int_param.h"
#include "log_capture.h"

#include "journal.h"
#include "plx_eal.h"
#include "plx_lcore.h"
#include "tables.h"

#define ROOM 65536

static struct store *store;
static struct journal *journal;
static struct journal_stats stats; /* at its end */

/* Of the changes that were put with a waiter. */
static unsigned put, answered, written;
static uint64_t last_revision; /* answered */

static void on_answer(void *waiter, uint64_t revision, bool is_written)
{
	uint32_t syncs_before = (uint32_t)(uintptr_t)waiter - 1;

	assert_true(revision > last_revision);
	assert_true(!is_written || disk.syncs > syncs_before);
	last_revision = revision;
	answered++;
	written += is_written;
}

static void open_it(void)
{
	assert_int_equal(store_create(&store), 0);
	assert_works(journal_open(disk_path, NULL, store, on_answer, &journal));
}

static int start(void **state)
{
	disk_clear();
	put = answered = written = 0;
	last_revision = 0;
	log_capture();
	open_it();
	return 0;
}

static void close_it(void)
{
	journal_close(journal, &stats);
	store_destroy(store);
	journal = NULL;
	store = NULL;
}

static int stop(void **state)
{
	plx_log_set_sink(NULL, NULL);
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

/* Return: as journal_reserve. */
static int put_one(uint64_t id, bool waits)
{
	char name[16];
	struct param param;
	int rc = journal_reserve(journal, waits);

	if (rc)
		return rc;
	snprintf(name, sizeof(name), "p%u", (unsigned)(id % 100));
	param = int_param(name, id, journal_next_revision(journal), 1);
	journal_put(journal, &param, waits ? (void *)(uintptr_t)(disk.syncs + 1) : NULL);
	put += waits;
	return 0;
}

static void put_many(unsigned count)
{
	for (unsigned i = 1; i <= count; i++)
		assert_int_equal(put_one(i, true), 0);
}

/* The thread may need this CPU. */
static void turn(void)
{
	if (plx_loop_turn() == 0)
		sched_yield();
}

static void wait_for_answers(void)
{
	wait_doing(answered == put, turn());
}

static void wait_for_failure(void)
{
	wait_doing(log_count("trying again in 1 s"), turn());
}

TEST(changes_are_answered_in_order_once_they_are_on_the_disk)
{
	for (unsigned i = 0; i < 300; i++) {
		put_many(1 + i % 4);
		if (i % 3)
			wait_for_answers();
	}
	close_it();
	assert_int_equal(answered, put);
	assert_int_equal(written, put);
	assert_int_equal(stats.changes, put);
	assert_in_range(stats.commits, 1, put - 1);
	assert_int_equal(stats.lost, 0);
}

TEST(a_failing_disk_is_retried)
{
	disk_set_fault(FAULT_FAILS);
	put_many(3);
	wait_for_failure();
	put_many(3); /* these join */
	assert_int_equal(answered, 0);
	disk.fault = FAULT_NONE;
	wait_for_answers();
	close_it();
	assert_int_equal(written, 6);
	assert_int_equal(stats.commits, 1);
}

TEST(changes_of_one_turn_are_one_transaction)
{
	assert_int_equal(put_one(1, false), 0);
	put_many(100);
	wait_for_answers();
	close_it();
	assert_int_equal(stats.commits, 1);
	assert_int_equal(stats.changes, 101);
}

TEST(a_change_that_nobody_waits_for_is_written_soon)
{
	unsigned before = disk.syncs;

	assert_int_equal(put_one(1, false), 0);
	wait_doing(disk.syncs > before, turn());
	close_it();
}

/* The thread has the batch when the end comes. */
TEST(a_write_that_fails_at_shutdown_is_retried)
{
	disk.slow_ns = 50 * PLX_NS_PER_MS;
	disk_set_fault(FAULT_ONE_STEP);
	put_many(1);
	plx_loop_turn();
	close_it();
	assert_int_equal(written, 1);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(log_count("trying again in 1 s"), 1);
}

TEST(changes_lost_at_shutdown_are_reported)
{
	disk_set_fault(FAULT_FAILS);
	put_many(1000);
	wait_for_failure();
	close_it();
	assert_int_equal(answered, put);
	assert_int_equal(written, 0);
	assert_int_equal(stats.changes, 0);
	assert_int_equal(stats.lost, 1000);
	assert_int_equal(log_count("1000 changes are lost"), 1);
}

/* Nothing waits for a file that will never accept it, or where nothing would find it. */
static void check_given_up(const char *why)
{
	char line[128];

	put_many(5);
	wait_for_answers();
	put_many(5);
	close_it();
	assert_int_equal(answered, put);
	assert_int_equal(written, 0);
	assert_int_equal(stats.lost, 10);
	assert_int_equal(stats.commits, 0);
	snprintf(line, sizeof(line), "%s; this process keeps changes in memory only", why);
	assert_int_equal(log_count(line), 1);
}

TEST(a_damaged_file_is_abandoned)
{
	disk_set_fault(FAULT_DAMAGED);
	check_given_up("it is damaged: database disk image is malformed");
	assert_false(stats.is_moved);
}

TEST(a_moved_file_is_abandoned)
{
	disk.is_moved = true;
	check_given_up("it was moved, removed or replaced while this process had it");
	assert_true(stats.is_moved);
}

/* The file has that id under another name. */
TEST(a_change_refused_by_the_file_blocks_no_other)
{
	put_many(1);
	wait_for_answers();
	disk_set_fault(FAULT_FAILS);
	assert_int_equal(put_one(100, true), 0);
	wait_for_failure();
	struct param same_id = int_param("other", 1, 0, 1);
	assert_int_equal(journal_reserve(journal, true), 0);
	same_id.revision = journal_next_revision(journal);
	put++;
	journal_put(journal, &same_id, (void *)1);
	assert_int_equal(put_one(101, true), 0);
	wait_doing(log_count("trying again in 1 s") == 2, turn());
	disk.fault = FAULT_NONE;
	wait_for_answers();
	close_it();
	assert_int_equal(answered, 4);
	assert_int_equal(written, 3);
	assert_int_equal(stats.lost, 1);
	assert_int_equal(log_count("a change is not written: "), 1);
}

TEST(room_is_reserved_before_a_change)
{
	disk.slow_ns = 50 * PLX_NS_PER_MS;
	for (uint32_t i = 0; i < ROOM / 2; i++)
		assert_int_equal(put_one(1, false), 0);
	assert_int_equal(put_one(1, false), -EAGAIN); /* the rest is for those that wait */
	put_many(ROOM / 2);
	assert_int_equal(journal_reserve(journal, true), -EAGAIN);
	wait_doing(journal_reserve(journal, true) == 0, turn());
	assert_int_equal(journal_reserve(journal, true), 0); /* the same */
	close_it();
	assert_int_equal(stats.changes, ROOM);
}

/* Return: the numbers after which a new start continues. */
static struct numbers load_numbers(void)
{
	struct numbers given;
	struct tables *tables;
	struct store *loaded;

	assert_int_equal(store_create(&loaded), 0);
	assert_works(tables_open(disk_path, &tables));
	assert_works(tables_load(tables, loaded, &given));
	tables_close(tables);
	store_destroy(loaded);
	return given;
}

/* Clients that do not wait for the disk have seen all of them. */
TEST(numbers_given_before_a_power_cut_are_not_reused)
{
	static const unsigned counts[] = {1, 70000, 200000};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(counts); i++) {
		struct numbers given = {0}, loaded;

		for (unsigned j = 0; j < counts[i] + ROOM && journal_reserve(journal, false) == 0;
		     j++) {
			given.id = journal_next_id(journal);
			assert_int_equal(put_one(given.id, false), 0);
			if (j < counts[i])
				wait_doing(journal_reserve(journal, false) == 0, turn());
			if (j == counts[i])
				disk_set_fault(FAULT_POWER_CUT);
		}
		given.revision = journal_next_revision(journal) - 1;
		close_it();
		disk_lose_power();
		loaded = load_numbers();
		assert_in_range(loaded.revision, given.revision, given.revision + 2 * ROOM);
		assert_in_range(loaded.id, given.id, given.id + 2 * ROOM);
		open_it();
	}
	close_it();
}

static int up(void **state)
{
	return disk_init(state) || plx_eal_init(&(struct plx_eal_conf){.huge = PLX_HUGE_NONE});
}

PLX_FIXTURE(down, plx_eal_fini())

PLX_TEST_MAIN_WITH(up, down)
