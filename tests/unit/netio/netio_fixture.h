/* SPDX-License-Identifier: BSD-3-Clause */
/* A context per test, in a process without lcores before and after it. */
#ifndef NETIO_FIXTURE_H
#define NETIO_FIXTURE_H

#include "log_capture.h"
#include "netio.h"
#include "plx_test.h"

#include <unistd.h>

static struct netio_context ctx;

/* Tests run over TCP on loopback, unless the environment gives another provider and host
 * (tests/rdma). */
static inline const char *test_host(void)
{
	const char *host = getenv("PLX_TEST_HOST");

	return host ? host : "127.0.0.1";
}

static inline void netio_options_with(const char *more)
{
	const char *provider = getenv("PLX_TEST_PROVIDER");
	char options[256];

	log_capture();
	snprintf(options, sizeof(options), "--huge none --provider %s %s",
		 provider ? provider : "tcp", more);
	setenv("NETIO_OPTIONS", options, 1);
}

static inline void netio_up_with(const char *more)
{
	netio_options_with(more);
	assert_works(netio_init(&ctx));
}

PLX_FIXTURE(netio_up, 0, netio_up_with(""))

static inline int netio_down(void **state)
{
	assert_int_equal(netio_fini(&ctx), 0);
	assert_int_equal(plx_lcore_count(), 0);
	plx_log_set_sink(NULL, NULL);
	unsetenv("NETIO_OPTIONS");
	return 0;
}

static inline void run(void)
{
	assert_works(netio_run(&ctx.evloop));
}

static inline void terminate(void *data)
{
	netio_terminate(&ctx.evloop);
}

/* What was posted before runs too. */
static inline void run_once(void)
{
	assert_int_equal(netio_post(&ctx.evloop, terminate, NULL), 0);
	run();
}

/* A callback that counts its calls, and ends the loop at the last one. */
static uint64_t calls, until;

static inline void count(void *data)
{
	assert_ptr_equal(data, &calls);
	if (++calls == until)
		netio_terminate(&ctx.evloop);
}

static inline void run_expecting(uint64_t count)
{
	run();
	assert_int_equal(calls, count);
}

static inline void expect_calls(uint64_t count)
{
	calls = 0;
	until = count;
}

#define NETIO_TEST(test) PLX_TEST_WITH(test, netio_up, netio_down)

#endif
