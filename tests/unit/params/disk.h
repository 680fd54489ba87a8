/* SPDX-License-Identifier: BSD-3-Clause */
/* SQLite's disk, simulated in memory: it fails, is slow, or its power is cut, at any step. For one
 * file, its log and what SQLite needs for a moment. */
#ifndef DISK_H
#define DISK_H

#include "plx_test.h"

enum fault {
	FAULT_NONE,
	FAULT_ONE_STEP, /* step `fails_at` */
	FAULT_FAILS,    /* all steps from `fails_at` on, also below */
	FAULT_DAMAGED,
	FAULT_POWER_CUT,
};

struct disk {
	_Atomic uint32_t steps; /* writes, syncs, truncations, deletions so far */
	_Atomic uint32_t syncs;
	_Atomic uint32_t failures;
	_Atomic uint32_t fails_at;
	_Atomic enum fault fault;
	_Atomic uint32_t slow_ns; /* duration of a sync */
	_Atomic bool is_moved;    /* the file */
};

extern struct disk disk;

/** The path of the store on it, and this process's own. */
extern char disk_path[32];

/** Make it SQLite's default, empty and working. Return: 0. */
int disk_init(void **state);

/** Remove all files, and faults. */
void disk_clear(void);

/** Turn the power off: each unsynced sector is as before or as written; then on again, without
 * faults. */
void disk_lose_power(void);

/** From the next step on. */
void disk_set_fault(enum fault fault);

#endif
