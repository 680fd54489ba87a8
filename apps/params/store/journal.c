/* SPDX-License-Identifier: BSD-3-Clause */
/* The lcore collects changes. If the thread is idle, it gets those of this turn as a batch, which
 * it writes as one transaction and gives back. Then the lcore answers those that wait, and hands
 * over what came meanwhile. Changes that nobody waits for are collected for LINGER_NS, which saves
 * most commits. The batch belongs to one of them at a time:
 *
 *     the lcore                                       the thread
 *     hand_over: post `filled`                        write_batches: wait for `filled`, write
 *     on_written: answer, and hand over again         fire `written` */
#include "journal.h"

#include "plx_lcore.h"
#include "tables.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define ROOM        (1u << 16) /* changes that are not on the disk */
#define AHEAD       (2 * ROOM) /* how far numbers are marked as given */
#define BATCH_MAX   4096       /* changes: how long the first of them waits for the others */
#define ANSWERS_MAX 256        /* per call, which delays all others */
#define LINGER_NS   (2 * PLX_NS_PER_MS)
#define SPIN_NS     (50 * PLX_NS_PER_US)
#define RETRY_NS    PLX_NS_PER_S
#define ERROR_BYTES 512

/* A change on its way to the disk. */
struct change {
	STAILQ_ENTRY(change) link;
	void *waiter;
	bool is_refused; /* the file rejected it */
	struct param param;
	char bytes[]; /* its name and text */
};

STAILQ_HEAD(changes, change);

enum stage {
	STAGE_IDLE,
	STAGE_LINGERS,  /* what nobody waits for */
	STAGE_COLLECTS, /* what else comes in this turn */
	STAGE_WRITES,   /* the thread has the batch */
	STAGE_FAILED,   /* the batch waits for the next try */
	STAGE_ANSWERS,
};

struct journal {
	struct tables *tables;
	journal_answer_fn answer;
	pthread_t thread;
	sem_t filled; /* the thread has a batch; an empty one ends it */
	struct plx_signal written;

	/* Used by the lcore: */
	enum stage stage;
	struct changes waiting;
	uint32_t pending; /* changes waiting, and in the batch */
	uint32_t waiters; /* of changes waiting */
	struct change *spare;
	struct numbers given;
	struct plx_timer later; /* the next hand-over */
	struct journal_stats stats;
	bool is_written;  /* the batch that is answered */
	bool is_given_up; /* on the file: nothing more is written; logged */
	bool ends;

	/* Used by the thread while it has the batch, otherwise by the lcore: */
	struct changes batch;
	struct numbers mark, marked; /* in the batch; on the disk */
	int rc;
	char error[ERROR_BYTES];
};

/* The thread ---------------------------------------------------------------------------------- */

/* Skips changes that the file rejects; they would block all others forever.
 * Return: 0; -EUCLEAN; -EIO. */
static int write_changes(struct journal *journal)
{
	struct change *change;

	STAILQ_FOREACH (change, &journal->batch, link) {
		int rc = change->is_refused ? 0 : tables_put(journal->tables, &change->param);

		if (rc == -EINVAL) {
			change->is_refused = true;
			plx_log(params_log, PLX_LOG_ERROR, "a change is not written: %s",
				plx_error());
		} else if (rc) {
			return rc;
		}
	}
	return 0;
}

static int write_batch(struct journal *journal)
{
	int rc = tables_begin(journal->tables);

	if (rc)
		return rc;
	rc = write_changes(journal);
	if (rc == 0 && journal->mark.revision != journal->marked.revision)
		rc = tables_mark(journal->tables, &journal->mark);
	rc = tables_end(journal->tables, rc);
	if (rc == 0)
		journal->marked = journal->mark;
	return rc;
}

/* The next batch mostly comes as soon as this one is answered. */
static void wait_for_batch(struct journal *journal)
{
	uint64_t until_ns = plx_now_ns() + SPIN_NS;

	while (sem_trywait(&journal->filled) != 0) {
		if (plx_now_ns() < until_ns)
			plx_pause();
		else if (sem_wait(&journal->filled) == 0)
			return;
	}
}

static void *write_batches(void *arg)
{
	struct journal *journal = arg;

	for (;;) {
		wait_for_batch(journal);
		if (STAILQ_EMPTY(&journal->batch))
			return NULL;
		journal->rc = write_batch(journal);
		if (journal->rc)
			snprintf(journal->error, sizeof(journal->error), "%s", plx_error());
		plx_signal_fire(&journal->written);
	}
}

