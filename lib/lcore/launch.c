/* SPDX-License-Identifier: BSD-3-Clause */
/* Worker threads. A worker's state is a futex word, and only one side may change it:
 *
 *     STARTING -> WAIT -> RUNNING -> DONE -> WAIT -> ... -> ENDING
 *              1       2          1       2              2
 *
 * 1: the worker, 2: the main thread; each then wakes the other. No side spins. */
#include "lcore_priv.h"

#include <linux/futex.h>
#include <numaif.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Room for user code and providers. */
#define STACK_BYTES_MIN ((size_t)1 << 20)

/* States ----------------------------------------------------------------------------------- */

static void wake(struct lcore *lcore)
{
	syscall(SYS_futex, &lcore->state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* W1 -> W2: data for the other side (fn and arg; the result) is visible to it. */
void lcore_set_state(struct lcore *lcore, uint32_t state)
{
	atomic_store_explicit(&lcore->state, state, memory_order_release);
	wake(lcore);
}

/* Take a worker out of state WAIT. Return: false: another thread was first. */
static bool leave_wait(struct lcore *lcore, uint32_t state)
{
	uint32_t expected = PLX_LCORE_WAIT;

	/* W1 and W2, as above */
	if (!atomic_compare_exchange_strong_explicit(&lcore->state, &expected, state,
						     memory_order_acq_rel, memory_order_relaxed))
		return false;
	wake(lcore);
	return true;
}

static uint32_t get_state(const struct lcore *lcore)
{
	return atomic_load_explicit(&lcore->state, memory_order_acquire); /* W2 <- W1 */
}

/* Sleep while the state is `state`. deadline_ns: of CLOCK_MONOTONIC; PLX_NEVER. Return: 0 the state
 * changed; -ETIMEDOUT. */
static int wait_while(struct lcore *lcore, uint32_t state, uint64_t deadline_ns)
{
	const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / PLX_NS_PER_S),
					  .tv_nsec = (long)(deadline_ns % PLX_NS_PER_S)};
	bool late = false;

	/* Signals and spurious wake-ups do not move the absolute deadline. */
	while (get_state(lcore) == state) {
		if (late)
			return -ETIMEDOUT;
		late = syscall(SYS_futex, &lcore->state, FUTEX_WAIT_BITSET_PRIVATE, state,
			       deadline_ns == PLX_NEVER ? NULL : &deadline, NULL,
			       FUTEX_BITSET_MATCH_ANY) < 0 &&
		       errno == ETIMEDOUT;
	}
	return 0;
}

uint64_t lcore_deadline_ns(uint64_t timeout_ns)
{
	return plx_time_add(plx_kernel_ns(CLOCK_MONOTONIC), timeout_ns);
}

int lcore_wait_idle(struct lcore *lcore, uint64_t deadline_ns)
{
	return wait_while(lcore, PLX_LCORE_RUNNING, deadline_ns);
}

/* Pages that a thread used before it was pinned -------------------------------------------- */

/* Its stack and thread-local variables are first written by its creator, and by its own first calls
 * before it is pinned. They may be on another NUMA node. */

#define PAGE_BYTES ((size_t)4096)
/* The part of the stack that is used first; the lcore is the first to write the rest. */
#define STACK_PAGES ((size_t)256)

/* Pages that do not exist yet, or that cannot be moved, stay. */
static void settle(int node)
{
	/* The main thread's thread-local variables are not on its stack. */
	void *pages[STACK_PAGES + 2] = {&loop_self, &plx_lcore_id_tls};
	int nodes[STACK_PAGES + 2], status[STACK_PAGES + 2];
	size_t count = 2, size_bytes = 0;
	void *stack = NULL;
	pthread_attr_t attr;

	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		if (pthread_attr_getstack(&attr, &stack, &size_bytes) != 0)
			size_bytes = 0;
		pthread_attr_destroy(&attr);
	}
	for (size_t up = PAGE_BYTES; up <= size_bytes && count < PLX_ARRAY_LEN(pages);
	     up += PAGE_BYTES)
		pages[count++] = (char *)stack + size_bytes - up;
	for (size_t i = 0; i < count; i++) {
		pages[i] = (void *)((uintptr_t)pages[i] / PAGE_BYTES * PAGE_BYTES);
		nodes[i] = node;
	}
	move_pages(0, count, pages, nodes, status, MPOL_MF_MOVE);
}

/* Threads ---------------------------------------------------------------------------------- */

#define TIMER_SLACK_NS 1UL /* sleeps end on time */

int lcore_pin(struct lcore *lcore)
{
	int err = 0;

	if (plx_cpuset_count(&lcore->cpus))
		err = plx_topo_pin(lcore_topo, &lcore->cpus);
	if (err)
		return plx_fail_in(err, "%s: ", lcore_text(lcore));
	if (lcore->node >= 0)
		settle(lcore->node);
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS); /* cannot fail; the default is 50 us */
	return 0;
}

