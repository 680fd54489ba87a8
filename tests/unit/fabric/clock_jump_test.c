/* SPDX-License-Identifier: BSD-3-Clause */
/* Links while the kernel's clocks jump by hours, back and forth, as when somebody sets the time.
 * Link timeouts use the TSC, which does not jump. */
#include "fixture.h"
#include "rogue.h"

#define PERIOD_MS 100
#define DEAD_MS   500
#define LATE_MS   1500
#define HOUR_NS   (3600 * (int64_t)PLX_NS_PER_S)

static _Atomic int64_t jumped_ns;
static _Atomic int64_t suspended_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int rc = __real_clock_gettime(clock, time);

	if (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME) {
		int64_t ns = time->tv_sec * (int64_t)PLX_NS_PER_S + time->tv_nsec + jumped_ns +
			     (clock == CLOCK_BOOTTIME ? suspended_ns : 0);

		time->tv_sec = ns / (int64_t)PLX_NS_PER_S;
		time->tv_nsec = ns % (int64_t)PLX_NS_PER_S;
	}
	return rc;
}

static struct rogue *rogue;

static int up(void **state)
{
	struct frame_hello hello = rogue_beating_hello(PERIOD_MS, DEAD_MS);
	struct timespec before, after;

	fixture_start_beating(0, 0, false);
	/* Otherwise this proves nothing. */
	clock_gettime(CLOCK_MONOTONIC, &before);
	jumped_ns = HOUR_NS;
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true((after.tv_sec - before.tv_sec) * (int64_t)PLX_NS_PER_S >= HOUR_NS);
	rogue = rogue_open(fixture_listen("127.0.0.1:0", NULL), &hello);
	return 0;
}

static int down(void **state)
{
	fixture_stop();
	jumped_ns = 0;
	return 0;
}

/* Not by whole periods, so that multiples move each time. */
static void jump(unsigned i)
{
	jumped_ns = i % 2 ? 0 : (int64_t)(i + 1) * (HOUR_NS + 37 * (int64_t)PLX_NS_PER_MS);
}

/* Skip the test if more time has passed than it allows for. */
static void skip_if_late(uint64_t begin_ns, unsigned allowed_ms)
{
	if (plx_now_ns() - begin_ns <= allowed_ms * PLX_NS_PER_MS)
		return;
	print_message("skipped: the host is too busy\n");
	skip();
}

#define TEST(name) PLX_TEST_WITH(name, up, down)

TEST(a_clock_jump_makes_neither_side_silent)
{
	uint64_t begin_ns = plx_now_ns();

	for (unsigned i = 0; i < 3 * DEAD_MS / 50; i++) {
		uint64_t step_ns = plx_now_ns();

		jump(i);
		rogue_beat(rogue);
		pump_ms(50);
		skip_if_late(step_ns, DEAD_MS / 4);
		assert_int_equal(server.closed, 0);
		assert_false(plx_link_is_suspect(server.link));
	}
	assert_in_range(stats_of(server.link).heartbeats_sent, 3 * DEAD_MS / PERIOD_MS / 3,
			(plx_now_ns() - begin_ns) / (50 * PLX_NS_PER_MS));
}

TEST(a_silent_peer_is_declared_dead_despite_clock_jumps)
{
	uint64_t begin_ns = plx_now_ns();

	for (unsigned i = 0; i < (DEAD_MS + LATE_MS) / 20 && !server.closed; i++) {
		jump(i);
		pump_ms(20);
	}
	assert_int_equal(server.closed, 1);
	assert_int_equal(server.reason, PLX_LINK_SILENT);
	assert_true(plx_now_ns() - begin_ns > (DEAD_MS - PERIOD_MS) * PLX_NS_PER_MS);
}

/* The host was suspended, and the peer resumes later than this process. */
TEST(a_resumed_host_restarts_the_timeout_of_its_peers)
{
	uint64_t begin_ns = plx_now_ns();

	pump_ms(PERIOD_MS);
	suspended_ns += 3600 * (int64_t)PLX_NS_PER_S;
	pump_ms(2 * PERIOD_MS); /* long enough to notice it */
	skip_if_late(begin_ns, DEAD_MS - PERIOD_MS);
	pump_ms(3 * DEAD_MS);
	assert_int_equal(server.closed, 0);
}

PLX_TEST_MAIN()
