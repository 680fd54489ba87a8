/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks run last in a turn. The tasks of an lcore form a ring whose head belongs to the loop; tasks
 * that wait for room in a lane form another one. Each task has the number of the run that it waits
 * for, and the head has the number of the next run. So a run ends at the first task that was
 * scheduled inside it. */
#include "lcore_priv.h"

/* Only the ring's head has no function. */
static uint32_t owner_of(const struct plx_task *task)
{
	while (task->fn)
		task = task->prev;
	return (uint32_t)(uintptr_t)task->arg;
}

void tasks_init(struct plx_task *ring, uint32_t lcore_id)
{
	*ring = (struct plx_task){.next = ring, .prev = ring, .arg = (void *)(uintptr_t)lcore_id};
}

/* Inlined: runs for each task. */
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

/* The user owns the task again before fn runs, which may schedule or free it. */
bool task_run_next(struct plx_task *ring)
{
	struct plx_task *task = ring->next;

	if (task->run == ring->run)
		return false;
	unlink_task(task);
	task->fn(task, task->arg);
	return true;
}

uint64_t tasks_run(struct plx_task *ring)
{
	uint64_t count = 0;

	ring->run++;
	while (task_run_next(ring))
		count++;
	return count;
}

void plx_task_init(struct plx_task *task, plx_task_fn fn, void *arg)
{
	*task = (struct plx_task){.fn = fn, .arg = arg};
}

int task_append(const char *what, struct plx_task *ring, struct plx_task *task)
{
	if (plx_unlikely(!task->fn))
		return plx_fail(EINVAL, "%s: the task has no function; call plx_task_init first",
				what);
	if (plx_task_scheduled(task)) {
		ASSERT_OWNER_IF(owner_is_here(owner_of(task)), what, owner_of(task));
		return 0;
	}
	task->run = ring->run;
	task->next = ring;
	task->prev = ring->prev;
	ring->prev->next = task;
	ring->prev = task;
	return 0;
}

int plx_task_schedule(struct plx_task *task)
{
	if (plx_unlikely(!loop_self))
		return plx_fail_no_lcore("plx_task_schedule");
	return task_append("plx_task_schedule", &loop_self->tasks, task);
}

void plx_task_cancel(struct plx_task *task)
{
	if (!plx_task_scheduled(task))
		return;
	ASSERT_OWNER(owner_of(task));
	unlink_task(task);
}
