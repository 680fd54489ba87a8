/* SPDX-License-Identifier: BSD-3-Clause */
#include "count.h"
#include "lcores.h"
#include "log_capture.h"

#include <semaphore.h>

#define FOREVER UINT64_MAX

static int return_arg(void *arg)
{
	return (int)(intptr_t)arg;
}

/* A function that waits until the test releases it. */
static sem_t gate;

static int wait_at_gate(void *arg)
{
	sem_wait(&gate);
	return 42;
}

static void keep_busy(uint32_t id)
{
	sem_init(&gate, 0, 0);
	assert_int_equal(plx_lcore_launch(id, wait_at_gate, NULL), 0);
}

THREE_LCORES(ids_cpus_and_states_are_reported)
{
	uint32_t ids[4], count = 0, workers = 0;

	assert_int_equal(plx_lcore_count(), 3);
	assert_int_equal(plx_lcore_main(), 0);
	assert_int_equal(plx_lcore_id(), 0);
	PLX_LCORE_FOREACH (id)
		ids[count++] = id;
	assert_int_equal(count, 3);
	PLX_LCORE_FOREACH_WORKER (id)
		workers++;
	assert_int_equal(workers, 2);
	for (uint32_t i = 0; i < 3; i++) {
		unsigned cpu = plx_cpuset_next(&lcores.places[i].cpus, 0);

		assert_int_equal(ids[i], i * 10);
		assert_int_equal(plx_lcore_cpu(ids[i]), cpu);
		assert_int_equal(plx_lcore_node(ids[i]), plx_topo_cpu_node(lcores.topo, cpu));
	}
	assert_int_equal(plx_lcore_state(0), PLX_LCORE_RUNNING);
	assert_int_equal(plx_lcore_state(10), PLX_LCORE_WAIT);
	assert_int_equal(plx_lcore_state(5), PLX_LCORE_OFF);
	assert_int_equal(plx_lcore_state(PLX_LCORE_NONE), PLX_LCORE_OFF);
	assert_int_equal(plx_lcore_node(5), -1);
}

static int look_around(void *arg)
{
	struct plx_cpuset cpus;
	char name[16], expected[16];
	uint32_t i = plx_lcore_id() / 10;

	if (plx_topo_pinned(lcores.topo, &cpus) || !plx_cpuset_equal(&cpus, &lcores.places[i].cpus))
		return -1;
	if (i == 0)
		return 0;
	snprintf(expected, sizeof(expected), "plx-lcore-%u", plx_lcore_id());
	pthread_getname_np(pthread_self(), name, sizeof(name));
	return strcmp(name, expected) ? -2 : (int)plx_lcore_id();
}

THREE_LCORES(every_thread_is_pinned_and_named)
{
	int result = -1;

	assert_int_equal(plx_lcore_launch_all(look_around, NULL, &result), 0);
	assert_int_equal(result, 0);
	for (uint32_t id = 10; id <= 20; id += 10) {
		assert_int_equal(plx_lcore_join(id, FOREVER, &result), 0);
		assert_int_equal(result, id);
	}
}

THREE_LCORES(an_lcore_goes_from_wait_to_running_to_done_and_back)
{
	int result = 0;

	keep_busy(10);
	assert_int_equal(plx_lcore_state(10), PLX_LCORE_RUNNING);
	assert_fails(plx_lcore_launch(10, return_arg, NULL), -EBUSY, "lcore 10 (CPU ");
	assert_error_has("runs a function already; call plx_lcore_join first");
	sem_post(&gate);
	wait_until(plx_lcore_state(10) != PLX_LCORE_RUNNING);
	assert_int_equal(plx_lcore_state(10), PLX_LCORE_DONE);
	assert_fails(plx_lcore_launch(10, return_arg, NULL), -EBUSY,
		     "has a result to be taken; call plx_lcore_join first");
	assert_int_equal(plx_lcore_join(10, 0, &result), 0);
	assert_int_equal(result, 42);
	assert_int_equal(plx_lcore_state(10), PLX_LCORE_WAIT);
	assert_fails(plx_lcore_join(10, FOREVER, &result), -EINVAL,
		     "plx_lcore_join: nothing was launched on lcore 10");
	assert_int_equal(run_on(10, return_arg, (void *)7), 7);
}

