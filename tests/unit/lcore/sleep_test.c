/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping, and what ends it. */
#include "lcore_internal.h"
#include "lcores.h"
#include "log_capture.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define GAP_NS ASLEEP_GAP_NS

PLX_FIXTURE(one_sleeper, plx_idle_set(0, &event_idle), lcores_up(1))

static int two_sleepers(void **state)
{
	lcores_up(2);
	assert_int_equal(plx_idle_set(0, &event_idle), 0);
	assert_int_equal(plx_idle_set(10, &event_idle), 0);
	return 0;
}

static int send_quit_message(void)
{
	return plx_lcore_send(0, quit_loop, NULL);
}

static void *send_quit(void *arg)
{
	wait_until_asleep(0);
	assert_int_equal(send_quit_message(), 0);
	return NULL;
}

static void *stop(void *arg)
{
	wait_until_asleep(0);
	plx_stop();
	return NULL;
}

static void *raise_signal(void *arg)
{
	wait_until_asleep(0);
	kill(getpid(), SIGTERM);
	return NULL;
}

#define ONE(test) PLX_TEST_WITH(test, one_sleeper, no_lcores)
#define TWO(test) PLX_TEST_WITH(test, two_sleepers, no_lcores)

/* Messages ----------------------------------------------------------------------------------- */

ONE(a_message_of_another_thread_wakes_an_lcore)
{
	uint64_t took_ns = run_until(send_quit, NULL);

	struct plx_idle_stats stats = idle_stats_of(0);
	assert_in_range(stats.sleeps, 1, 20); /* it does not poll */
	assert_int_not_equal(stats.wakes[PLX_WAKE_MESSAGE], 0);
	assert_int_equal(stats.wakes[PLX_WAKE_CAP] + stats.wakes[PLX_WAKE_TIMER], 0);
	assert_in_range(stats.asleep_ns, GAP_NS, took_ns);
}

/* The lane's bit stays set from the first message on, and reveals nothing about the second. */
static void nothing(void *arg)
{
}

static int send_twice(void *arg)
{
	int err = plx_lcore_send(0, nothing, NULL);

	wait_until_asleep(0);
	return err ? err : send_quit_message();
}

TWO(a_lane_whose_bit_is_set_wakes_an_lcore_again)
{
	int result = -1;

	assert_int_equal(plx_lcore_launch(10, send_twice, NULL), 0);
	assert_int_equal(plx_loop_run(), 0);
	assert_int_equal(plx_lcore_join(10, PLX_NEVER, &result), 0);
	assert_int_equal(result, 0);
}

TWO(plx_stop_wakes_all_lcores)
{
	int result = -1;

	assert_int_equal(plx_lcore_launch(10, run_loop, NULL), 0);
	wait_until_asleep(10);
	run_until(stop, NULL);
	assert_int_equal(plx_lcore_join(10, PLX_NEVER, &result), 0);
	assert_int_equal(result, 0);
}

ONE(a_stop_signal_wakes_an_lcore)
{
	lcores_down();
	plx_stop_on_signals();
	one_sleeper(state);
	run_until(raise_signal, NULL);
	assert_int_equal(plx_stop_signal(), SIGTERM);
}

/* Timers ------------------------------------------------------------------------------------- */

static void quit_timer(struct plx_timer *timer, void *arg)
{
	*(uint64_t *)arg = plx_now_ns();
	plx_loop_quit();
}

/* Run the loop until a timer ends it. Return: when it fired. */
static uint64_t run_for(uint64_t ns)
{
	uint64_t fired_ns = 0;
	struct plx_timer timer;

	plx_timer_init(&timer, quit_timer, &fired_ns);
	assert_int_equal(plx_timer_start(&timer, ns), 0);
	assert_int_equal(plx_loop_run(), 0);
	return fired_ns;
}