/* Batches ------------------------------------------------------------------------------------- */

static struct numbers ahead_of(struct numbers given)
{
	return (struct numbers){given.revision + AHEAD, given.id + AHEAD};
}

/* At most ROOM numbers are given until the next batch is on the disk. Ids are not given more often
 * than revisions. */
static struct numbers next_mark(const struct journal *journal)
{
	return journal->given.revision + ROOM > journal->marked.revision ? ahead_of(journal->given)
									 : journal->marked;
}

/* Changes that wait join the batch, also one that failed. */
static void fill_batch(struct journal *journal)
{
	struct change *change;

	for (int i = 0; i < BATCH_MAX && (change = STAILQ_FIRST(&journal->waiting)); i++) {
		STAILQ_REMOVE_HEAD(&journal->waiting, link);
		STAILQ_INSERT_TAIL(&journal->batch, change, link);
		journal->waiters -= change->waiter != NULL;
	}
}

static void hand_over(struct journal *journal)
{
	fill_batch(journal);
	if (journal->is_given_up) {
		journal->stage = STAGE_ANSWERS;
		plx_signal_fire(&journal->written);
	} else {
		journal->stage = STAGE_WRITES;
		journal->mark = next_mark(journal);
		sem_post(&journal->filled);
	}
}

static void on_time(struct plx_timer *timer, void *arg)
{
	hand_over(arg);
}

/* The thread is idle. */
static void collect(struct journal *journal)
{
	plx_timer_stop(&journal->later);
	if (STAILQ_EMPTY(&journal->waiting)) {
		journal->stage = STAGE_IDLE;
	} else if (journal->waiters) {
		journal->stage = STAGE_COLLECTS;
		plx_signal_fire(&journal->written);
	} else {
		journal->stage = STAGE_LINGERS;
		plx_timer_start(&journal->later, LINGER_NS);
	}
}

static void give_up_file(struct journal *journal)
{
	bool is_moved = journal->rc == -ESTALE;

	journal->is_given_up = true;
	journal->stats.is_moved = is_moved;
	plx_log(params_log, PLX_LOG_ERROR,
		"%s; this process keeps changes in memory only from now on, and answers that they "
		"are not written: stop it and %srestore the file from a backup",
		journal->error, is_moved ? "put the file back, or " : "");
}

/* Retry until it is written, so that acknowledged changes survive while the process runs. Gives up
 * on a damaged file, which accepts nothing, and on one that was moved. */
static void take_result(struct journal *journal)
{
	journal->is_written = journal->rc == 0;
	journal->stage = STAGE_ANSWERS;
	if (journal->rc == 0) {
		journal->stats.commits++;
	} else if (journal->rc == -EUCLEAN || journal->rc == -ESTALE) {
		give_up_file(journal);
	} else if (journal->ends) {
		journal->is_given_up = true;
		plx_log(params_log, PLX_LOG_ERROR, "%s; %u change%s lost", journal->error,
			journal->pending, journal->pending == 1 ? " is" : "s are");
	} else {
		plx_log(params_log, PLX_LOG_ERROR, "%s; trying again in 1 s", journal->error);
		journal->stage = STAGE_FAILED;
		plx_timer_start(&journal->later, RETRY_NS);
	}
}

static void answer_one(struct journal *journal, struct change *change)
{
	bool is_there = journal->is_written && !change->is_refused;

	journal->pending--;
	journal->stats.changes += is_there;
	journal->stats.lost += !is_there;
	if (change->waiter)
		journal->answer(change->waiter, change->param.revision, is_there);
	free(change);
}

static void answer_some(struct journal *journal)
{
	struct change *change;

	for (int i = 0; i < ANSWERS_MAX && (change = STAILQ_FIRST(&journal->batch)); i++) {
		STAILQ_REMOVE_HEAD(&journal->batch, link);
		answer_one(journal, change);
	}
	if (STAILQ_EMPTY(&journal->batch))
		collect(journal);
	else
		plx_signal_fire(&journal->written);
}

static void on_written(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct journal *journal = arg;

	if (journal->stage == STAGE_COLLECTS)
		hand_over(journal);
	else if (journal->stage == STAGE_WRITES)
		take_result(journal);
	if (journal->stage == STAGE_ANSWERS)
		answer_some(journal);
}

/* Changes ------------------------------------------------------------------------------------- */

uint64_t journal_next_revision(const struct journal *journal)
{
	return journal->given.revision + 1;
}

