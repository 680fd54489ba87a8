/* SPDX-License-Identifier: BSD-3-Clause */
#include "writer.h"

#include <stdio.h>
#include <string.h>

#define SPIN_NS (50 * PLX_NS_PER_US)

/* Skips changes that the file rejects; they would block all others forever.
 * Return: 0; -EUCLEAN; -EIO. */
static int write_changes(struct writer *writer)
{
	struct change *change;

	STAILQ_FOREACH (change, &writer->batch, link) {
		int rc = change->is_refused ? 0 : tables_put(writer->tables, &change->param);

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

int writer_write_now(struct writer *writer)
{
	int rc = tables_begin(writer->tables);

	if (rc)
		return rc;
	rc = write_changes(writer);
	if (rc == 0 && writer->mark.revision != writer->marked.revision)
		rc = tables_mark(writer->tables, &writer->mark);
	rc = tables_end(writer->tables, rc);
	if (rc == 0)
		writer->marked = writer->mark;
	return rc;
}

/* While clients wait for the disk, the next batch mostly comes as soon as this one is answered. */
static void wait_for_batch(struct writer *writer, bool spins)
{
	uint64_t begin_ns = plx_now_ns();

	while (sem_trywait(&writer->filled) != 0) {
		if (spins && plx_time_since(begin_ns, plx_now_ns()) < SPIN_NS)
			plx_pause();
		else if (sem_wait(&writer->filled) == 0)
			return;
	}
}

static void *write_batches(void *arg)
{
	struct writer *writer = arg;

	for (bool is_awaited = false;;) {
		wait_for_batch(writer, is_awaited);
		if (STAILQ_EMPTY(&writer->batch))
			return NULL;
		is_awaited = writer->is_awaited;
		writer->rc = writer_write_now(writer);
		if (writer->rc)
			snprintf(writer->error, sizeof(writer->error), "%s", plx_error());
		plx_signal_fire(&writer->written);
	}
}

int writer_start(struct writer *writer, const cpu_set_t *cpus)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	if (cpus)
		pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	rc = pthread_create(&writer->thread, &attr, write_batches, writer);
	pthread_attr_destroy(&attr);
	return rc ? plx_fail(rc, "the journal's thread cannot be started: %s", strerror(rc)) : 0;
}

void writer_stop(struct writer *writer)
{
	sem_post(&writer->filled);
	pthread_join(writer->thread, NULL);
}
