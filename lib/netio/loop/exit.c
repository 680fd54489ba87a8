/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads and processes that end without netio_fini, as programs of NetIO-next do: what their
 * sockets have accepted still leaves. An exit handler does that for the thread that calls exit, and
 * a destructor of thread-specific data for other threads. A context, socket, timer or signal on the
 * stack is gone by then, and its memory must not be touched: so what is known of a loop is kept
 * here, on the heap, and nothing is done if any was on the stack. */
#include "netio_priv.h"

#include <pthread.h>
#include <stdlib.h>

/* A loop that netio_fini has not ended. */
struct kept {
	struct netio_eventloop *evloop; /* not to be read if on_stack */
	uint32_t lcore_id;
	bool on_stack; /* it, or an object of it */
	struct kept *next;
};

static __thread struct kept *loops;      /* of this thread */
static __thread char *stack, *stack_end; /* of this thread; NULL: not known yet */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its value: not NULL on a thread with loops */
static bool has_key;

/* What a loop uses --------------------------------------------------------------------------- */

static void find_stack(void)
{
	pthread_attr_t attr;
	size_t size_bytes = 0;
	void *start = NULL;

	stack = stack_end = (char *)&stack; /* if nothing is known */
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return;
	if (pthread_attr_getstack(&attr, &start, &size_bytes) == 0) {
		stack = start;
		stack_end = stack + size_bytes;
	}
	pthread_attr_destroy(&attr);
}

static struct kept **find(const struct netio_eventloop *evloop)
{
	struct kept **at = &loops;

	while (*at && (*at)->evloop != evloop)
		at = &(*at)->next;
	return at;
}

void netio_exit_uses(const struct netio_eventloop *evloop, const void *object)
{
	struct kept *kept = *find(evloop);
	const char *at = object;

	if (!stack)
		find_stack();
	if (kept)
		kept->on_stack |= at >= stack && at < stack_end;
}

/* At the end --------------------------------------------------------------------------------- */

/* Return: whether the thread's loops can be closed: all of them, or none, because each turn runs
 * timers of all. */
static bool may_close(const char *what)
{
	if (!loops || plx_is_forked() || plx_loop_in_turn() || !netio_process_is_ours())
		return false;
	for (const struct kept *kept = loops; kept; kept = kept->next) {
		if (kept->lcore_id != plx_lcore_id())
			return false;
		if (!kept->on_stack)
			continue;
		plx_log(netio_log, PLX_LOG_WARNING,
			"%s without netio_fini, and its context, or a socket, timer or signal, was "
			"on "
			"the stack: messages that wait are lost; call netio_fini before, or make "
			"it "
			"static",
			what);
		return false;
	}
	return true;
}

static void close_loops(const char *what)
{
	for (const struct kept *kept = loops; kept; kept = kept->next)
		kept->evloop->quiet = true;
	for (const struct kept *kept = loops; kept; kept = kept->next)
		netio_close_all(kept->evloop, what, NETIO_EXIT_NS);
}

static void on_exit_of_process(void)
{
	if (may_close("the process ends"))
		close_loops("the process ends");
}

/* Otherwise its lcore stays: it cannot leave while its timers and links may be in dead memory. */
static void on_exit_of_thread(void *value)
{
	if (!may_close("a thread ends"))
		return;
	close_loops("a thread ends");
	while (loops) {
		loops->evloop->ready = false;
		netio_exit_forget(loops->evloop);
		netio_process_leave();
	}
}

/* Registered after libfabric's set-up: handlers run in the opposite order. */
static void prepare(void)
{
	has_key = pthread_key_create(&key, on_exit_of_thread) == 0;
	atexit(on_exit_of_process);
}

/* A thread may end after the library was unloaded. */
PLX_DESTRUCTOR static void unload(void)
{
	if (has_key)
		pthread_key_delete(key);
}

static void note_thread(void)
{
	if (has_key)
		pthread_setspecific(key, loops);
}

/* One at the same address has ended unseen. */
void netio_exit_watch(struct netio_eventloop *evloop)
{
	struct kept *kept = *find(evloop);

	pthread_once(&once, prepare);
	if (!kept) {
		kept = malloc(sizeof(*kept));
		if (!kept)
			return;
		*kept = (struct kept){.evloop = evloop, .next = loops};
		loops = kept;
	}
	kept->lcore_id = evloop->lcore_id;
	kept->on_stack = false;
	netio_exit_uses(evloop, evloop);
	note_thread();
}

void netio_exit_forget(const struct netio_eventloop *evloop)
{
	struct kept **at = find(evloop), *kept = *at;

	if (!kept)
		return;
	*at = kept->next;
	free(kept);
	note_thread();
}
