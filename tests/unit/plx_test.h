/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to all cmocka tests: cmocka with its prerequisites, and checks of error texts. */
#ifndef PLX_TEST_H
#define PLX_TEST_H

#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "plx_base.h"

/* Tests. PLX_TEST(it_does_so) {...} defines a test and lists it; a program that ends with
 * PLX_TEST_MAIN() runs the tests of its file in order. The functions have cmocka's type: setup and
 * teardown, of a test or of the whole program, may be NULL. */

/** A listed test. */
struct plx_test {
	struct CMUnitTest test;
	int place; /* in its file */
	struct plx_test *next;
};

static struct plx_test *plx_tests PLX_UNUSED;

static inline void plx_test_list(struct plx_test *test)
{
	struct plx_test **at = &plx_tests;

	while (*at && (*at)->place < test->place)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

/* AddressSanitizer or ThreadSanitizer: everything is slower, and freed memory is kept. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLX_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PLX_TEST_SANITIZED 1
#endif
#endif
#ifndef PLX_TEST_SANITIZED
#define PLX_TEST_SANITIZED 0
#endif

/* For a program; below meson's (150 s), which prints no location. PLX_TEST_TIMEOUT_MULTIPLIER is
 * what meson multiplies its own by; 0 is no limit, for debuggers. */
#define PLX_TEST_LIMIT_S 140

/* The signal handler at the limit. addr2line finds the lines of the test itself. */
static inline void plx_test_stop(int number)
{
	static const char text[] = "the test program's time limit is over; it is here:\n";
	ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1); /* dprintf may allocate */
	void *frames[64];

	(void)written;
	backtrace_symbols_fd(frames, backtrace(frames, PLX_ARRAY_LEN(frames)), STDERR_FILENO);
	signal(number, SIG_DFL);
	raise(number);
}

static pid_t plx_test_forks PLX_UNUSED;

static inline void plx_test_note_parent(void)
{
	plx_test_forks = getpid();
}

/* In a child: nothing else would end it after a failed check. The parent may have ended already;
 * that of another PID namespace is 0. */
static inline void plx_test_end_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != plx_test_forks && getppid() != 0)
		raise(SIGKILL);
}

/* A failed check ends the program: to jump out of it would leave lcores and threads running, which
 * the rest of the program would wait for, or share its data with. */
static inline void plx_test_begin(void)
{
	const char *multiplier = getenv("PLX_TEST_TIMEOUT_MULTIPLIER");
	unsigned limit_s = PLX_TEST_LIMIT_S * (multiplier ? (unsigned)atoi(multiplier) : 1);
	unsigned own_s = alarm(0); /* of this program, or of an earlier call */
	void *frame;

	setenv("CMOCKA_TEST_ABORT", "1", 0);
	backtrace(&frame, 1); /* the first call allocates, which a handler must not */
	signal(SIGALRM, plx_test_stop);
	pthread_atfork(plx_test_note_parent, NULL, plx_test_end_with_parent);
	if (own_s || !getenv("PLX_TEST_SOAK"))
		alarm(own_s ? own_s : limit_s);
}

/** Run the tests of this file. Return: the number of failures. */
static inline int plx_test_run(const char *name, CMFixtureFunction setup,
			       CMFixtureFunction teardown)
{
	struct CMUnitTest tests[128];
	size_t count = 0;

	plx_test_begin();
	for (struct plx_test *test = plx_tests; test; test = test->next) {
		if (count == PLX_ARRAY_LEN(tests))
			abort();
		tests[count++] = test->test;
	}
	return _cmocka_run_group_tests(name, tests, count, setup, teardown);
}