int lcore_enter(struct lcore *lcore)
{
	struct loop *loop;
	int err = lcore_pin(lcore), eventfd;

	if (err)
		return err;
	eventfd = wake_open(lcore->id);
	if (eventfd < 0)
		return eventfd;
	loop = loop_create(lcore->id, eventfd);
	if (!loop)
		return plx_fail(errno, "%s: no loop (%zu bytes, and a descriptor): %s",
				lcore_text(lcore), loop_bytes(), strerror(errno));
	lcore_become(loop, lcore->id);
	/* L1 -> L2: a thread that finds the loop sees it complete, and its lcore's id, CPUs and
	 * node. */
	atomic_store_explicit(&lcore->loop, loop, memory_order_release);
	return 0;
}

/* On the main thread's stack while the worker is STARTING. */
struct start {
	struct lcore *lcore;
	int err;
	char text[512];
};

static void serve(struct lcore *lcore)
{
	uint32_t state;

	while ((state = get_state(lcore)) != LCORE_ENDING) {
		if (state != PLX_LCORE_RUNNING) {
			wait_while(lcore, state, PLX_NEVER);
			continue;
		}
		lcore->result = lcore->fn(lcore->arg);
		if (plx_is_forked()) /* the copy of a worker whose function forked */
			return;
		lcore_set_state(lcore, PLX_LCORE_DONE);
	}
}

static void *worker(void *arg)
{
	struct start *start = arg;
	struct lcore *lcore = start->lcore;
	char name[16];

	snprintf(name, sizeof(name), "plx-lcore-%u", lcore->id);
	pthread_setname_np(pthread_self(), name); /* only for debugging: errors do not matter */
	start->err = lcore_enter(lcore);
	if (start->err) {
		snprintf(start->text, sizeof(start->text), "%s", plx_error());
		lcore_set_state(lcore, PLX_LCORE_OFF);
		return NULL;
	}
	lcore_set_state(lcore, PLX_LCORE_WAIT);
	serve(lcore);
	return NULL;
}

static int create_thread(struct start *start)
{
	struct lcore *lcore = start->lcore;
	pthread_attr_t attr;
	size_t stack_bytes;
	int err;

	pthread_attr_init(&attr); /* glibc's cannot fail */
	pthread_attr_getstacksize(&attr, &stack_bytes);
	if (stack_bytes < STACK_BYTES_MIN)
		pthread_attr_setstacksize(&attr, STACK_BYTES_MIN);
	err = pthread_create(&lcore->thread, &attr, worker, start);
	pthread_attr_destroy(&attr);
	if (err)
		return plx_fail(err,
				"%s: no thread: %s; look at ulimit -u and at the pids.max of the "
				"cgroup",
				lcore_text(lcore), strerror(err));
	return 0;
}

int lcore_thread_start(struct lcore *lcore)
{
	struct start start = {.lcore = lcore};
	int err;

	/* Relaxed: pthread_create publishes it. */
	atomic_store_explicit(&lcore->state, LCORE_STARTING, memory_order_relaxed);
	err = create_thread(&start);
	if (!err) {
		wait_while(lcore, LCORE_STARTING, PLX_NEVER);
		if (get_state(lcore) == PLX_LCORE_WAIT)
			return 0;
		pthread_join(lcore->thread, NULL);
		err = plx_fail(-start.err, "%s", start.text);
	}
	atomic_store_explicit(&lcore->state, PLX_LCORE_OFF, memory_order_relaxed); /* no thread */
	return err;
}

void lcore_thread_end(struct lcore *lcore)
{
	lcore_set_state(lcore, LCORE_ENDING);
	pthread_join(lcore->thread, NULL);
}

bool lcore_retire(struct lcore *lcore)
{
	if (atomic_load_explicit(&lcore->launched, memory_order_relaxed) ||
	    !plx_lcore_is_worker(lcore->id))
		return false;
	/* First: from here on nobody launches or joins it. */
	atomic_store_explicit(&lcore->worker, false, memory_order_relaxed);
	if (!leave_wait(lcore, LCORE_ENDING)) {
		atomic_store_explicit(&lcore->worker, true, memory_order_relaxed);
		return false;
	}
	pthread_join(lcore->thread, NULL);
	/* Relaxed: the calling thread continues with it. */
	atomic_store_explicit(&lcore->state, LCORE_PARKED, memory_order_relaxed);
	return true;
}

/* Launch and join -------------------------------------------------------------------------- */

enum plx_lcore_state plx_lcore_state(uint32_t id)
{
	struct lcore *lcore = lcore_get(id);
	uint32_t state = lcore ? get_state(lcore) : PLX_LCORE_OFF;