uint64_t journal_next_id(const struct journal *journal)
{
	return journal->given.id + 1;
}

int journal_reserve(struct journal *journal, bool waits)
{
	if (journal->pending >= (waits ? ROOM : ROOM / 2))
		return -EAGAIN;
	if (!journal->spare)
		journal->spare = malloc(sizeof(struct change) + PARAM_NAME_MAX + PARAM_TEXT_MAX);
	return journal->spare ? 0 : plx_fail(ENOMEM, "out of memory");
}

void journal_put(struct journal *journal, const struct param *param, void *waiter)
{
	uint32_t text = param->value.type == PARAM_TEXT ? param->value.text.length : 0;
	struct change *change = journal->spare, *shorter;

	/* Tens of thousands may be pending, so each keeps only what it needs. */
	shorter = realloc(change, sizeof(*change) + param->name_length + text);
	if (shorter)
		change = shorter;
	journal->spare = NULL;
	*change = (struct change){.waiter = waiter, .param = *param};
	change->param.name = memcpy(change->bytes, param->name, param->name_length);
	if (text)
		change->param.value.text.bytes = memcpy(change->bytes + param->name_length,
							param->value.text.bytes, text);
	STAILQ_INSERT_TAIL(&journal->waiting, change, link);
	journal->pending++;
	journal->waiters += waiter != NULL;
	if (journal->given.revision < param->revision)
		journal->given.revision = param->revision;
	if (journal->given.id < param->id)
		journal->given.id = param->id;
	if (journal->stage == STAGE_IDLE || (journal->stage == STAGE_LINGERS && waiter))
		collect(journal);
}

/* Begin and end ------------------------------------------------------------------------------- */

static int write_mark(struct journal *journal, struct numbers mark)
{
	journal->mark = mark;
	return write_batch(journal);
}

static int start_thread(struct journal *journal, const cpu_set_t *cpus)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	if (cpus)
		pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	rc = pthread_create(&journal->thread, &attr, write_batches, journal);
	pthread_attr_destroy(&attr);
	return rc ? plx_fail(rc, "the journal's thread cannot be started: %s", strerror(rc)) : 0;
}

/* A killed process has given numbers that it did not write. It had marked them. */
static int open_all(struct journal *journal, const char *path, struct store *store)
{
	int rc = tables_open(path, &journal->tables);

	rc = rc ? rc : tables_load(journal->tables, store, &journal->given);
	rc = rc ? rc : write_mark(journal, ahead_of(journal->given));
	return rc ? rc : plx_signal_init(&journal->written, plx_lcore_id(), on_written, journal);
}

static void destroy(struct journal *journal)
{
	plx_signal_fini(&journal->written);
	sem_destroy(&journal->filled);
	tables_close(journal->tables);
	free(journal->spare);
	free(journal);
}

int journal_open(const char *path, const cpu_set_t *cpus, struct store *store,
		 journal_answer_fn answer, struct journal **journal_out)
{
	struct journal *journal = calloc(1, sizeof(*journal));
	int rc;

	if (!journal)
		return plx_fail(ENOMEM, "out of memory");
	journal->answer = answer;
	STAILQ_INIT(&journal->waiting);
	STAILQ_INIT(&journal->batch);
	sem_init(&journal->filled, 0, 0);
	plx_timer_init(&journal->later, on_time, journal);
	rc = open_all(journal, path, store);
	rc = rc ? rc : start_thread(journal, cpus);
	if (rc) {
		destroy(journal);
		return rc;
	}
	*journal_out = journal;
	return 0;
}

/* Until a write fails. */
static void write_rest(struct journal *journal)
{
	while (journal->stage != STAGE_IDLE && journal->stage != STAGE_FAILED) {
		if (plx_loop_turn() == 0)
			sched_yield(); /* the thread may need this CPU */
	}
}

void journal_close(struct journal *journal, struct journal_stats *stats_out)
{
	if (!journal)
		return;
	write_rest(journal);
	journal->ends = true;
	if (journal->stage == STAGE_FAILED) {
		plx_timer_stop(&journal->later);
		hand_over(journal);
		write_rest(journal);
	}
	sem_post(&journal->filled);
	pthread_join(journal->thread, NULL);
	/* The next start continues from the numbers given, or else skips some. */
	journal->stats.is_moved |= write_mark(journal, journal->given) == -ESTALE;
	*stats_out = journal->stats;
	destroy(journal);
}
