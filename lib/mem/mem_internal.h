/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of lib/mem for the libraries above it; not installed. */
#ifndef MEM_INTERNAL_H
#define MEM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Longer heap memory is offered to mem_free_later. */
#define MEM_FREE_AT_ONCE_MAX ((size_t)1 << 20)

/** Called for the heap memory of a long buffer whose last reference was dropped, on any thread.
 * NULL: none. Set by a constructor.
 * Return: whether the callee takes over the memory, and calls free() later. */
extern bool (*mem_free_later)(void *memory, size_t size_bytes);

/** There are lcores, whose lanes are in zones: plx_mem_fini has no effect. Thread: setup. */
extern bool mem_has_lcores;

/** Whether objects of pools with that owner are out. Thread: any, while no thread is that lcore. */
bool mem_owner_is_missing(uint32_t lcore);

#endif
