/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of lib/lcore. An lcore is a thread with a loop. In reading order:
 *
 *   lcore.c     the set of lcores: from a map to pinned threads with a loop each, and back; forks
 *   launch.c    a thread becomes an lcore; worker threads: launch and join
 *   adopt.c     threads of the program that become lcores, and leave
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
	LCORE_PARKED,                        /* its thread has left: adopt.c */
};

struct lcore {
	/* Set by plx_lcores_init. */
	uint32_t id;
	int node;
	pthread_t thread;
	struct plx_cpuset cpus;      /* empty: not pinned */
	_Atomic(struct loop *) loop; /* NULL: no such lcore */
	/* Written by the main thread and the lcore in turn, depending on the state. */
	alignas(PLX_CACHE_LINE) _Atomic uint32_t state; /* a futex */
	int result;
	plx_lcore_fn fn;
	void *arg;
	/* Relaxed: they guard no other data. */
	_Atomic bool worker;   /* plx_lcores_init has started its thread */
	_Atomic bool launched; /* ever */
	bool placed;           /* by the map, with its idle policy */
	_Atomic(const char *) leave_call;
	/* What a thread of the program had before it became the lcore. */
	unsigned long slack_ns;
	struct plx_cpuset old_cpus;
};

/* As configured. */
extern const struct plx_topo *lcore_topo;
extern struct plx_cpuset lcore_old_cpus; /* the main thread's, before it was pinned */
extern uint32_t lcore_lane_slots;
extern struct plx_idle_conf lcore_adopted_idle;
/* Guards which threads are lcores. */
extern pthread_mutex_t lcore_set_lock;
/* Return: NULL: unknown id. */
struct lcore *lcore_get(uint32_t id);
struct loop *lcore_loop(uint32_t id);
/* Set what the calling thread is. loop: NULL: not an lcore. */
void lcore_become(struct loop *loop, uint32_t id);
/* In the child of a fork: there are no lcores any longer. Async-signal-safe. */
void lcore_forget_all(void);

/* "lcore 2 (CPU 5)" for error texts. Return: valid until the next call of this thread. */
const char *lcore_text(const struct lcore *lcore);
/* Make the calling thread that lcore: pin it, and create its loop. Return: 0; -errno. */
int lcore_enter(struct lcore *lcore);
/* The same for an id that is not used yet, without CPUs. Under the lock. */
int lcore_create(uint32_t id);
/* Only pin it, unless it has no CPUs. Return: 0; -errno. */
int lcore_pin(struct lcore *lcore);
/* An lcore without CPUs has a new thread: let it run on all that the process had. */
void lcore_unpin(const struct lcore *lcore);
/* The calling thread is no longer that lcore: give it back its CPUs, and park the lcore. Under the
 * lock. */
void lcore_leave(struct lcore *lcore);
/* End the thread of a worker that was never launched. Return: whether it was one. Under the lock.
 */
bool lcore_retire(struct lcore *lcore);

/* Set the error text for an unknown lcore. Return: -ENOENT; -EPERM in the child of a fork. */
int lcore_fail_unknown(const char *what, uint32_t id);
/* Start the lcore's thread, and wait for state WAIT. Return: 0; -errno. */
int lcore_thread_start(struct lcore *lcore);
/* Set the state, and wake threads that wait for a change. */
void lcore_set_state(struct lcore *lcore, uint32_t state);
/* End and join the thread of an lcore that runs nothing. */
void lcore_thread_end(struct lcore *lcore);

/* Wait until the lcore leaves state RUNNING. deadline_ns: of CLOCK_MONOTONIC; PLX_NEVER. Return: 0;
 * -ETIMEDOUT. */
int lcore_wait_idle(struct lcore *lcore, uint64_t deadline_ns);
uint64_t lcore_deadline_ns(uint64_t timeout_ns);

#endif
