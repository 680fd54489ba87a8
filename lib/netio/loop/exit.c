/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads and processes that end without netio_fini, as programs of NetIO-next do: what their
 * sockets have accepted still leaves. An exit handler does that for the thread that calls exit, and
 * a destructor of thread-specific data for other threads. They run no callback of the program. A
 * context, socket or timer on the stack is gone by then: its memory must not be touched. */
#include "netio_priv.h"

#include <pthread.h>
#include <stdlib.h>

static __thread struct netio_eventloop *loops; /* of this thread, the newest first */
static __thread char *stack, *stack_end;       /* of this thread; NULL: not known yet */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its value: not NULL on a thread with loops */
static bool has_key;

/* The stack ---------------------------------------------------------------------------------- */

static void find_stack(void)
{
	pthread_attr_t attr;
	size_t size_bytes;
	void *start;

	stack = stack_end = (char *)&stack; /* if nothing is known */
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return;
	if (pthread_attr_getstack(&attr, &start, &size_bytes) == 0) {
		stack = start;
		stack_end = stack + size_bytes;
	}
	pthread_attr_destroy(&attr);
}

void netio_exit_uses(struct netio_eventloop *evloop, const void *object)
{
	const char *at = object;

	if (!stack)
		find_stack();
	evloop->on_stack |= at >= stack && at < stack_end;
}

/* At the end --------------------------------------------------------------------------------- */

static void finish(struct netio_eventloop *evloop, const char *what)
{
	if (evloop->on_stack) {
		plx_log(netio_log, PLX_LOG_WARNING,
			"%s without netio_fini, and its context or a socket was on the stack: "
			"messages "
			"that wait are lost; call netio_fini before, or make them static",
			what);
		return;
	}
	evloop->quiet = true;
	netio_close_all(evloop, what, NETIO_EXIT_NS);
}

static bool is_over(const struct netio_eventloop *evloop)
{
	return !evloop || plx_is_forked() || plx_loop_in_turn();
}

static void on_exit_of_process(void)
{
	if (is_over(loops))
		return;
	for (struct netio_eventloop *evloop = loops; evloop; evloop = evloop->next)
		finish(evloop, "the process ends");
}

/* With a loop on the stack its lcore cannot leave: its timers and links are there, too. */
static void on_exit_of_thread(void *value)
{
	bool stays = false;

	if (is_over(loops))
		return;
	for (struct netio_eventloop *evloop = loops; evloop; evloop = evloop->next) {
		stays |= evloop->on_stack;
		finish(evloop, "a thread ends");
	}
	while (loops && !stays) {
		loops->ready = false;
		loops = loops->next;
		netio_process_leave();
	}
}

/* Registered after libfabric's set-up: handlers run in the opposite order. */
static void prepare(void)
{
	has_key = pthread_key_create(&key, on_exit_of_thread) == 0;
	atexit(on_exit_of_process);
}

void netio_exit_watch(struct netio_eventloop *evloop)
{
	pthread_once(&once, prepare);
	netio_exit_uses(evloop, evloop);
	evloop->next = loops;
	loops = evloop;
	if (has_key)
		pthread_setspecific(key, &loops);
}

void netio_exit_forget(struct netio_eventloop *evloop)
{
	struct netio_eventloop **at = &loops;

	while (*at && *at != evloop)
		at = &(*at)->next;
	if (*at)
		*at = evloop->next;
}
