/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcores that sleep at every opportunity, with no cap, and one message at a time that goes round
 * among them: nothing else is there that could wake who missed it, so that one lost wake-up stops
 * everything. The files of lib/lcore that have part in it are built with a delay at each step, at
 * random. */
#include "lcore_priv.h"
#include "lcores.h"
#include "plx_fabric.h"
#include "plx_fabric_driver.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#define LCORES      3
#define SPIN_MAX_NS 3000
#define STILL_MAX_S 20 /* without progress, and the test has failed */

static struct lcores lcores;
static uint64_t rounds; /* of each test */

/* Relaxed throughout: numbers to look at. */
static _Atomic uint64_t progress;
static _Atomic bool stands_still;

/* Delays -----------------------------------------------------------------------------------------
 */

static __thread uint64_t dice;

static uint32_t roll(void)
{
	/* xorshift (Marsaglia, Journal of Statistical Software 8, 2003) */
	if (!dice)
		dice = (uint64_t)(uintptr_t)&dice | 1;
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 32);
}

/* LCORE_STEP of the files under test. */
void stress_step(void)
{
	uint32_t random = roll();

	if (random % 64 == 0)
		usleep(random >> 8 & 31);
	else if (random % 8 == 0)
		sched_yield();
	else if (random % 4 == 1)
		for (uint32_t i = random >> 8 & 1023; i > 0; i--)
			plx_pause();
}

/* A watch, that wakes nobody ---------------------------------------------------------------------
 */

static sem_t watch_ends;

static void *watch(void *arg)
{
	uint64_t seen = 0;
	unsigned still_s = 0;

	for (;;) {
		struct timespec limit;

		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec++;
		if (sem_timedwait(&watch_ends, &limit) == 0)
			return NULL;

		uint64_t now = atomic_load_explicit(&progress, memory_order_relaxed);

		still_s = now == seen ? still_s + 1 : 0;
		seen = now;
		if (still_s < STILL_MAX_S)
			continue;
		atomic_store(&stands_still, true);
		plx_stop(); /* so that it ends; it has failed */
		return NULL;
	}
}

static void went_on(void)
{
	atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
}

/* Policies that hardly ever poll, of all kinds. */
static void set_policies(void)
{
	PLX_LCORE_FOREACH (id) {
		const struct plx_idle_conf confs[] = {
			{.mode = PLX_IDLE_EVENT, .sleep_max_ns = UINT64_MAX},
			{.algorithm = PLX_IDLE_LEARNED,
			 .spin_max_ns = SPIN_MAX_NS,
			 .sleep_max_ns = UINT64_MAX},
			{.algorithm = PLX_IDLE_FIXED,
			 .spin_max_ns = SPIN_MAX_NS,
			 .sleep_max_ns = UINT64_MAX},
		};

		assert_int_equal(plx_idle_set(id, &confs[id / 10 % PLX_ARRAY_LEN(confs)]), 0);
	}
}

static uint64_t sleeps(void)
{
	uint64_t sum = 0;

	PLX_LCORE_FOREACH (id) {
		struct plx_idle_stats stats;

		assert_int_equal(plx_idle_stats(id, &stats), 0);
		sum += stats.sleeps;
		assert_int_equal(stats.wakes[PLX_WAKE_CAP], 0);
		assert_int_equal(stats.wakes[PLX_WAKE_NAP], 0);
		assert_int_equal(stats.rescues, 0);
	}
	return sum;
}

static int run_loop(void *arg)
{
	return plx_loop_run();
}

/* Run all lcores until somebody stops them. fn: in a thread that is no lcore; or NULL. */
static void run_all(void *(*fn)(void *))
{
	pthread_t watcher, thread;
	int result = -1;

	assert_int_equal(sem_init(&watch_ends, 0, 0), 0);
	assert_int_equal(pthread_create(&watcher, NULL, watch, NULL), 0);
	if (fn)
		assert_int_equal(pthread_create(&thread, NULL, fn, NULL), 0);
	assert_int_equal(plx_lcore_launch_all(run_loop, NULL, &result), 0);
	assert_int_equal(result, 0);
	PLX_LCORE_FOREACH_WORKER (id) {
		assert_int_equal(plx_lcore_join(id, 10 * PLX_NS_PER_S, &result), 0);
		assert_int_equal(result, 0);
	}
	if (fn)
		pthread_join(thread, NULL);
	sem_post(&watch_ends);
	pthread_join(watcher, NULL);
	sem_destroy(&watch_ends);
	assert_false(atomic_load(&stands_still));
	printf("%llu rounds, %llu sleeps\n", (unsigned long long)rounds,
	       (unsigned long long)sleeps());
	/* The way to sleep was taken again and again, if not each time. */
	assert_true(sleeps() > rounds / 8);
}

