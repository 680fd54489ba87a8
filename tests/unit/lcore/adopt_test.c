/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program that become lcores, and leave. */
#include "in_child.h"
#include "lcores.h"
#include "log_capture.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>

static intptr_t on_thread(void *(*fn)(void *arg), void *arg)
{
	return (intptr_t)run_in_thread(fn, arg);
}

/* The id, after which the thread leaves; or an error. */
static void *adopt_and_leave(void *arg)
{
	int rc = plx_lcore_adopt();
	intptr_t id = plx_lcore_id();

	if (rc == 0)
		rc = plx_lcore_leave();
	return (void *)(rc ? rc : id);
}

ONE_LCORE(a_thread_becomes_an_lcore_and_leaves)
{
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(on_thread(adopt_and_leave, NULL), 1);
	assert_int_equal(plx_lcore_count(), 2);
	assert_int_equal(plx_lcore_state(1), PLX_LCORE_OFF);
	assert_int_equal(plx_lcore_cpu(1), PLX_CPU_MAX);
	assert_false(plx_lcore_is_worker(1));
}

static cpu_set_t cpus_now(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	return set;
}

static void *check_cpus(void *arg)
{
	const cpu_set_t *of_process = arg;
	cpu_set_t inherited = cpus_now(), adopted, left;

	assert_works(plx_lcore_adopt());
	adopted = cpus_now();
	assert_works(plx_lcore_leave());
	left = cpus_now();
	assert_int_equal(CPU_COUNT(&inherited), 1); /* of the main lcore */
	assert_true(CPU_EQUAL(&adopted, of_process));
	assert_true(CPU_EQUAL(&left, &inherited));
	return NULL;
}

PLX_TEST(an_adopted_thread_does_not_share_the_cpu_of_the_lcore_that_started_it)
{
	cpu_set_t before = cpus_now();

	lcores_up(1);
	on_thread(check_cpus, &before);
	lcores_down();
}

static void *report_cpu(void *arg)
{
	intptr_t id;

	assert_works(plx_lcore_adopt());
	id = plx_lcore_id();
	assert_int_equal(plx_lcore_cpu((uint32_t)id), sched_getcpu());
	assert_fails(plx_lcore_adopt(), -EALREADY, "this thread is lcore 10 already");
	assert_works(plx_lcore_leave());
	return (void *)id;
}

TWO_LCORES(a_worker_that_was_never_launched_gives_its_cpu)
{
	assert_int_equal(on_thread(report_cpu, NULL), 10);
	assert_false(plx_lcore_is_worker(10));
	assert_fails(plx_lcore_launch(10, turns_until_idle, NULL), -EINVAL,
		     "lcore 10 is a thread of the program");
	assert_int_equal(on_thread(report_cpu, NULL), 10);
}

TWO_LCORES(a_worker_that_was_launched_keeps_its_cpu)
{
	assert_int_equal(run_on(10, turns_until_idle, NULL), 0);
	assert_int_equal(on_thread(adopt_and_leave, NULL), 1);
	assert_int_equal(run_on(10, turns_until_idle, NULL), 0);
}

static int leave_on_worker(void *arg)
{
	return plx_lcore_leave();
}

static void leave_in_callback(void *arg)
{
	*(int *)arg = plx_lcore_leave();
	plx_loop_quit();
}

TWO_LCORES(workers_and_callbacks_do_not_leave)
{
	int rc = 0;

	assert_int_equal(run_on(10, leave_on_worker, NULL), -EPERM);
	assert_int_equal(plx_lcore_send(0, leave_in_callback, &rc), 0);
	assert_int_equal(plx_loop_run(), 0);
	assert_int_equal(rc, -EBUSY);
}

static void *leave_at_once(void *arg)
{
	assert_fails(plx_lcore_leave(), -ENOENT,
		     "plx_lcore_leave: this thread is not an lcore, so there is nothing to leave");
	assert_fails(plx_loop_run(), -ENOENT,
		     "plx_loop_run: this thread is not an lcore; call plx_lcore_adopt on it first");
	return NULL;
}

PLX_TEST(errors_name_the_next_step)
{
	assert_fails(plx_lcore_adopt(), -ENOENT, "plx_lcore_adopt: Pollux is not up");
	assert_fails(plx_lcore_leave(), -ENOENT, NOT_UP("plx_lcore_leave"));
	lcores_up(1);
	run_in_thread(leave_at_once, NULL);
	lcores_down();
}

/* Messages ----------------------------------------------------------------------------------- */

PLX_COUNTS(count, (*(unsigned *)arg), void *arg)

/* A thread that stays an lcore until the test lets it go. */
struct guest {
	pthread_t thread;
	sem_t adopted, go;
	uint32_t id;
};

static void *stay(void *arg)
{
	struct guest *guest = arg;

	assert_works(plx_lcore_adopt());
	guest->id = plx_lcore_id();
	sem_post(&guest->adopted);
	sem_wait(&guest->go);
	assert_works(plx_lcore_leave());
	return NULL;
}

static void start_guest(struct guest *guest)
{
	sem_init(&guest->adopted, 0, 0);
	sem_init(&guest->go, 0, 0);
	threads_start(&guest->thread, 1, stay, guest, 0);
	sem_wait(&guest->adopted);
}

static void end_guest(struct guest *guest)
{
	sem_post(&guest->go);
	threads_join(&guest->thread, 1);
}

ONE_LCORE(what_was_sent_before_is_received_before_the_thread_leaves)
{
	unsigned received = 0;
	struct guest guest;

	start_guest(&guest);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(plx_lcore_send(guest.id, count, &received), 0);
	end_guest(&guest);
	assert_int_equal(received, 100);
}

/* What it leaves -------------------------------------------------------------------------- */

