/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/lcore share. An lcore is a thread that has a loop. In reading order:
 *
 *   lcore.c     the set of lcores: from a map to pinned threads with a loop each, and back
 *   launch.c    the threads of the workers: launch and join
 *   fork.c      the child of a fork has no lcores
 *   settle.c    memory that a thread has used before it was pinned
 *   var.c       variables that each lcore has its own of
 *   loop/       lcore_loop.h: one turn, and what it calls
 *   messages/   messages.h: from one lcore to another
 *   idle/       idle.h: an lcore without work */
#ifndef LCORE_PRIV_H
#define LCORE_PRIV_H

#include "counter.h"
#include "lcore_internal.h"
#include "lcore_loop.h"
#include "owner.h"

#include <assert.h>
#include <pthread.h>

/* States that nobody else sees: plx_lcore_state() says OFF. */
enum {
	LCORE_STARTING = PLX_LCORE_DONE + 1, /* the thread sets itself up */
	LCORE_FAILED,                        /* it could not */
	LCORE_ENDING,                        /* it shall end */
};

struct lcore {
	/* Set by plx_lcores_init. */
	uint32_t id;
	int node;
	pthread_t thread;
	struct plx_cpuset cpus;
	_Atomic(struct loop *) loop; /* NULL: no such lcore */
	/* Written by the main thread and the lcore in turn: who may, the state tells. */
	alignas(PLX_CACHE_LINE) _Atomic uint32_t state; /* a futex */
	int result;
	plx_lcore_fn fn;
	void *arg;
};

/* Messages that a lane holds, as configured. */
uint32_t lcore_lane_slots(void);

/* The lcore of that id, or NULL. */
struct lcore *lcore_get(uint32_t id);

/* "lcore 2 (CPU 5)" for error texts. Returns out. */
#define LCORE_TEXT_BYTES 160
const char *lcore_text(const struct lcore *lcore, char out[LCORE_TEXT_BYTES]);

/* Make the calling thread that lcore: pin it, and give it a loop. Return: 0; -errno. */
int lcore_enter(struct lcore *lcore, const struct plx_topo *on);

/* Move what the calling thread has used so far of its stack and its thread-local variables to the
 * node; -1: nowhere. */
void lcore_settle(int node);

/* Let wake_cost_get tell what was measured: once in a process, some milliseconds of the calling
 * lcore's. */
void lcore_know_wake_cost(void);

/* Become a process without lcores, as the child of a fork. Thread: that of the fork. */
void lcores_forget(void);

/* fork.c: call it before there are lcores; later calls do nothing. */
void fork_watch(void);

/* Fail as there is no lcore of that id. Return: -ENOENT; -EPERM in the child of a fork. */
int lcore_fail_unknown(const char *what, uint32_t id);

/* Start the lcore's thread, and wait until it is in state WAIT. Return: 0; -errno. */
int lcore_thread_start(struct lcore *lcore, const struct plx_topo *topo);

/* End and join the thread of an lcore that runs nothing. */
void lcore_thread_end(struct lcore *lcore);

/* Wait until the lcore is not in state RUNNING. deadline: of CLOCK_MONOTONIC; NULL: for ever.
 * Return: 0; -ETIMEDOUT. */
int lcore_wait_idle(struct lcore *lcore, const struct timespec *deadline);

/* timeout_ns from now on. Returns deadline_out, or NULL for one that never comes. */
const struct timespec *lcore_deadline(uint64_t timeout_ns, struct timespec *deadline_out);

#endif