ONE(a_timer_ends_a_sleep)
{
	uint64_t begin_ns = plx_now_ns();

	assert_true(run_for(GAP_NS) - begin_ns >= GAP_NS);
	struct plx_idle_stats stats = idle_stats_of(0);
	assert_in_range(stats.sleeps, 1, 3); /* it sleeps to the end, at once */
	assert_in_range(stats.wakes[PLX_WAKE_TIMER], 1, 2);
	assert_true(stats.asleep_ns > GAP_NS / 2);
	/* Slept time belongs to no turn. */
	struct plx_lcore_stats turns = stats_of(0);
	assert_true(plx_tsc_to_ns(turns.idle_cycles + turns.busy_cycles) + stats.asleep_ns <=
		    plx_now_ns() - begin_ns);
	assert_true(plx_tsc_to_ns(turns.longest_turn_cycles) < GAP_NS * 2);
}

static void expire(struct plx_timer *timer, void *arg)
{
}

/* The duration of a sleep of an adaptive lcore that polls for 1 ms at first, and wakes 50 ms before
 * what must not be late: here a timer of 200 ms. other_ms: of a lax timer; or 0. */
static uint64_t sleeps_before(struct plx_idle_conf conf, bool lax, uint64_t other_ms)
{
	uint64_t fired_ns = 0;
	struct plx_timer timer, other;

	conf.algorithm = PLX_IDLE_FIXED;
	conf.alpha = 50;
	conf.wake_ns = 50 * PLX_NS_PER_MS;
	conf.sleep_ns = 1;
	assert_int_equal(plx_idle_set(0, &conf), 0);
	plx_timer_init(&timer, quit_timer, &fired_ns);
	plx_timer_init(&other, expire, NULL);
	plx_timer_set_lax(&timer, lax);
	plx_timer_set_lax(&other, true);
	assert_int_equal(plx_timer_start(&timer, 200 * PLX_NS_PER_MS), 0);
	if (other_ms)
		assert_int_equal(plx_timer_start(&other, other_ms * PLX_NS_PER_MS), 0);
	uint64_t before_ns = idle_stats_of(0).asleep_ns;
	assert_int_equal(plx_loop_run(), 0);
	plx_timer_stop(&other);
	return idle_stats_of(0).asleep_ns - before_ns;
}

#define EARLY_MS 175 /* it slept for 150 ms, not for up to 200 ms */
#define TRIES    5   /* a busy host lengthens some sleeps */

/* A sleep that ends between that time and the timer does not make it late. With a budget of half
 * of the CPU it wakes a quarter of the time earlier. */
ONE(an_adaptive_lcore_is_on_time_and_is_not_early_for_a_lax_timer)
{
	static const struct {
		struct plx_idle_conf idle;
		uint64_t other_ms;
	} cases[] = {
		{{.sleep_max_ns = 185 * PLX_NS_PER_MS}, 0},
		{{0}, 190},
		{{.budget = 0.5}, 0},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		uint64_t asleep_ns = UINT64_MAX;

		for (unsigned try = 0; try < TRIES && asleep_ns > EARLY_MS * PLX_NS_PER_MS; try++)
			asleep_ns = sleeps_before(cases[i].idle, false, cases[i].other_ms);
		assert_in_range(asleep_ns, 50 * PLX_NS_PER_MS, EARLY_MS * PLX_NS_PER_MS);
	}
	assert_true(sleeps_before((struct plx_idle_conf){0}, true, 0) > EARLY_MS * PLX_NS_PER_MS);
}

/* Policies ----------------------------------------------------------------------------------- */

static const struct plx_idle_conf costly_wake = {.algorithm = PLX_IDLE_FIXED,
						 .alpha = 0.01,
						 .wake_ns = 100000,
						 .sleep_ns = PLX_NS_PER_MS,
						 .spin_max_ns = 100000,
						 .sleep_max_ns = PLX_NEVER};

static void on_message(void *arg)
{
	plx_loop_expect(plx_loop_now_ns() + *(uint64_t *)arg);
}

static void *send_and_quit_later(void *arg)
{
	wait_until_asleep(0);
	assert_int_equal(plx_lcore_send(0, on_message, arg), 0);
	usleep(10000);
	assert_int_equal(send_quit_message(), 0);
	return NULL;
}

static uint64_t idle_ns_when_expected_in(uint64_t expect_ns)
{
	uint64_t before = stats_of(0).idle_cycles;

	run_until(send_and_quit_later, &expect_ns);
	return plx_tsc_to_ns(stats_of(0).idle_cycles - before);
}

/* It polls 2 ms for a message expected in 4 ms, and not for one expected later than a sleep costs,
 * which is 11 ms here. */