THREE_LCORES(a_join_times_out_and_names_the_lcore_that_is_busy)
{
	uint64_t start = plx_now_ns();

	int result = -1;

	assert_int_equal(plx_lcore_launch(10, return_arg, NULL), 0);
	keep_busy(20);
	assert_fails(plx_lcore_join(20, 30 * PLX_NS_PER_MS, NULL), -ETIMEDOUT, "lcore 20 (CPU ");
	assert_error_has("has not returned after 0.030 s; its function must return once");
	assert_true(plx_now_ns() - start >= 29 * PLX_NS_PER_MS);
	assert_int_equal(plx_lcore_state(20), PLX_LCORE_RUNNING);
	assert_fails(plx_lcore_join_all(30 * PLX_NS_PER_MS, NULL), -ETIMEDOUT,
		     "plx_lcore_join_all: lcore 20 (CPU ");
	assert_error_has("has not returned after 0.030 s");
	sem_post(&gate);
	assert_int_equal(plx_lcore_join_all(FOREVER, &result), 0);
	assert_int_equal(result, 42); /* the first that is not 0 */
}

THREE_LCORES(no_function_can_be_launched_on_the_main_lcore)
{
	assert_fails(plx_lcore_launch(0, return_arg, NULL), -EINVAL,
		     "plx_lcore_launch: lcore 0 is the main lcore; call the function there");
	assert_fails(plx_lcore_join(0, FOREVER, NULL), -EINVAL,
		     "plx_lcore_join: lcore 0 is the main lcore");
	assert_fails(plx_lcore_launch(11, return_arg, NULL), -ENOENT, "there is no lcore 11");
	assert_int_equal(plx_lcore_join(11, FOREVER, NULL), -ENOENT);
}

static int count_calls(void *arg)
{
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
	return 0;
}

THREE_LCORES(launch_all_refuses_all_if_one_is_busy)
{
	int calls = 0;

	keep_busy(20);
	assert_fails(plx_lcore_launch_all(count_calls, &calls, NULL), -EBUSY,
		     "plx_lcore_launch_all: lcore 20");
	assert_int_equal(plx_lcore_state(10), PLX_LCORE_WAIT);
	sem_post(&gate);
	plx_lcore_join(20, FOREVER, NULL);
	assert_int_equal(plx_lcore_launch_all(count_calls, &calls, NULL), 0);
	plx_lcore_join(10, FOREVER, NULL);
	plx_lcore_join(20, FOREVER, NULL);
	assert_int_equal(calls, 3);
}

THREE_LCORES(fini_names_the_lcore_that_does_not_return)
{
	keep_busy(20);
	assert_fails(plx_lcores_fini(20 * PLX_NS_PER_MS), -ETIMEDOUT, "lcore 20 (CPU ");
	assert_error_has("did not come back within 0.020 s of plx_stop");
	assert_null(strstr(plx_error(), "lcore 10"));
	/* Nothing changed, so fini may be retried. */
	assert_true(plx_stopping());
	assert_int_equal(plx_lcore_count(), 3);
	sem_post(&gate);
	assert_int_equal(plx_lcores_fini(FOREVER), 0);
	assert_int_equal(plx_lcore_count(), 0);
	assert_int_equal(plx_lcores_fini(0), 0); /* there is nothing to end */
	plx_mem_fini();
	plx_topo_close(lcores.topo);
	lcores_up(3);
}

static int try_fini(void *arg)
{
	return plx_lcores_fini(0) == -EPERM &&
	       strstr(plx_error(), "call it on the main lcore, 0") != NULL;
}

THREE_LCORES(only_the_main_lcore_may_call_fini_and_nobody_init_again)
{
	assert_int_equal(run_on(10, try_fini, NULL), 1);
	assert_fails(plx_lcores_init(&lcores.conf), -EALREADY,
		     "there are 3 lcores already; call plx_lcores_fini first");
}

PLX_COUNTS(count, (*(unsigned *)arg), void *arg)

PLX_TEST(a_lane_has_the_requested_length_which_is_a_power_of_two)
{
	static const uint32_t slots[] = {PLX_LANE_SLOTS_MIN, 16, PLX_LANE_SLOTS_MAX};
	static const uint32_t wrong[] = {1, 255, 2 * PLX_LANE_SLOTS_MAX, UINT32_MAX};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(slots); i++) {
		unsigned received = 0, sent = 0;

		lcores_lane_slots = slots[i];
		lcores_up(1);
		while (plx_lcore_send(0, count, &received) == 0)
			sent++;
		assert_int_equal(sent, slots[i]);
		turns_until_idle(NULL);
		assert_int_equal(received, sent);
		lcores_down();
	}
	lcores_lane_slots = 0;
	lcores_prepare(1);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(wrong); i++) {
		lcores.conf.lane_slots = wrong[i];
		assert_fails(plx_lcores_init(&lcores.conf), -EINVAL,
			     ": give a power of two from 2 to 65536, or 0 for 256");
	}
	plx_topo_close(lcores.topo);
}

