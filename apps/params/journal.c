/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal.h"

#include "plx_ring.h"
#include "tables.h"
#include "wire.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#define ROOM      (1u << 16) /* changes that wait */
#define GROUP_MAX 4096       /* changes of one transaction */
#define AGAIN_NS  (100 * PLX_NS_PER_US)
#define FAILED_NS PLX_NS_PER_S

/* On its way to the disk. */
struct change {
	struct plx_rpc_request *request;
	uint64_t revision;
	uint32_t length;
	uint8_t record[];
};

struct journal {
	struct tables *tables;
	struct plx_ring *ring; /* of struct change *: from the lcore to the thread */
	sem_t filled;
	pthread_t thread;
	bool started;
	PLX_ATOMIC(bool) ending;
	struct journal_stats stats; /* the thread's, while it runs */
	struct change *group[GROUP_MAX];
	uint32_t count;
};

static struct plx_log_component journal_log = {.name = "params"};

int journal_open(const char *path, struct store *store, struct journal **journal_out)
{
	struct journal *journal = calloc(1, sizeof(*journal));
	struct plx_ring_attr attr = {
		.kind = PLX_RING_SPSC,
		.capacity = ROOM,
		.element_bytes = sizeof(struct change *),
	};
	int rc;

	if (!journal)
		return plx_fail(ENOMEM, "out of memory");
	rc = tables_open(path, &journal->tables);
	rc = rc ? rc : tables_load(journal->tables, store);
	rc = rc ? rc : plx_ring_create(&attr, &journal->ring);
	/* What a process that was killed had told, and not yet written, has its revisions still. */
	if (rc == 0 && store_revision(store))
		store_set_revision(store, store_revision(store) + ROOM + GROUP_MAX, 0);
	if (rc) {
		tables_close(journal->tables);
		free(journal);
		return rc;
	}
	sem_init(&journal->filled, 0, 0);
	*journal_out = journal;
	return 0;
}

/* The thread -------------------------------------------------------------------------------------
 */

static void sleep_ns(uint64_t ns)
{
	struct timespec time = {(time_t)(ns / PLX_NS_PER_S), (long)(ns % PLX_NS_PER_S)};

	nanosleep(&time, NULL);
}

static int write_group(struct journal *journal)
{
	int rc = tables_begin(journal->tables);

	for (uint32_t i = 0; rc == 0 && i < journal->count; i++) {
		const struct change *change = journal->group[i];
		struct param param;
		bool removed;

		/* It is ours: nothing is wrong with it. */
		if (record_read(change->record, change->length, &param, &removed))
			continue;
		rc = removed ? tables_remove(journal->tables, &param)
			     : tables_put(journal->tables, &param);
	}
	rc = rc ? rc : tables_commit(journal->tables);
	if (rc)
		tables_roll_back(journal->tables);
	return rc;
}

/* Until the disk takes it: what was said to be set is not forgotten while the process lives. */
static void write_surely(struct journal *journal)
{
	while (write_group(journal) != 0) {
		journal->stats.failures++;
		plx_log(&journal_log, PLX_LOG_ERROR, "%s; trying again in 1 s", plx_error());
		if (plx_atomic_load(&journal->ending, PLX_ACQUIRE)) {
			plx_log(&journal_log, PLX_LOG_ERROR, "%u changes are lost", journal->count);
			return;
		}
		sleep_ns(FAILED_NS);
	}
	journal->stats.commits++;
	journal->stats.changes += journal->count;
}

static void answer(const struct change *change)
{
	uint64_t revision = htole64(change->revision);
	int rc;

	do {
		rc = plx_rpc_reply(change->request, &revision, sizeof(revision));
		if (rc)
			sleep_ns(AGAIN_NS);
	} while (rc == -EAGAIN || rc == -ENOMEM);
}

static void end_group(struct journal *journal)
{
	for (uint32_t i = 0; i < journal->count; i++) {
		if (journal->group[i]->request)
			answer(journal->group[i]);
		free(journal->group[i]);
	}
	journal->count = 0;
}

static void *write_all(void *arg)
{
	struct journal *journal = arg;

	for (;;) {
		/* J1 -> J2: what was put before it ended is there to be popped. */
		bool ending = plx_atomic_load(&journal->ending, PLX_ACQUIRE); /* J2 */

		journal->count = plx_ring_pop_burst(journal->ring, journal->group, GROUP_MAX);
		if (journal->count) {
			write_surely(journal);
			end_group(journal);
		} else if (ending) {
			return NULL;
		} else {
			while (sem_wait(&journal->filled) != 0)
				;
		}
	}
}

/* The lcore --------------------------------------------------------------------------------------
 */

int journal_start(struct journal *journal, const cpu_set_t *cpus)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	rc = pthread_create(&journal->thread, &attr, write_all, journal);
	pthread_attr_destroy(&attr);
	if (rc)
		return plx_fail(rc, "the journal's thread cannot be started: %s", strerror(rc));
	journal->started = true;
	return 0;
}

bool journal_is_full(const struct journal *journal)
{
	struct plx_ring_stats stats;

	plx_ring_stats(journal->ring, &stats);
	return stats.depth >= stats.capacity;
}

int journal_put(struct journal *journal, const struct param *param, bool removed,
		struct plx_rpc_request *request)
{
	uint8_t record[WIRE_RECORD_MAX];
	size_t length = record_write(param, removed, record);
	struct change *change = malloc(sizeof(*change) + length);
	int waiting;

	if (!change)
		return plx_fail(ENOMEM, "out of memory");
	*change = (struct change){request, param->revision, (uint32_t)length};
	memcpy(change->record, record, length);
	if (!plx_ring_push(journal->ring, &change)) {
		free(change);
		return -EAGAIN;
	}
	/* One is enough to wake it: it looks until there is nothing. */
	if (sem_getvalue(&journal->filled, &waiting) == 0 && waiting == 0)
		sem_post(&journal->filled);
	return 0;
}

void journal_close(struct journal *journal, void (*told)(const struct journal_stats *stats))
{
	if (!journal)
		return;
	if (journal->started) {
		plx_atomic_store(&journal->ending, true, PLX_RELEASE); /* J1 */
		sem_post(&journal->filled);
		pthread_join(journal->thread, NULL);
	}
	if (told)
		told(&journal->stats);
	sem_destroy(&journal->filled);
	plx_ring_destroy(journal->ring);
	tables_close(journal->tables);
	free(journal);
}
