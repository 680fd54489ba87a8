/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program as lcores. A thread that leaves parks its lcore: its loop, lanes and the
 * state of libraries on it stay. So threads that send to it or count it need not know that it has
 * left. The next thread continues with it once every buffer of its pools was returned. An lcore
 * without a thread runs nothing, as a worker before its launch. */
#include "lcore_priv.h"
#include "mem_internal.h"

#include <sys/prctl.h>

PLX_LOG_COMPONENT(log_lcore, "lcore");

/* Turns in which a thread that leaves takes messages that have arrived. */
#define LEAVE_TURNS_MAX 1024

/* Which threads are lcores; also taken by plx_lcores_init and _fini. */
pthread_mutex_t lcore_set_lock = PTHREAD_MUTEX_INITIALIZER;

static bool adopting; /* under the lock; false while the lcores end */

static struct lcore_leave_hook *hooks;

void lcore_leave_hook_add(struct lcore_leave_hook *hook)
{
	hook->next = hooks;
	hooks = hook;
}

/* Choosing an lcore -------------------------------------------------------------------------- */

/* Under the lock. Return: whether no thread runs it, and none holds a buffer of its pools. */
static bool is_free(const struct lcore *lcore)
{
	/* P2 <- P1: what the thread that left it wrote. */
	return atomic_load_explicit(&lcore->state, memory_order_acquire) == LCORE_PARKED &&
	       !mem_owner_is_missing(lcore->id);
}

/* The process' list comes first, also a worker which was never launched. */
static uint32_t choose(bool pinned)
{
	uint32_t added = PLX_LCORE_NONE, unused = PLX_LCORE_NONE;

	for (uint32_t id = PLX_LCORE_MAX; id-- > 0;) {
		struct lcore *lcore = lcore_get(id);

		if (!lcore)
			unused = id;
		else if (!lcore->placed)
			added = is_free(lcore) ? id : added;
		else if ((pinned || !plx_cpuset_count(&lcore->cpus)) &&
			 (is_free(lcore) || lcore_retire(lcore)))
			return id;
	}
	return added != PLX_LCORE_NONE ? added : unused;
}

/* Threads that end without leaving ----------------------------------------------------------- */

static pthread_key_t key; /* not NULL on adopted threads */
static bool has_key;
static char first_round, second_round;

static const char *leave_call(const struct lcore *lcore)
{
	/* Relaxed: it points to a constant. */
	return atomic_load_explicit(&lcore->leave_call, memory_order_relaxed);
}

void lcore_leave_by(const char *call)
{
	atomic_store_explicit(&lcore_get(plx_lcore_id())->leave_call, call, memory_order_relaxed);
}

/* The thread cannot leave now: its links and timers may be in dead memory. In the first round the
 * destructor of another library may still do that: netio/loop/exit.c. */
static void on_end_of_thread(void *round)
{
	if (!loop_self) /* in the child of a fork */
		return;
	if (round == &first_round) {
		pthread_setspecific(key, &second_round);
		return;
	}
	plx_log(&log_lcore, PLX_LOG_ERROR,
		"%s: its thread has ended without %s; so its id is never free again, and "
		"plx_eal_fini will fail",
		lcore_text(lcore_get(plx_lcore_id())), leave_call(lcore_get(plx_lcore_id())));
}

PLX_CONSTRUCTOR static void create_key(void)
{
	has_key = pthread_key_create(&key, on_end_of_thread) == 0;
}

/* A thread may end after the library was unloaded. */
PLX_DESTRUCTOR static void delete_key(void)
{
	if (has_key)
		pthread_key_delete(key);
}

static void watch_end(bool watch)
{
	if (has_key)
		pthread_setspecific(key, watch ? &first_round : NULL);
}

/* Adopting ----------------------------------------------------------------------------------- */

static int continue_with(struct lcore *lcore)
{
	struct loop *loop = lcore_loop(lcore->id);
	int rc = lcore_pin(lcore);

	if (rc)
		return rc;
	loop_begin_again(loop);
	lcore_become(loop, lcore->id);
	for (struct lcore_leave_hook *hook = hooks; hook; hook = hook->next) {
		if (hook->join)
			hook->join();
	}
	return 0;
}

