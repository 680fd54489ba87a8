/* SPDX-License-Identifier: BSD-3-Clause */
/* The lcore collects changes. If the thread is idle, it gets those of this turn as a batch, which
 * it writes as one transaction and gives back. Then the lcore answers those that wait, and hands
 * over what came meanwhile. Changes that nobody waits for are collected for LINGER_NS, which saves
 * most commits. The batch belongs to one of them at a time:
 *
 *     the lcore                                       the thread (writer.c)
 *     hand_over: post `filled`                        write_batches: wait for `filled`, write
 *     on_written: answer, and hand over again         fire `written` */
#include "journal.h"

#include "writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ROOM        (1u << 16) /* changes that are not on the disk */
#define AHEAD       (2 * ROOM) /* how far numbers are marked as given */
#define BATCH_MAX   4096       /* changes: how long the first of them waits for the others */
#define ANSWERS_MAX 256        /* per call, which delays all others */
#define LINGER_NS   (2 * PLX_NS_PER_MS)
#define RETRY_NS    PLX_NS_PER_S

enum stage {
	STAGE_IDLE,
	STAGE_LINGERS,  /* changes wait for more, as no client waits for them */
	STAGE_COLLECTS, /* what else comes in this turn */
	STAGE_WRITES,   /* the thread has the batch */
	STAGE_FAILED,   /* the batch waits for the next try */
	STAGE_ANSWERS,
};

struct journal {
	struct writer writer;
	journal_answer_fn answer;
	enum stage stage;
	struct changes waiting;
	uint32_t pending; /* changes waiting, and in the batch */
	uint32_t waiters; /* changes waiting for which a client waits */
	struct change *spare;
	struct numbers given;
	struct plx_timer later; /* the next hand-over */
	struct journal_stats stats;
	bool is_written;  /* the batch that is answered */
	bool is_given_up; /* on the file: nothing more is written; logged */
	bool ends;
};

/* Batches ------------------------------------------------------------------------------------- */

static struct numbers ahead_of(struct numbers given)
{
	return (struct numbers){given.revision + AHEAD, given.id + AHEAD};
}

/* At most ROOM numbers are given until the next batch is on the disk. Ids are not given more often
 * than revisions. */
static struct numbers next_mark(const struct journal *journal)
{
	return journal->given.revision + ROOM > journal->writer.marked.revision
		     ? ahead_of(journal->given)
		     : journal->writer.marked;
}

/* Changes that wait join the batch, also one that failed. */
static void fill_batch(struct journal *journal)
{
	struct change *change;

	for (int i = 0; i < BATCH_MAX && (change = STAILQ_FIRST(&journal->waiting)); i++) {
		STAILQ_REMOVE_HEAD(&journal->waiting, link);
		STAILQ_INSERT_TAIL(&journal->writer.batch, change, link);
		journal->waiters -= change->waiter != NULL;
		journal->writer.is_awaited |= change->waiter != NULL;
	}
}

static void hand_over(struct journal *journal)
{
	fill_batch(journal);
	assert(!STAILQ_EMPTY(&journal->writer.batch)); /* an empty one ends the thread */
	if (journal->is_given_up) {
		journal->stage = STAGE_ANSWERS;
		plx_signal_fire(&journal->writer.written);
	} else {
		journal->stage = STAGE_WRITES;
		journal->writer.mark = next_mark(journal);
		sem_post(&journal->writer.filled);
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
	journal->writer.is_awaited = false;
	if (STAILQ_EMPTY(&journal->waiting)) {
		journal->stage = STAGE_IDLE;
	} else if (journal->waiters || journal->pending >= BATCH_MAX) {
		journal->stage = STAGE_COLLECTS;
		plx_signal_fire(&journal->writer.written);
	} else {
		journal->stage = STAGE_LINGERS;
		plx_timer_start(&journal->later, LINGER_NS);
	}
}

static void give_up_file(struct journal *journal)
{
	bool is_moved = journal->writer.rc == -ESTALE;

	journal->is_given_up = true;
	journal->stats.is_moved = is_moved;
	plx_log(params_log, PLX_LOG_ERROR,
		"%s; this process keeps changes in memory only from now on, and answers that they "
		"are not written: stop it and %srestore the file from a backup",
		journal->writer.error, is_moved ? "put the file back, or " : "");
}

/* Retry until it is written, so that acknowledged changes survive while the process runs. Gives up
 * on a damaged file, which accepts nothing, and on one that was moved. */
static void take_result(struct journal *journal)
{
	journal->is_written = journal->writer.rc == 0;
	journal->stage = STAGE_ANSWERS;
	if (journal->writer.rc == 0) {
		journal->stats.commits++;
	} else if (journal->writer.rc == -EUCLEAN || journal->writer.rc == -ESTALE) {
		give_up_file(journal);
	} else if (journal->ends) {
		journal->is_given_up = true;
		plx_log(params_log, PLX_LOG_ERROR, "%s; %u change%s lost", journal->writer.error,
			journal->pending, journal->pending == 1 ? " is" : "s are");
	} else {
		plx_log(params_log, PLX_LOG_ERROR, "%s; trying again in 1 s",
			journal->writer.error);
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

	for (int i = 0; i < ANSWERS_MAX && (change = STAILQ_FIRST(&journal->writer.batch)); i++) {
		STAILQ_REMOVE_HEAD(&journal->writer.batch, link);
		answer_one(journal, change);
	}
	if (STAILQ_EMPTY(&journal->writer.batch))
		collect(journal);
	else
		plx_signal_fire(&journal->writer.written);
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
	journal->writer.mark = mark;
	return writer_write_now(&journal->writer);
}

/* A killed process has given numbers that it did not write. It had marked them. */
static int open_all(struct journal *journal, const char *path, struct store *store)
{
	int rc = tables_open(path, &journal->writer.tables);

	rc = rc ? rc : tables_load(journal->writer.tables, store, &journal->given);
	rc = rc ? rc : write_mark(journal, ahead_of(journal->given));
	return rc ? rc
		  : plx_signal_init(&journal->writer.written, plx_lcore_id(), on_written, journal);
}

static void destroy(struct journal *journal)
{
	plx_signal_fini(&journal->writer.written);
	sem_destroy(&journal->writer.filled);
	tables_close(journal->writer.tables);
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
	STAILQ_INIT(&journal->writer.batch);
	sem_init(&journal->writer.filled, 0, 0);
	plx_timer_init(&journal->later, on_time, journal);
	rc = open_all(journal, path, store);
	rc = rc ? rc : writer_start(&journal->writer, cpus);
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
	writer_stop(&journal->writer);
	/* The next start continues from the numbers given, or else skips some. */
	journal->stats.is_moved |= write_mark(journal, journal->given) == -ESTALE;
	*stats_out = journal->stats;
	destroy(journal);
}
