/* SPDX-License-Identifier: BSD-3-Clause */
/* What a sleep and a wake-up cost: measured at start, and updated at run time. */
#include "lcore_priv.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* At start ----------------------------------------------------------------------------------- */

/* A thread on another CPU writes to an eventfd on which the calling thread sleeps as an lcore does:
 * through an epoll set. A lower bound for network cards, whose interrupt adds to it. */

#define SAMPLES  64
#define LEAST    16                   /* samples for a valid result */
#define QUIET_NS (50 * PLX_NS_PER_US) /* until the sleeper is certainly asleep */
#define LIMIT_NS (20 * PLX_NS_PER_MS) /* for all samples */
#define GIVE_UP  (10 * PLX_NS_PER_MS) /* for one sample */

/* If it cannot be measured: values of a virtual machine, which favour polling. */
#define WAKE_NS_GUESS  20000
#define SLEEP_NS_GUESS 10000

/* Relaxed throughout: one lcore may measure while another one sets a policy. */
static _Atomic uint64_t cost_wake_ns = WAKE_NS_GUESS, cost_sleep_ns = SLEEP_NS_GUESS;

struct helper {
	struct plx_cpuset cpus;
	struct fds fds;
	_Atomic uint32_t asked;    /* samples */
	_Atomic uint64_t rung_tsc; /* of the last sample */
};

static void *help(void *arg)
{
	struct helper *helper = arg;
	uint32_t done = 0;

	plx_topo_pin(lcore_topo, &helper->cpus); /* may fail: then the result is less accurate */
	for (;;) {
		/* K2 <- K1 */
		uint32_t asked = atomic_load_explicit(&helper->asked, memory_order_acquire);

		if (asked == UINT32_MAX)
			return NULL;
		if (asked == done) {
			plx_pause();
			continue;
		}
		done = asked;
		for (uint64_t start_ns = plx_now_ns(); plx_now_ns() - start_ns < QUIET_NS;)
			plx_pause();
		/* Relaxed: the eventfd orders it. */
		atomic_store_explicit(&helper->rung_tsc, plx_tsc(), memory_order_relaxed);
		if (eventfd_write(helper->fds.bell.fd, 1) < 0)
			return NULL; /* the sleeper times out */
	}
}

static int by_size(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Sleep once. Return: duration of the wake-up in ns; 0: timed out. */
static uint64_t sleep_once(struct helper *helper, uint32_t number)
{
	/* K1 -> K2 */
	atomic_store_explicit(&helper->asked, number, memory_order_release);
	if (fds_wait(&helper->fds, GIVE_UP) <= 0)
		return 0;
	/* Relaxed: see help(). */
	return plx_tsc_to_ns(plx_tsc() -
			     atomic_load_explicit(&helper->rung_tsc, memory_order_relaxed));
}

static void take_samples(struct helper *helper)
{
	uint64_t samples[SAMPLES], start_ns = plx_now_ns(), cpu_ns;
	uint32_t count = 0;

	sleep_once(helper, 1); /* lets the helper start */
	cpu_ns = plx_kernel_ns(CLOCK_THREAD_CPUTIME_ID);
	while (count < SAMPLES && plx_now_ns() - start_ns < LIMIT_NS) {
		samples[count] = sleep_once(helper, count + 2);
		if (!samples[count])
			break;
		count++;
	}
	if (count < LEAST)
		return;
	cpu_ns = plx_kernel_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	atomic_store_explicit(&cost_sleep_ns, cpu_ns / count + 1, memory_order_relaxed);
	qsort(samples, count, sizeof(samples[0]), by_size);
	atomic_store_explicit(&cost_wake_ns, samples[count / 2] + 1, memory_order_relaxed);
}

/* Without another CPU the guess stays: on a shared one, the spinning thread would block the other.
 */
static void measure(void)
{
	struct helper helper = {.cpus = lcore_old_cpus};
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_t thread;

	if (fd < 0)
		return;
	plx_cpuset_remove_all(&helper.cpus, &lcore_get(plx_lcore_id())->cpus);
	if (fds_init(&helper.fds, fd) == 0 && plx_cpuset_count(&helper.cpus) > 0 &&
	    pthread_create(&thread, NULL, help, &helper) == 0) {
		take_samples(&helper);
		atomic_store_explicit(&helper.asked, UINT32_MAX, memory_order_release); /* K1 */
		pthread_join(thread, NULL);
	}
	fds_fini(&helper.fds);
	close(fd);
}

void idle_measure_costs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, measure);
}

