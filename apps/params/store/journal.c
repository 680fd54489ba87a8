/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal: the lcore's side. */
#include "journal_priv.h"

#include "plx_lcore.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ANSWERS_NS (5 * PLX_NS_PER_S) /* time limit for the last answers of the thread */

/* Opening ----------------------------------------------------------------------------------------
 */

static struct marks given(const struct store *store)
{
	return (struct marks){store_revision(store), store_last_id(store)};
}

int journal_mark_ahead(struct journal *journal, struct marks given)
{
	struct marks ahead = {given.revision + AHEAD, given.id + AHEAD};
	int rc;

	/* Never backwards: the other mark may have been used up to its limit. */
	if (ahead.revision < journal->marks.revision)
		ahead.revision = journal->marks.revision;
	if (ahead.id < journal->marks.id)
		ahead.id = journal->marks.id;
	rc = tables_mark(journal->tables, ahead.revision, ahead.id);
	if (rc == 0)
		journal->marks = ahead;
	return rc;
}

/* A killed process has given numbers that it did not write. It had marked them. */
static int mark_first(struct journal *journal)
{
	int rc = tables_begin(journal->tables);

	rc = rc ? rc : journal_mark_ahead(journal, given(journal->store));
	return rc ? rc : tables_commit(journal->tables);
}

/* After an orderly end the numbers given are known, and the next start continues from there. If
 * they cannot be written, it skips some. Return: whether the file is still at its path. */
static bool mark_last(struct journal *journal)
{
	struct marks last = given(journal->store);
	int rc = tables_begin(journal->tables);

	if (rc)
		return true;
	rc = tables_mark(journal->tables, last.revision, last.id);
	rc = rc ? rc : tables_commit(journal->tables);
	if (rc)
		tables_roll_back(journal->tables);
	return rc != -ESTALE;
}

static int open_all(struct journal *journal, const char *path)
{
	struct plx_ring_attr attr = {
		.kind = PLX_RING_SPSC,
		.capacity = ROOM,
		.element_bytes = sizeof(struct change *),
	};
	int rc = tables_open(path, &journal->tables);

	rc = rc ? rc : tables_load(journal->tables, journal->store);
	rc = rc ? rc : plx_ring_create(&attr, &journal->ring);
	return rc ? rc : mark_first(journal);
}

int journal_open(const char *path, struct store *store, struct journal **journal_out)
{
	struct journal *journal = calloc(1, sizeof(*journal));
	int rc;

	if (!journal)
		return plx_fail(ENOMEM, "out of memory");
	journal->store = store;
	rc = open_all(journal, path);
	if (rc) {
		plx_ring_destroy(journal->ring);
		tables_close(journal->tables);
		free(journal);
		return rc;
	}
	sem_init(&journal->filled, 0, 0);
	*journal_out = journal;
	return 0;
}

int journal_start(struct journal *journal, const cpu_set_t *cpus)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	rc = pthread_create(&journal->thread, &attr, journal_write_all, journal);
	pthread_attr_destroy(&attr);
	if (rc)
		return plx_fail(rc, "the journal's thread cannot be started: %s", strerror(rc));
	journal->started = true;
	return 0;
}

/* Changes ----------------------------------------------------------------------------------------
 */

int journal_reserve(struct journal *journal)
{
	if (plx_ring_depth(journal->ring) >= ROOM)
		return -EAGAIN;
	if (!journal->spare)
		journal->spare = malloc(sizeof(struct change) + WIRE_RECORD_MAX);
	return journal->spare ? 0 : plx_fail(ENOMEM, "out of memory");
}

void journal_put(struct journal *journal, const struct param *param, bool removed,
		 struct plx_rpc_request *request)
{
	struct change *change = journal->spare, *shorter;

	*change = (struct change){
		.request = request,
		.revision = param->revision,
		.id = param->id,
	};
	change->length = (uint32_t)record_write(param, removed, change->record);
	/* Tens of thousands may be queued, so each keeps only what it needs. */
	shorter = realloc(change, sizeof(*change) + change->length);
	if (shorter)
		change = shorter;
	journal->spare = NULL;
	/* There is room: it was reserved, and this is the only producer. */
	plx_ring_push(journal->ring, &change);
	/* After each push, so none is missed. It is a system call only while the thread sleeps. */
	sem_post(&journal->filled);
}

/* The end ----------------------------------------------------------------------------------------
 */

/* The thread answers by messages, and the lcore's lane has limited room: empty it until the thread
 * has ended. A thread still waiting for room then continues without answering. */
static void join(struct journal *journal)
{
	uint64_t until_ns = plx_time_add(plx_now_ns(), ANSWERS_NS);

	/* J1 -> J2: earlier puts are visible to the thread. */
	plx_atomic_store(&journal->stage, STAGE_ENDS, PLX_RELEASE);
	sem_post(&journal->filled);
	while (pthread_tryjoin_np(journal->thread, NULL) == EBUSY) {
		if (plx_now_ns() >= until_ns) {
			/* Relaxed: publishes no other data. */
			plx_atomic_store(&journal->stage, STAGE_IS_LATE, PLX_RELAXED);
			pthread_join(journal->thread, NULL);
			return;
		}
		plx_loop_turn();
	}
}

void journal_close(struct journal *journal, struct journal_stats *stats_out)
{
	if (!journal)
		return;
	if (journal->started)
		join(journal);
	journal->stats.is_moved |= !mark_last(journal);
	if (stats_out)
		*stats_out = journal->stats;
	sem_destroy(&journal->filled);
	plx_ring_destroy(journal->ring);
	tables_close(journal->tables);
	free(journal->spare);
	free(journal);
}