static int set_up(void **state)
{
	atomic_store(&progress, 0);
	lcores_up(&lcores, LCORES);
	set_policies();
	return 0;
}

static int tear_down(void **state)
{
	lcores_down(&lcores);
	return 0;
}

/* Between lcores ---------------------------------------------------------------------------------
 */

static struct plx_timer timers[LCORES];

/* The one message. It is here; send it on: at once, by way of a timer, or to the lcore itself. */
static void throw(void *arg);

static void throw_later(struct plx_timer *timer, void *arg)
{
	throw(NULL);
}

static void catch (void *arg)
{
	uint32_t random = roll();

	went_on();
	if (atomic_load_explicit(&progress, memory_order_relaxed) >= rounds)
		plx_stop();
	else if (random % 8 == 0)
		plx_timer_start(&timers[plx_lcore_id() / 10], random >> 8 & 0xffff);
	else
		throw(NULL);
}

static void throw(void *arg)
{
	assert_int_equal(plx_lcore_send(roll() % LCORES * 10, catch, NULL), 0);
}

static void nothing_between_lcores_is_slept_through(void **state)
{
	for (unsigned i = 0; i < LCORES; i++)
		plx_timer_init(&timers[i], throw_later, NULL);
	catch (NULL);
	run_all(NULL);
}

/* Of other threads -------------------------------------------------------------------------------
 */

static sem_t answered;
static struct plx_signal signals[LCORES];

static void answer(void *arg)
{
	went_on();
	sem_post(&answered);
}

static void on_signal(struct plx_signal *signal, uint64_t fires, void *arg)
{
	if (fires != 1)
		atomic_store(&stands_still, true);
	answer(NULL);
}

static void *ask(void *arg)
{
	for (uint64_t i = 0; i < rounds && !plx_stopping(); i++) {
		uint32_t to = roll() % LCORES;

		if (roll() % 2)
			plx_signal_fire(&signals[to]);
		else
			plx_lcore_send(to * 10, answer, NULL);
		while (sem_wait(&answered) != 0)
			continue;
	}
	plx_stop();
	return NULL;
}

static void nothing_of_other_threads_is_slept_through(void **state)
{
	assert_int_equal(sem_init(&answered, 0, 0), 0);
	for (unsigned i = 0; i < LCORES; i++)
		assert_int_equal(plx_signal_init(&signals[i], i * 10, on_signal, NULL), 0);
	run_all(ask);
	for (unsigned i = 0; i < LCORES; i++)
		plx_signal_fini(&signals[i]);
	sem_destroy(&answered);
}

/* Links ------------------------------------------------------------------------------------------
 */

static char address[PLX_ADDRESS_MAX];

static void send_on(struct plx_link *link)
{
	static const char bytes[64];

	if (plx_link_send(link, bytes, sizeof(bytes)) != 0)
		atomic_store(&stands_still, true);
}

static void link_open(struct plx_link *link, void *user)
{
	if (user)
		send_on(link);
}

static void link_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	went_on();
	if (atomic_load_explicit(&progress, memory_order_relaxed) < rounds)
		send_on(link);
	else
		plx_stop();
}

static const struct plx_link_events events = {.on_open = link_open, .on_message = link_message};

static void connect_there(void *arg)
{
	struct plx_link_attr attr = {.events = &events, .user = address};
	struct plx_link *link;

	if (plx_link_connect(address, &attr, &link) != 0)
		atomic_store(&stands_still, true);
}

static void nothing_on_a_link_is_slept_through(const char *provider)
{
	const struct plx_fabric_conf fabric = {.drivers = plx_drivers, .provider = provider};
	struct plx_listen_attr attr = {.link = {.events = &events}};
	struct plx_listener *listener;

	if (plx_fabric_init(&fabric))
		fail_msg("%s", plx_error());
	if (plx_link_listen("127.0.0.1:0", &attr, &listener))
		fail_msg("%s", plx_error());
	snprintf(address, sizeof(address), "%s", plx_listener_address(listener));
	assert_int_equal(plx_lcore_send(10, connect_there, NULL), 0);
	run_all(NULL);
	plx_fabric_fini();
}

static void nothing_on_tcp_is_slept_through(void **state)
{
	nothing_on_a_link_is_slept_through("fi:tcp");
}

static void nothing_on_net_is_slept_through(void **state)
{
	nothing_on_a_link_is_slept_through("net");
}

static void nothing_on_shm_is_slept_through(void **state)
{
	nothing_on_a_link_is_slept_through("shm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define ONE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		ONE(nothing_between_lcores_is_slept_through),
		ONE(nothing_of_other_threads_is_slept_through),
		ONE(nothing_on_tcp_is_slept_through),
		ONE(nothing_on_net_is_slept_through),
		ONE(nothing_on_shm_is_slept_through),
	};

	rounds = getenv("PLX_TEST_SOAK") ? 3000000 : 20000;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