	return state <= PLX_LCORE_DONE ? (enum plx_lcore_state)state : PLX_LCORE_OFF;
}

/* Find a worker. Return: 0; -ENOENT; -EINVAL. */
static int find_worker(const char *what, uint32_t id, struct lcore **lcore_out)
{
	*lcore_out = lcore_get(id);
	if (!*lcore_out)
		return lcore_fail_unknown(what, id);
	if (id == plx_lcore_main())
		return plx_fail(EINVAL, "%s: lcore %u is the main lcore; call the function there",
				what, id);
	if (!plx_lcore_is_worker(id))
		return plx_fail(EINVAL,
				"%s: lcore %u is a thread of the program (plx_lcore_adopt), which "
				"calls its functions itself",
				what, id);
	return 0;
}

static int fail_busy(const char *what, const struct lcore *lcore)
{
	bool done = get_state(lcore) == PLX_LCORE_DONE;

	return plx_fail(EBUSY, "%s: %s %s; call plx_lcore_join first", what, lcore_text(lcore),
			done ? "has a result to be taken" : "runs a function already");
}

/* Return: false: a thread that was adopted meanwhile has it. */
static bool launch(struct lcore *lcore, plx_lcore_fn fn, void *arg)
{
	lcore->fn = fn;
	lcore->arg = arg;
	atomic_store_explicit(&lcore->launched, true, memory_order_relaxed);
	return leave_wait(lcore, PLX_LCORE_RUNNING);
}

int plx_lcore_launch(uint32_t id, plx_lcore_fn fn, void *arg)
{
	struct lcore *lcore;
	int err = find_worker("plx_lcore_launch", id, &lcore);

	if (err)
		return err;
	if (get_state(lcore) != PLX_LCORE_WAIT)
		return fail_busy("plx_lcore_launch", lcore);
	if (launch(lcore, fn, arg))
		return 0;
	return plx_fail(EINVAL,
			"plx_lcore_launch: a thread of the program has become lcore %u "
			"(plx_lcore_adopt); launch first",
			id);
}

int plx_lcore_launch_all(plx_lcore_fn fn, void *arg, int *result_out)
{
	int result;

	if (plx_is_forked())
		return plx_fail_forked("plx_lcore_launch_all");
	PLX_LCORE_FOREACH_WORKER (id) {
		if (plx_lcore_state(id) != PLX_LCORE_WAIT)
			return fail_busy("plx_lcore_launch_all", lcore_get(id));
	}
	PLX_LCORE_FOREACH_WORKER (id)
		launch(lcore_get(id), fn, arg);
	result = fn(arg);
	if (result_out)
		*result_out = result;
	return 0;
}

/* timeout_ns: only for the error text. */
static int join(const char *what, uint32_t id, uint64_t deadline_ns, uint64_t timeout_ns,
		int *result_out)
{
	struct lcore *lcore;
	int err = find_worker(what, id, &lcore);

	if (err)
		return err;
	if (plx_lcore_state(id) != PLX_LCORE_RUNNING && plx_lcore_state(id) != PLX_LCORE_DONE)
		return plx_fail(EINVAL, "%s: nothing was launched on %s", what, lcore_text(lcore));
	if (lcore_wait_idle(lcore, deadline_ns))
		return plx_fail(ETIMEDOUT,
				"%s: %s has not returned after %.3f s; its function must return "
				"once plx_stopping() is true: wait longer, or call plx_stop",
				what, lcore_text(lcore), (double)timeout_ns / 1e9);
	if (result_out)
		*result_out = lcore->result;
	/* Relaxed: the worker reads nothing until the next launch. */
	atomic_store_explicit(&lcore->state, PLX_LCORE_WAIT, memory_order_relaxed);
	return 0;
}

int plx_lcore_join(uint32_t id, uint64_t timeout_ns, int *result_out)
{
	return join("plx_lcore_join", id, lcore_deadline_ns(timeout_ns), timeout_ns, result_out);
}

int plx_lcore_join_all(uint64_t timeout_ns, int *result_out)
{
	uint64_t deadline_ns = lcore_deadline_ns(timeout_ns);
	int first = 0;

	if (plx_is_forked())
		return plx_fail_forked("plx_lcore_join_all");
	PLX_LCORE_FOREACH_WORKER (id) {
		int result, err;

		if (plx_lcore_state(id) == PLX_LCORE_WAIT || plx_lcore_state(id) == PLX_LCORE_OFF)
			continue;
		err = join("plx_lcore_join_all", id, deadline_ns, timeout_ns, &result);
		if (err)
			return err;
		first = first ? first : result;
	}
	if (result_out)
		*result_out = first;
	return 0;
}