static int poll_after_end(void *arg, uint64_t now_ns)
{
	fail();
	return 0;
}

static void expire_after_end(struct plx_timer *timer, void *arg)
{
	fail();
}

static void run_after_end(struct plx_task *task, void *arg)
{
	fail();
}

static void read_after_end(int fd, uint32_t events, void *arg)
{
	fail();
}

static void *leave_things(void *arg)
{
	struct plx_timer timer;
	struct plx_task task;
	int *pipe = arg;

	assert_works(plx_lcore_adopt());
	plx_timer_init(&timer, expire_after_end, NULL);
	plx_timer_start(&timer, 1);
	plx_task_init(&task, run_after_end, NULL);
	plx_task_schedule(&task);
	assert_works(plx_poller_add("left", poll_after_end, NULL, NULL));
	assert_works(plx_fd_add(pipe[0], EPOLLIN, read_after_end, NULL, &(struct plx_fd *){0}));
	assert_works(plx_lcore_leave());
	return NULL;
}

static void *turn_often(void *arg)
{
	assert_works(plx_lcore_adopt());
	assert_int_equal(plx_lcore_id(), 1);
	for (unsigned i = 0; i < 200; i++)
		plx_loop_turn();
	assert_works(plx_lcore_leave());
	return NULL;
}

ONE_LCORE(timers_tasks_pollers_and_descriptors_end_with_the_thread)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	on_thread(leave_things, ends);
	on_thread(turn_often, NULL);
	close(ends[0]);
	close(ends[1]);
}

static void *leave_buffer(void *arg)
{
	const struct plx_pool_attr attr = {
		.name = "adopted", .object_count = 4, .object_bytes = 64, .owner = 1};
	struct plx_pool **pool_out = arg;

	assert_works(plx_lcore_adopt());
	assert_int_equal(plx_lcore_id(), 1);
	assert_works(plx_pool_create(&attr, pool_out));
	pool_out[1] = plx_pool_get(*pool_out);
	assert_works(plx_lcore_leave());
	return NULL;
}

ONE_LCORE(an_id_waits_for_the_buffers_of_its_pools)
{
	struct plx_pool *pool[2];

	on_thread(leave_buffer, pool);
	assert_int_equal(on_thread(adopt_and_leave, NULL), 2);
	plx_pool_put(pool[0], pool[1]);
	assert_int_equal(on_thread(adopt_and_leave, NULL), 1);
	assert_int_equal(plx_pool_destroy(pool[0]), 0);
}

/* Many, and ends ----------------------------------------------------------------------------- */

#define THREADS 16

/* Any of the lcores may deliver it. */
static void count_by_all(void *arg)
{
	atomic_fetch_add((_Atomic unsigned *)arg, 1);
}

static void *come_and_leave(void *arg)
{
	for (unsigned i = 0; i < 50; i++) {
		assert_works(plx_lcore_adopt());
		PLX_LCORE_FOREACH (id)
			plx_lcore_send(id, count_by_all, arg);
		plx_loop_turn();
		assert_works(plx_lcore_leave());
	}
	return NULL;
}

/* Messages may come to an lcore that has left: its next thread gets them. */
TWO_LCORES(sixteen_threads_come_and_leave_at_once)
{
	_Atomic unsigned received[THREADS] = {0};

	run_in_threads(THREADS, come_and_leave, received, sizeof(*received));
	assert_true(plx_lcore_count() <= THREADS + 2);
}

static void *wait_for_stop(void *arg)
{
	assert_works(plx_lcore_adopt());
	sem_post(arg);
	assert_int_equal(plx_loop_run(), 0);
	assert_works(plx_lcore_leave());
	return NULL;
}

ONE_LCORE(fini_stops_adopted_threads_and_waits_for_them)
{
	pthread_t thread;
	sem_t adopted;

	sem_init(&adopted, 0, 0);
	threads_start(&thread, 1, wait_for_stop, &adopted, 0);
	sem_wait(&adopted);
	assert_works(plx_lcores_fini(10 * PLX_NS_PER_S));
	threads_join(&thread, 1);
	assert_works(plx_lcores_init(&lcores.conf)); /* for the fixture */
}

ONE_LCORE(fini_names_an_adopted_thread_that_does_not_leave)
{
	struct guest guest;

	start_guest(&guest);
	assert_fails(plx_lcores_fini(PLX_NS_PER_MS), -ETIMEDOUT,
		     "lcore 1 (not pinned) is still a thread of the program");
	end_guest(&guest);
}

static void *end_without_leaving(void *arg)
{
	check(plx_lcore_adopt() == 0);
	return NULL;
}

/* In a child: those lcores cannot be ended. */
CHILD_TEST(an_error_names_a_thread_that_ends_without_leaving)
{
	lcores_up(1);
	log_capture();
	run_in_thread(end_without_leaving, NULL);
	check(log_count("lcore 1 (not pinned): its thread has ended without plx_lcore_leave") == 1);
	check(plx_lcores_fini(PLX_NS_PER_MS) == -ETIMEDOUT);
	check(strstr(plx_error(), "it must call plx_lcore_leave first"));
}

static void *end_all(void *arg)
{
	assert_works(plx_lcores_fini(10 * PLX_NS_PER_S));
	return NULL;
}

TWO_LCORES(the_main_lcore_may_leave_and_another_thread_ends_the_lcores)
{
	assert_works(plx_lcore_leave());
	assert_int_equal(plx_lcore_main(), PLX_LCORE_NONE);
	assert_int_equal(plx_lcore_id(), PLX_LCORE_NONE);
	on_thread(end_all, NULL);
	assert_int_equal(plx_lcore_count(), 0);
	assert_works(plx_lcores_init(&lcores.conf)); /* for the fixture */
}

PLX_TEST_MAIN()
