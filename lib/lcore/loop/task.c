/* SPDX-License-Identifier: BSD-3-Clause */
/* What a turn does last. The tasks of an lcore form a ring, of which one that belongs to the loop
 * is both ends. Each has the number of the run that it waits for, and that one the number of the
 * next: so a run ends at the first task that was scheduled inside it. */
#include "lcore_priv.h"

/* Only the loop's own has no function. */
static uint32_t owner_of(const struct plx_task *task)
{
	while (task->fn)
		task = task->prev;
	return plx_container_of(task, struct loop, tasks)->pollers.lcore_id;
}

void tasks_init(struct plx_task *ring)
{
	*ring = (struct plx_task){.next = ring, .prev = ring};
}

/* Inlined: each task that runs is unlinked. */
static inline void unlink_task(struct plx_task *task)
{
	assert(plx_task_scheduled(task));
	task->prev->next = task->next;
	task->next->prev = task->prev;
	task->next = NULL;
}

void tasks_fini(struct plx_task *ring)
{
	while (tasks_wait(ring))
		unlink_task(ring->next);
}

/* A task is its user's again before fn runs, which may schedule it, or free it. */
uint64_t tasks_run(struct plx_task *ring)
{
	struct plx_task *task;
	uint64_t count = 0;

	ring->run++;
	while ((task = ring->next)->run != ring->run) {
		unlink_task(task);
		task->fn(task, task->arg);
		count++;
	}
	return count;
}

void plx_task_init(struct plx_task *task, plx_task_fn fn, void *arg)
{
	*task = (struct plx_task){.fn = fn, .arg = arg};
}

int plx_task_schedule(struct plx_task *task)
{
	struct plx_task *ring;

	if (plx_unlikely(!loop_self))
		return plx_fail_no_lcore("plx_task_schedule");
	if (plx_unlikely(!task->fn))
		return plx_fail(EINVAL, "plx_task_schedule: the task has no function; call "
					"plx_task_init first");
	if (plx_task_scheduled(task)) {
		ASSERT_OWNER(owner_of(task));
		return 0;
	}
	ring = &loop_self->tasks;
	task->run = ring->run;
	task->next = ring;
	task->prev = ring->prev;
	ring->prev->next = task;
	ring->prev = task;
	return 0;
}

void plx_task_cancel(struct plx_task *task)
{
	if (!plx_task_scheduled(task))
		return;
	ASSERT_OWNER(owner_of(task));
	unlink_task(task);
}