/* Under the lock. */
static int adopt(uint32_t id)
{
	unsigned long slack_ns = (unsigned long)prctl(PR_GET_TIMERSLACK);
	struct plx_cpuset cpus;
	struct lcore *lcore;
	int rc = plx_topo_pinned(lcore_topo, &cpus);

	rc = rc ?: lcore_get(id) ? continue_with(lcore_get(id)) : lcore_create(id);
	if (rc) {
		prctl(PR_SET_TIMERSLACK, slack_ns);
		return rc;
	}
	lcore = lcore_get(id);
	lcore->slack_ns = slack_ns;
	lcore->old_cpus = cpus;
	lcore_unpin(lcore);
	if (!lcore->placed)                            /* others keep that of their place */
		plx_idle_set(id, &lcore_adopted_idle); /* cannot fail: it was checked */
	lcore_leave_by("plx_lcore_leave");
	watch_end(true);
	atomic_store_explicit(&lcore->state, PLX_LCORE_RUNNING, memory_order_relaxed);
	return 0;
}

static int adopt_any(void)
{
	uint32_t id;

	if (!plx_lcore_count())
		return plx_fail(ENOENT, "plx_lcore_adopt: " NOT_UP_TEXT);
	if (!adopting)
		return plx_fail(ESHUTDOWN, "plx_lcore_adopt: the lcores are being ended");
	id = choose(true);
	if (id != PLX_LCORE_NONE && adopt(id) == 0)
		return 0;
	id = choose(false); /* the CPU may be offline */
	if (id == PLX_LCORE_NONE)
		return plx_fail(
			ENOSPC,
			"plx_lcore_adopt: there are %d lcores, running or with buffers that "
			"were not returned; let some leave, or return the buffers",
			PLX_LCORE_MAX);
	return adopt(id);
}

int plx_lcore_adopt(void)
{
	int rc;

	if (plx_is_forked())
		return plx_fail_forked("plx_lcore_adopt");
	if (loop_self)
		return plx_fail(EALREADY, "plx_lcore_adopt: this thread is lcore %u already",
				plx_lcore_id());
	pthread_mutex_lock(&lcore_set_lock);
	rc = adopt_any();
	pthread_mutex_unlock(&lcore_set_lock);
	return rc;
}

/* Leaving ------------------------------------------------------------------------------------ */

static int check_may_leave(const char *what)
{
	int rc;

	if (!loop_self && plx_lcore_count())
		return plx_fail(ENOENT,
				"%s: this thread is not an lcore, so there is nothing to leave",
				what);
	rc = plx_check_outside(what);
	if (rc == 0 && plx_lcore_is_worker(plx_lcore_id()))
		rc = plx_fail(EPERM,
			      "%s: lcore %u is a worker that plx_eal_init has started; return from "
			      "the function that was launched",
			      what, plx_lcore_id());
	return rc;
}

/* What was sent to it before, such as replies to its calls, must not wait for the next thread. */
static void take_messages(void)
{
	unsigned turns = 0;

	while (turns++ < LEAVE_TURNS_MAX && (messages_wait(loop_self) || loop_owes(loop_self)))
		plx_loop_turn();
}

int plx_lcore_leave(void)
{
	struct lcore *lcore;
	int rc = check_may_leave("plx_lcore_leave");

	if (rc)
		return rc;
	lcore = lcore_get(plx_lcore_id());
	for (struct lcore_leave_hook *hook = hooks; hook; hook = hook->next)
		hook->leave();
	take_messages();
	pthread_mutex_lock(&lcore_set_lock);
	lcore_leave(lcore);
	pthread_mutex_unlock(&lcore_set_lock);
	watch_end(false);
	return 0;
}

/* While the lcores end, or the main one acts for another ------------------------------------- */

bool lcore_hold_idle(uint32_t id)
{
	if (plx_lcore_id() != plx_lcore_main())
		return false;
	pthread_mutex_lock(&lcore_set_lock);
	if (plx_lcore_state(id) != PLX_LCORE_RUNNING)
		return true;
	pthread_mutex_unlock(&lcore_set_lock);
	return false;
}

void lcore_release_idle(void)
{
	pthread_mutex_unlock(&lcore_set_lock);
}

void lcore_allow_adopting(bool allow)
{
	pthread_mutex_lock(&lcore_set_lock);
	adopting = allow;
	pthread_mutex_unlock(&lcore_set_lock);
}

int lcore_wait_adopted(const char *what, uint64_t timeout_ns)
{
	uint64_t deadline_ns = lcore_deadline_ns(timeout_ns);

	PLX_LCORE_FOREACH (id) {
		if (id != plx_lcore_main() && id != plx_lcore_id() && !plx_lcore_is_worker(id) &&
		    lcore_wait_idle(lcore_get(id), deadline_ns))
			return plx_fail(ETIMEDOUT,
					"%s: %s is still a thread of the program: it must call %s "
					"first",
					what, lcore_text(lcore_get(id)), leave_call(lcore_get(id)));
	}
	return 0;
}