ONE(an_expected_message_keeps_the_lcore_awake)
{
	assert_int_equal(plx_idle_set(0, &costly_wake), 0);
	assert_true(idle_ns_when_expected_in(4 * PLX_NS_PER_MS) >= 5 * PLX_NS_PER_MS);
	assert_true(idle_ns_when_expected_in(100 * PLX_NS_PER_MS) < 4 * PLX_NS_PER_MS);
}

static void poll_from_now_on(void *arg)
{
	*(uint64_t *)arg = idle_stats_of(0).sleeps;
	assert_int_equal(plx_idle_set(0, &(struct plx_idle_conf){0}), 0); /* measures costs */
	assert_int_equal(plx_idle_set(0, &(struct plx_idle_conf){.mode = PLX_IDLE_POLL}), 0);
}

static void *change_to_poll(void *arg)
{
	wait_until_asleep(0);
	assert_int_equal(plx_lcore_send(0, poll_from_now_on, arg), 0);
	usleep(10000);
	assert_int_equal(send_quit_message(), 0);
	return NULL;
}

/* In the turn right after a sleep. */
ONE(a_policy_may_be_set_in_a_callback)
{
	uint64_t sleeps = 0;

	run_until(change_to_poll, &sleeps);
	assert_int_not_equal(sleeps, 0);
	assert_int_equal(idle_stats_of(0).sleeps, sleeps);
}

ONE(bad_idle_policies_are_refused)
{
	static const struct {
		struct plx_idle_conf idle;
		const char *error;
	} cases[] = {
		{{.alpha = -1}, "plx_idle_set: alpha -1: give 0.001 to 1000"},
		{{.budget = 1.5}, "plx_idle_set: budget 1.5: give 0.001 to 1"},
		{{.wake_ns = 2 * PLX_NS_PER_S},
		 "wake_ns 2000000000, sleep_ns 0, spin_max_ns 0: give at most 1 s"},
		{{.mode = (enum plx_idle_mode)7}, "plx_idle_set: "},
	};
	struct plx_idle_conf conf;
	struct plx_idle_stats stats;

	for (unsigned i = 0; i < PLX_ARRAY_LEN(cases); i++)
		assert_fails(plx_idle_set(0, &cases[i].idle), -EINVAL, cases[i].error);
	assert_fails(plx_idle_set(3, &event_idle), -ENOENT, "plx_idle_set: there is no lcore 3");
	assert_int_equal(plx_idle_get(3, &conf), -ENOENT);
	assert_int_equal(plx_idle_stats_read(3, &stats), -ENOENT);
	assert_int_equal(plx_idle_get(0, &conf), 0);
	assert_int_equal(conf.mode, PLX_IDLE_EVENT);
}

/* Pollers ------------------------------------------------------------------------------------ */

/* A poller that has work when its descriptor is readable, or when `work` is set. */
struct source {
	int fd;
	struct plx_watch watch;
	_Atomic bool work; /* without signalling the descriptor */
	bool refuses;
	bool always_worked;  /* or always reports work */
	unsigned quit_after; /* pieces of work, or naps */
};

static int poll_source(void *arg, uint64_t now_ns)
{
	struct source *source = arg;
	uint64_t count;
	bool found = atomic_exchange(&source->work, false);

	if (read(source->fd, &count, sizeof(count)) == sizeof(count))
		found = true;
	if (found && --source->quit_after == 0)
		plx_loop_quit();
	return found || source->always_worked;
}

static int arm_source(void *arg, struct plx_sleep *sleep)
{
	struct source *source = arg;

	return source->refuses ? -EAGAIN : 0;
}

static void on_source(struct plx_watch *watch, uint32_t events)
{
}

/* As a library does: its poller reads the descriptor. */
static struct plx_poller *add_source(struct source *source, bool armed)
{
	struct plx_watch_set *set = lcore_watch_set();
	struct plx_poller *poller;

	source->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(source->fd >= 0);
	source->watch = (struct plx_watch){source->fd, on_source};
	assert_int_equal(set->add(set, &source->watch, EPOLLIN), 0);
	assert_int_equal(plx_poller_add("source", poll_source, source, &poller), 0);
	if (armed)
		plx_poller_set_arm(poller, arm_source);
	return poller;
}

