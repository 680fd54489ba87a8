/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal: the thread's side. */
#include "journal_priv.h"

#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AGAIN_NS  (100 * PLX_NS_PER_US)
#define FAILED_NS PLX_NS_PER_S

static void sleep_ns(uint64_t ns)
{
	struct timespec time = {(time_t)(ns / PLX_NS_PER_S), (long)(ns % PLX_NS_PER_S)};

	nanosleep(&time, NULL);
}

static enum stage stage_of(struct journal *journal)
{
	return (enum stage)plx_atomic_load(&journal->stage, PLX_ACQUIRE); /* J2 <- J1 */
}

/* A group ----------------------------------------------------------------------------------------
 */

/* Return: 0; -EINVAL the file will never accept it; -EIO. */
static int write_change(struct journal *journal, const struct change *change)
{
	struct param param;
	bool removed;
	const char *wrong = record_read(change->record, change->length, &param, &removed);

	if (wrong)
		return plx_fail(EINVAL, "%s", wrong);
	return removed ? tables_remove(journal->tables, &param)
		       : tables_put(journal->tables, &param);
}

/* Skips changes that the file rejects; they would block all others forever.
 * Return: 0; -EIO. */
static int write_changes(struct journal *journal)
{
	for (uint32_t i = 0; i < journal->count; i++) {
		struct change *change = journal->group[i];
		int rc = change->is_refused ? 0 : write_change(journal, change);

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

/* The highest numbers in the group. */
static struct marks given_in(const struct journal *journal)
{
	struct marks given = {0};

	for (uint32_t i = 0; i < journal->count; i++) {
		const struct change *change = journal->group[i];

		if (change->revision > given.revision)
			given.revision = change->revision;
		if (change->id > given.id)
			given.id = change->id;
	}
	return given;
}

/* Whether numbers may be given before the next commit that this one must mark. */
static bool are_near(const struct marks *marks, const struct marks *given)
{
	return given->revision + UNWRITTEN_MAX > marks->revision ||
	       given->id + UNWRITTEN_MAX > marks->id;
}

static int write_group(struct journal *journal)
{
	struct marks before = journal->marks, given = given_in(journal);
	int rc = tables_begin(journal->tables);

	rc = rc ? rc : write_changes(journal);
	if (rc == 0 && are_near(&before, &given))
		rc = journal_mark_ahead(journal, given);
	rc = rc ? rc : tables_commit(journal->tables);
	if (rc) {
		tables_roll_back(journal->tables);
		journal->marks = before;
	}
	return rc;
}

/* error: -EUCLEAN or -ESTALE. */
static void give_up_file(struct journal *journal, int error)
{
	journal->is_given_up = true;
	journal->stats.is_moved = error == -ESTALE;
	plx_log(params_log, PLX_LOG_ERROR,
		"%s; this process keeps changes in memory only from now on, and answers that they "
		"are not written: stop it and %srestore the file from a backup",
		plx_error(), error == -ESTALE ? "put the file back, or " : "");
}

/* Retry until it is written, so that acknowledged changes survive while the process runs. Gives up
 * on a damaged file, which accepts nothing, and on one that was moved. Return: whether it is on the
 * disk. */
static bool write_surely(struct journal *journal)
{
	int rc;

	while (!journal->is_given_up && (rc = write_group(journal)) != 0) {
		journal->stats.failures++;
		if (rc == -EUCLEAN || rc == -ESTALE) {
			give_up_file(journal, rc);
			break;
		}
		if (stage_of(journal) != STAGE_RUNS) {
			plx_log(params_log, PLX_LOG_ERROR, "%s; %u change%s lost", plx_error(),
				journal->count, journal->count == 1 ? " is" : "s are");
			return false;
		}
		plx_log(params_log, PLX_LOG_ERROR, "%s; trying again in 1 s", plx_error());
		sleep_ns(FAILED_NS);
	}
	if (journal->is_given_up)
		return false;
	journal->stats.commits++;
	return true;
}

/* Answers ----------------------------------------------------------------------------------------
 */

static int reply(const struct change *change, bool is_written)
{
	static const char lost[] = "it was changed, and is not on the disk";
	uint64_t revision = htole64(change->revision);

	return is_written ? plx_rpc_reply(change->request, &revision, sizeof(revision))
			  : plx_rpc_reply_error(change->request, PARAMS_NOT_WRITTEN, lost,
						sizeof(lost) - 1);
}

/* The lane to the lcore may be full. If nobody empties it, the client sees the link close. */
static void answer(struct journal *journal, const struct change *change, bool is_written)
{
	while (reply(change, is_written) != 0) {
		if (stage_of(journal) == STAGE_IS_LATE)
			return;
		sleep_ns(AGAIN_NS);
	}
}

static void end_group(struct journal *journal, bool is_written)
{
	for (uint32_t i = 0; i < journal->count; i++) {
		struct change *change = journal->group[i];
		bool is_there = is_written && !change->is_refused;

		journal->stats.changes += is_there;
		journal->stats.lost += !is_there;
		if (change->request)
			answer(journal, change, is_there);
		free(change);
	}
	journal->count = 0;
}

/* The thread -------------------------------------------------------------------------------------
 */

/* Each push was posted, so pushes after the last change taken here wake the thread again. */
static void wait_for_changes(struct journal *journal)
{
	while (sem_wait(&journal->filled) != 0)
		;
	while (sem_trywait(&journal->filled) == 0)
		;
}

void *journal_write_all(void *arg)
{
	struct journal *journal = arg;

	for (;;) {
		bool ends = stage_of(journal) !=
			    STAGE_RUNS; /* read before the ring is found empty */

		journal->count = plx_ring_pop_burst(journal->ring, journal->group, GROUP_MAX);
		if (journal->count)
			end_group(journal, write_surely(journal));
		else if (ends)
			return NULL;
		else
			wait_for_changes(journal);
	}
}
