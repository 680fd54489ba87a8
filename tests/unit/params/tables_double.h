/* SPDX-License-Identifier: BSD-3-Clause */
/* Fakes of the file, the clients and the loop for journal tests: a disk that fails on request, and
 * a lane of a few slots, which loop turns empty. For one source file. */
#ifndef TABLES_DOUBLE_H
#define TABLES_DOUBLE_H

#include "int_param.h"
#include "journal_priv.h"
#include "plx_lcore.h"
#include "wire.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#define LANE_SLOTS 256
#define REFUSED    (-1) /* a value that the file rejects */

/* A client that waits for an answer. */
struct client {
	_Atomic int answers;
	_Atomic uint64_t revision;
	_Atomic uint32_t error;
};

static struct {
	_Atomic int fails;        /* further commits that fail */
	_Atomic bool is_damaged;  /* all commits fail, because the file is damaged */
	_Atomic bool is_moved;    /* the same, because it was moved */
	_Atomic uint32_t slow_ns; /* duration of a commit */
	_Atomic bool stuck;       /* loop turns empty nothing */
	_Atomic int lane;         /* answers queued in it */
	_Atomic int early;        /* successes reported before their commit */
	_Atomic uint64_t committed, mark, id_mark;
	uint64_t written, new_mark, new_id_mark; /* by the current transaction */
} played;

static inline void play_anew(void)
{
	memset(&played, 0, sizeof(played));
}

static inline void rest_ns(uint64_t ns)
{
	nanosleep(&(struct timespec){0, (long)ns}, NULL);
}

int tables_open(const char *path, struct tables **tables_out)
{
	*tables_out = NULL;
	return 0;
}

void tables_close(struct tables *tables)
{
}

int tables_load(struct tables *tables, struct store *store)
{
	return 0;
}

int tables_begin(struct tables *tables)
{
	played.written = atomic_load(&played.committed);
	played.new_mark = atomic_load(&played.mark);
	played.new_id_mark = atomic_load(&played.id_mark);
	return 0;
}

int tables_put(struct tables *tables, const struct param *param)
{
	if (param->value.integer == REFUSED)
		return plx_fail(EINVAL, "it does not take that");
	played.written = param->revision;
	return 0;
}

int tables_remove(struct tables *tables, const struct param *param)
{
	return tables_put(tables, param);
}

int tables_mark(struct tables *tables, uint64_t revision, uint64_t id)
{
	played.new_mark = revision;
	played.new_id_mark = id;
	return 0;
}

int tables_commit(struct tables *tables)
{
	if (atomic_load(&played.slow_ns))
		rest_ns(atomic_load(&played.slow_ns));
	if (atomic_load(&played.is_damaged))
		return plx_fail(EUCLEAN, "the file: it is damaged");
	if (atomic_load(&played.is_moved))
		return plx_fail(ESTALE, "the file: it was moved");
	if (atomic_load(&played.fails) > 0) {
		atomic_fetch_sub(&played.fails, 1);
		return plx_fail(EIO, "the disk is full");
	}
	atomic_store(&played.mark, played.new_mark);
	atomic_store(&played.id_mark, played.new_id_mark);
	atomic_store(&played.committed, played.written);
	return 0;
}

void tables_roll_back(struct tables *tables)
{
}

static int take(struct plx_rpc_request *request, uint64_t revision, uint32_t error)
{
	struct client *client = (struct client *)request;

	if (atomic_fetch_add(&played.lane, 1) >= LANE_SLOTS) {
		atomic_fetch_sub(&played.lane, 1);
		return -EAGAIN;
	}
	atomic_store(&client->revision, revision);
	atomic_store(&client->error, error);
	atomic_fetch_add(&client->answers, 1);
	return 0;
}

int plx_rpc_reply(struct plx_rpc_request *request, const void *data, size_t length)
{
	uint64_t revision;

	memcpy(&revision, data, sizeof(revision));
	if (le64toh(revision) > atomic_load(&played.committed))
		atomic_fetch_add(&played.early, 1);
	return take(request, le64toh(revision), 0);
}

int plx_rpc_reply_error(struct plx_rpc_request *request, uint32_t code, const void *data,
			size_t length)
{
	return take(request, 0, code);
}

int plx_loop_turn(void)
{
	if (atomic_load(&played.stuck))
		rest_ns(PLX_NS_PER_MS);
	else
		atomic_store(&played.lane, 0);
	return 0;
}

/* Return: as journal_reserve; the change was put if that is 0. */
static int put_one(struct journal *journal, uint64_t revision, uint64_t id, int64_t value,
		   struct client *client)
{
	struct param param = int_param("a", id, revision, value);
	int rc = journal_reserve(journal);

	if (rc == 0)
		journal_put(journal, &param, false, (struct plx_rpc_request *)client);
	return rc;
}

#endif