static struct source source; /* of a test with one */

static int no_source(void **state)
{
	close(source.fd);
	source = (struct source){0};
	return no_lcores(state);
}

#define SOURCE_TEST(test) PLX_TEST_WITH(test, one_sleeper, no_source)

static void *write_fd(void *arg)
{
	wait_until_asleep(0);
	assert_int_equal(eventfd_write(((struct source *)arg)->fd, 1), 0);
	return NULL;
}

SOURCE_TEST(the_descriptor_of_a_poller_wakes_an_lcore)
{
	source.quit_after = 1;
	add_source(&source, true);
	run_until(write_fd, &source);
	assert_in_range(idle_stats_of(0).sleeps, 1, 3);
	assert_int_equal(idle_stats_of(0).wakes[PLX_WAKE_POLLER], 1);
	assert_int_equal(idle_stats_of(0).naps, 0);
}

static void *quit_later(void *arg)
{
	usleep(1200000);
	assert_int_equal(send_quit_message(), 0);
	return NULL;
}

static struct plx_idle_stats stats_of_a_while(void)
{
	run_until(quit_later, NULL);
	return idle_stats_of(0);
}

/* With naps of 50 us, doubling each time up to 1 ms; longer on a busy host. */
SOURCE_TEST(a_poller_that_cannot_be_waited_for_is_named_and_polled)
{
	static const struct source cases[] = {{0}, {.refuses = true}, {.always_worked = true}};

	log_capture();
	for (unsigned i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		source = cases[i];
		struct plx_poller *poller = add_source(&source, i > 0);
		struct plx_idle_stats before = idle_stats_of(0), stats = stats_of_a_while();
		uint64_t naps = stats.naps - before.naps;

		assert_int_equal(stats.sleeps - before.sleeps, naps);
		if (source.always_worked)
			assert_int_equal(naps, 0);
		else
			assert_in_range(naps, 60, 1300);
		assert_non_null(stats.awake_by);
		assert_string_equal(stats.awake_by, "source");
		plx_poller_remove(poller);
		close(source.fd);
	}
	source.fd = -1;
	plx_log_set_sink(NULL, NULL);
	assert_int_equal(log_count("poller source does not say what it waits for"), 1);
}

static void *make_work(void *arg)
{
	wait_until_asleep(0);
	atomic_store(&((struct source *)arg)->work, true);
	return NULL;
}

/* Its descriptor stays silent: the cap finds the work. */
SOURCE_TEST(a_missed_wake_up_is_counted_as_a_rescue)
{
	const struct plx_idle_conf capped = {.mode = PLX_IDLE_EVENT, .sleep_max_ns = 4 * GAP_NS};

	source.quit_after = 1;
	assert_int_equal(plx_idle_set(0, &capped), 0);
	add_source(&source, true);
	run_until(make_work, &source);
	assert_int_not_equal(idle_stats_of(0).wakes[PLX_WAKE_CAP], 0);
	assert_int_equal(idle_stats_of(0).rescues, 1);
	assert_int_equal(idle_stats_of(0).spurious, 0);
}

/* It counts from then, not from before the sleep. */
struct waker {
	struct source source;
	struct plx_timer timer;
	uint64_t started_ns, fired_ns;
};

static void start_timer(struct plx_watch *watch, uint32_t events)
{
	struct waker *waker = plx_container_of(watch, struct waker, source.watch);

	if (plx_timer_running(&waker->timer))
		return;
	waker->started_ns = plx_loop_now_ns();
	plx_timer_start(&waker->timer, GAP_NS / 2);
}

ONE(a_timer_started_by_what_ends_a_sleep_is_not_early)
{
	struct waker waker = {0};
	uint64_t begin_ns = plx_now_ns();

	plx_timer_init(&waker.timer, quit_timer, &waker.fired_ns);
	add_source(&waker.source, true);
	waker.source.watch.ready = start_timer;
	run_until(write_fd, &waker.source);
	assert_true(waker.started_ns - begin_ns >= GAP_NS);
	assert_true(waker.fired_ns - waker.started_ns >= GAP_NS / 2);
	close(waker.source.fd);
}

PLX_TEST_MAIN()