#define PLX_TEST_LIST(id, name, setup, teardown)                                   \
	static struct plx_test id = {.test = {#name, name, setup, teardown, NULL}, \
				     .place = __COUNTER__};                        \
	PLX_CONSTRUCTOR static void id##_is_listed(void)                           \
	{                                                                          \
		plx_test_list(&id);                                                \
	}

#define PLX_TEST(name) PLX_TEST_WITH(name, NULL, NULL)
#define PLX_TEST_WITH(name, setup, teardown)              \
	static void name(void **state);                   \
	PLX_TEST_LIST(test_##name, name, setup, teardown) \
	static void name(void **state)

/** Run a test again, perhaps from another file, with that fixture. */
#define PLX_TEST_AGAIN(name, setup, teardown) \
	PLX_TEST_LIST(test_##name##_with_##setup, name, setup, teardown)

#define PLX_TEST_MAIN() PLX_TEST_MAIN_WITH(NULL, NULL)
#define PLX_TEST_MAIN_WITH(setup, teardown)                    \
	int main(void)                                         \
	{                                                      \
		return plx_test_run("tests", setup, teardown); \
	}

/** A setup or teardown of one statement, or none, that returns the result. */
#define PLX_FIXTURE(name, result, ...)       \
	static inline int name(void **state) \
	{                                    \
		__VA_ARGS__;                 \
		return result;               \
	}

/** A callback with those parameters that only counts its calls. */
#define PLX_COUNTS(callback, counter, ...)       \
	static inline void callback(__VA_ARGS__) \
	{                                        \
		counter++;                       \
	}

/** A function with those parameters that returns the structure `it`, filled in by a call. */
#define PLX_READS(type, name, parameters, call) \
	static inline type name parameters      \
	{                                       \
		type it;                        \
                                                \
		call;                           \
		return it;                      \
	}

/** Run fn in a thread, which is not an lcore. Return: its result. */
static inline void *run_in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	void *result = NULL;

	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	return result;
}

/** Start `count` threads that are not lcores, each with its element of an array: of `size` bytes;
 * 0: of all; array NULL, and size 1: its number. */
static inline void threads_start(pthread_t *threads, size_t count, void *(*fn)(void *),
				 const void *array, size_t size)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fn,
						(void *)((uintptr_t)array + i * size)),
				 0);
}

static inline void threads_join(const pthread_t *threads, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/** Start them, and wait for all. */
static inline void run_in_threads(size_t count, void *(*fn)(void *), const void *array, size_t size)
{
	pthread_t threads[64];

	assert_in_range(count, 1, PLX_ARRAY_LEN(threads));
	threads_start(threads, count, fn, array, size);
	threads_join(threads, count);
}

/** Repeat the step until the condition is true; fail after 20 s. */
#define wait_doing(condition, step)                                              \
	do {                                                                     \
		const uint64_t limit_ns_ = plx_now_ns() + 20 * PLX_NS_PER_S;     \
		while (!(condition)) {                                           \
			if (plx_now_ns() > limit_ns_)                            \
				fail_msg("not true after 20 s: %s", #condition); \
			step;                                                    \
		}                                                                \
	} while (0)

/** The same while other threads run. */
#define wait_until(condition) wait_doing(condition, sched_yield())

/** Under qemu-user (config/arm64.ini) some system calls do nothing, among them madvise,
 * mbind and process_vm_readv, and the cycle counter is coarse. */
#define skip_if_emulated()                       \
	do {                                     \
		if (getenv("PLX_TEST_EMULATED")) \
			skip();                  \
	} while (0)

/** Fail unless a call returns 0; shows its error. */
#define assert_works(call)                           \
	do {                                         \
		if ((call) != 0)                     \
			fail_msg("%s", plx_error()); \
	} while (0)

/** Fail unless the last error's text contains `part`; shows the text. */
#define assert_error_has(part)                                                       \
	do {                                                                         \
		if (!strstr(plx_error(), (part)))                                    \
			fail_msg("error text '%s' lacks '%s'", plx_error(), (part)); \
	} while (0)

/** Fail unless a call returns that error, and its text contains `part`. */
#define assert_fails(call, error, part)        \
	do {                                   \
		assert_int_equal(call, error); \
		assert_error_has(part);        \
	} while (0)

#endif