PLX_TEST(the_main_lcore_is_any_of_the_map_and_bad_maps_are_refused)
{
	struct plx_lcore_map none = {0};

	lcores_prepare(2);
	lcores.conf.main_lcore = 10;
	assert_int_equal(plx_lcores_init(&lcores.conf), 0);
	assert_int_equal(plx_lcore_main(), 10);
	assert_int_equal(plx_lcore_id(), 10);
	assert_int_equal(run_on(0, return_arg, (void *)7), 7);
	assert_int_equal(plx_lcores_fini(FOREVER), 0);
	lcores.conf.main_lcore = 7;
	assert_fails(plx_lcores_init(&lcores.conf), -EINVAL,
		     "main lcore 7 is not one of the lcores 0");
	lcores.conf.main_lcore = PLX_LCORE_NONE;
	lcores.conf.map = &none;
	assert_fails(plx_lcores_init(&lcores.conf), -EINVAL,
		     "no lcores; give a topology and at least 1 lcore");
	lcores.conf.map = &lcores.map;
	lcores.conf.topo = NULL;
	assert_fails(plx_lcores_init(&lcores.conf), -EINVAL, "no topology");
	lcores.conf.topo = lcores.topo;
	lcores.places[1].lcore_id = 0;
	assert_fails(plx_lcores_init(&lcores.conf), -EINVAL,
		     "lcore 0 follows lcore 0 in the map; ids must ascend, each once");
	lcores.places[1].lcore_id = PLX_LCORE_MAX;
	assert_fails(plx_lcores_init(&lcores.conf), -EINVAL, "lcore 256: ids are 0 to 255");
	assert_int_equal(plx_lcore_count(), 0);
	plx_topo_close(lcores.topo);
}

PLX_TEST(a_failure_unwinds_everything)
{
	struct plx_cpuset before, after;

	/* The CPU of the main lcore does not exist; then that of the last one. */
	for (uint32_t bad = 0; bad < 3; bad += 2) {
		int threads = count_threads();

		lcores_prepare(3);
		assert_int_equal(plx_topo_pinned(lcores.topo, &before), 0);
		lcores.places[bad].cpus = (struct plx_cpuset){0};
		plx_cpuset_add(&lcores.places[bad].cpus, PLX_CPU_MAX - 1);
		assert_true(plx_lcores_init(&lcores.conf) < 0);
		assert_error_has(bad ? "lcore 20 (CPU 4095): " : "lcore 0 (CPU 4095): ");
		assert_int_equal(plx_topo_pinned(lcores.topo, &after), 0);
		assert_true(plx_cpuset_equal(&before, &after));
		assert_int_equal(plx_lcore_count(), 0);
		assert_int_equal(plx_lcore_id(), PLX_LCORE_NONE);
		assert_int_equal(count_threads(), threads);
		plx_topo_close(lcores.topo);
	}
}

/* The warning of an lcore without its CPU ----------------------------------------------------- */

/* Awake, without a CPU. Three checks in a row must see it, 100 ms apart. */
static int sleep_in_callback(void *arg, uint64_t now_ns)
{
	unsigned *calls = arg;

	usleep(10000);
	if (log_count("callback sleeps") || ++*calls == 2000)
		plx_loop_quit();
	return 0;
}

/* It checks when it falls asleep. */
static void *run_without_cpu(void *arg)
{
	bool adopt = plx_lcore_id() == PLX_LCORE_NONE;
	unsigned calls = 0;
	struct plx_poller *poller;

	if (adopt)
		assert_works(plx_lcore_adopt());
	assert_works(plx_idle_set(plx_lcore_id(), &event_idle));
	assert_works(plx_poller_add("sleeper", sleep_in_callback, &calls, &poller));
	log_capture();
	assert_works(plx_loop_run());
	plx_log_set_sink(NULL, NULL);
	assert_true(idle_stats_of(plx_lcore_id()).crowded); /* so it would sleep early */
	plx_poller_remove(poller);
	if (adopt)
		assert_works(plx_lcore_leave());
	return NULL;
}

ONE_LCORE(a_warning_names_the_cpu_that_an_lcore_does_not_have)
{
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "lcore 0 (CPU %u) has its CPU for only ",
		 plx_lcore_cpu(0));
	run_without_cpu(NULL);
	assert_int_equal(log_count(wanted), 1);
	run_in_thread(run_without_cpu, NULL);
	assert_int_equal(log_count("lcore 1 (not pinned) has a CPU for only "), 1);
}

PLX_TEST_MAIN()