void idle_set_costs(struct idle *idle)
{
	idle->wake_ns = idle->conf.wake_ns
			      ?: atomic_load_explicit(&cost_wake_ns, memory_order_relaxed);
	idle->sleep_ns = idle->conf.sleep_ns
			       ?: atomic_load_explicit(&cost_sleep_ns, memory_order_relaxed);
	idle->wake_first_ns = idle->early_ns = idle->wake_ns;
}

/* At run time -------------------------------------------------------------------------------- */

/* W from wake-ups by messages, and how long to wake before a time from those by timers. They
 * differ: before messages most sleeps are short, while a sleep before a timer is often long and the
 * CPU is cold after it. */

#define FOLLOW_EVERY 16 /* wake-ups by messages between updates of the policy */

#define EARLY_MIN_NS PLX_NS_PER_US
#define EARLY_MAX_NS PLX_NS_PER_MS

/* Relative step per wake-up: 30 of them change it from 6 to 140 us. */
#define EARLY_STEP (1.0 / 8)

void idle_follow_wake(struct idle *idle, uint64_t took_ns)
{
	uint64_t step = idle->wake_first_ns / 64 + 1;

	if (idle->conf.wake_ns)
		return;
	if (took_ns > idle->wake_ns && idle->wake_ns < idle->wake_first_ns * 8)
		idle->wake_ns += step;
	else if (took_ns < idle->wake_ns && idle->wake_ns > idle->wake_first_ns / 4 + step)
		idle->wake_ns -= step;
	if (++idle->followed % FOLLOW_EVERY == 0)
		idle_costs_changed(idle);
}

uint64_t idle_early_ns(const struct idle *idle, uint64_t wait_ns)
{
	double share = idle->conf.budget * (double)wait_ns;

	if (idle->conf.budget < 1 && share < (double)idle->early_ns)
		return (uint64_t)share;
	return idle->early_ns;
}

static void set_early(struct idle *idle, double early_ns)
{
	if (idle->conf.wake_ns)
		return;
	if (early_ns < EARLY_MIN_NS)
		early_ns = EARLY_MIN_NS;
	if (early_ns > EARLY_MAX_NS)
		early_ns = EARLY_MAX_NS;
	idle->early_ns = (uint64_t)early_ns;
	counter_set(&idle->counts.early_ns, idle->early_ns);
}

/* 1 ns late costs 1; 1 ns early, which is polled, costs alpha. The best time to wake is
 * early enough for all wake-ups except a share of alpha / (1 + alpha) (the newsvendor problem; K.
 * Arrow et al., "Optimal Inventory Policy", Econometrica 19, 1951). Steps up and down in that ratio
 * keep the estimate there. */
void idle_follow_timer(struct idle *idle, uint64_t took_ns)
{
	double alpha = idle->policy.costs.alpha, early_ns = (double)idle->early_ns;

	if (took_ns > idle->early_ns)
		set_early(idle, early_ns + early_ns * EARLY_STEP / (1 + alpha));
	else
		idle_polled_to_timer(idle);
}

void idle_polled_to_timer(struct idle *idle)
{
	double alpha = idle->policy.costs.alpha, early_ns = (double)idle->early_ns;

	set_early(idle, early_ns - early_ns * EARLY_STEP * alpha / (1 + alpha));
}
