/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of lib/lcore. An lcore is a thread with a loop. In reading order:
 *
 *   lcore.c     the set of lcores: from a map to pinned threads with a loop each, and back; forks
 *   launch.c    a thread becomes an lcore; worker threads: launch and join
 *   loop/       lcore_loop.h: one turn, and what it calls
 *   messages/   messages.h: messages between lcores
 *   idle/       idle.h: an lcore without work */
#ifndef LCORE_PRIV_H
#define LCORE_PRIV_H

#include "base_internal.h"
#include "counter.h"
#include "lcore_internal.h"
#include "lcore_loop.h"
#include "owner.h"

#include <assert.h>
#include <pthread.h>

/* Private states: plx_lcore_state() reports OFF. */
enum {
	LCORE_STARTING = PLX_LCORE_DONE + 1, /* the thread sets itself up */
	LCORE_ENDING,                        /* asked to end */
};

struct lcore {
	/* Set by plx_lcores_init. */
	uint32_t id;
	int node;
	pthread_t thread;
	struct plx_cpuset cpus;
	_Atomic(struct loop *) loop; /* NULL: no such lcore */
	/* Written by the main thread and the lcore in turn, depending on the state. */
	alignas(PLX_CACHE_LINE) _Atomic uint32_t state; /* a futex */
	int result;
	plx_lcore_fn fn;
	void *arg;
};

/* As configured. */
extern const struct plx_topo *lcore_topo;
extern struct plx_cpuset lcore_old_cpus; /* the main thread's, before it was pinned */
extern uint32_t lcore_lane_slots;
/* Return: NULL: unknown id. */
struct lcore *lcore_get(uint32_t id);
struct loop *lcore_loop(uint32_t id);
/* Set what the calling thread is. loop: NULL: not an lcore. */
void lcore_become(struct loop *loop, uint32_t id);

/* "lcore 2 (CPU 5)" for error texts. Return: valid until the next call of this thread. */
const char *lcore_text(const struct lcore *lcore);
/* Make the calling thread that lcore: pin it, and create its loop. Return: 0; -errno. */
int lcore_enter(struct lcore *lcore);

/* Set the error text for an unknown lcore. Return: -ENOENT; -EPERM in the child of a fork. */
int lcore_fail_unknown(const char *what, uint32_t id);
/* Start the lcore's thread, and wait for state WAIT. Return: 0; -errno. */
int lcore_thread_start(struct lcore *lcore);
/* End and join the thread of an lcore that runs nothing. */
void lcore_thread_end(struct lcore *lcore);

/* Wait until the lcore leaves state RUNNING. deadline_ns: of CLOCK_MONOTONIC; PLX_NEVER. Return: 0;
 * -ETIMEDOUT. */
int lcore_wait_idle(struct lcore *lcore, uint64_t deadline_ns);
uint64_t lcore_deadline_ns(uint64_t timeout_ns);

#endif
