/* SPDX-License-Identifier: BSD-3-Clause */
/* Heap memory of long buffers, returned to the system in slices: the kernel takes 1 ms for the
 * pages of 16 MiB, and a gigabyte may become unused in one turn. */
#include "fabric_link.h"
#include "mem_internal.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SLICE_BYTES MEM_FREE_AT_ONCE_MAX /* per turn */
#define ALIGN_BYTES ((size_t)64 << 10)   /* a multiple of every page size */

/* At the start of the memory. */
struct released {
	struct released *next;
	size_t bytes; /* not returned yet */
};

/* Return the last slice. Return: false: only the start is left, or the memory is locked. */
static bool cut(struct released *memory)
{
	uintptr_t start = (uintptr_t)memory, end = start + memory->bytes;
	uintptr_t first = start - start % ALIGN_BYTES + ALIGN_BYTES;

	end -= end % ALIGN_BYTES;
	if (end > first + SLICE_BYTES)
		first = end - SLICE_BYTES;
	if (end <= first || madvise((void *)first, end - first, MADV_DONTNEED) != 0)
		return false;
	memory->bytes = first - start;
	return true;
}

/* Return: whether more is left. */
static bool release_some(struct plx_fabric_lcore *home)
{
	struct released *memory = home->released;
	size_t before = memory->bytes;

	if (cut(memory)) {
		home->released_bytes -= before - memory->bytes;
		return true;
	}
	home->released = memory->next;
	home->released_bytes -= before;
	free(memory);
	return home->released;
}

/* The lcore does not sleep before all is returned. */
static void on_turn(struct plx_task *task, void *arg)
{
	if (release_some(arg))
		plx_task_schedule(task);
}

bool release_has_room(const struct plx_fabric_lcore *home)
{
	return home->released_bytes < RELEASED_BYTES_MAX;
}

static bool free_later(void *memory, size_t size_bytes)
{
	struct plx_fabric_lcore *home = fabric_home();
	struct released *released = memory;

	if (!home || !release_has_room(home) || plx_task_schedule(&home->release) != 0)
		return false;
	*released = (struct released){.next = home->released, .bytes = size_bytes};
	home->released = released;
	home->released_bytes += size_bytes;
	return true;
}

PLX_CONSTRUCTOR static void set_free_later(void)
{
	mem_free_later = free_later;
}

void release_home_init(struct plx_fabric_lcore *home)
{
	plx_task_init(&home->release, on_turn, home);
}

void release_all(struct plx_fabric_lcore *home)
{
	plx_task_cancel(&home->release);
	while (home->released)
		release_some(home);
}
