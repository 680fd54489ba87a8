/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibrate the TSC against CLOCK_MONOTONIC_RAW. Each reading is a bracket (counter, clock,
 * counter). The shortest of several is kept; its error is at most half its length, about 15 ns on a
 * quiet machine. Two readings 10 ms apart give the frequency to a few parts per million.
 *
 * The counter may step when a host resumes or a virtual machine migrates. Lcores therefore compare
 * the two clocks ten times a second (plx_clock_look) and add any difference to
 * plx_clock_scale.base_ns. The clock is CLOCK_MONOTONIC_RAW because the kernel does not slew it. */
#include "base_internal.h"

#include <pthread.h>

#if defined(__x86_64__)
#include <cpuid.h>
#define SOURCE "tsc"
#elif defined(__aarch64__)
#define SOURCE "cntvct"
#else
#define SOURCE "clock_monotonic_raw"
#endif

#define CALIBRATION_NS (10 * PLX_NS_PER_MS)
#define DEFAULT_MULT   ((uint64_t)1 << 32)

#define LOOK_EVERY_NS  (100 * PLX_NS_PER_MS)
#define LOOK_WIDTH_NS  PLX_NS_PER_MS /* longest bracket that is used */
#define TRIES          64
#define STEP_NS        (10 * PLX_NS_PER_MS)
#define RATE_PART      4096 /* 244 ppm; less after a long pause is not a step */

PLX_LOG_COMPONENT(log_clock, "clock");

struct reading {
	uint64_t count, raw_ns;
	uint64_t width; /* of the bracket, in TSC ticks */
};

struct look {
	uint64_t now_ns, raw_ns;
	uint64_t suspended_ns; /* since boot */
};

struct plx_clock_scale plx_clock_scale = {.mult = DEFAULT_MULT};

static struct plx_clock_info info = {.source = SOURCE, .frequency = "measured"};
static struct reading origin;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static pthread_mutex_t look_lock = PTHREAD_MUTEX_INITIALIZER;
static struct look last_look; /* under the lock; zero until a look succeeded */
static struct plx_log_limit step_limit = {.burst = 1};
static _Atomic uint64_t step_count, suspended_ns;

uint64_t plx_kernel_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * PLX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static struct reading read_both(void)
{
	struct reading best = {.width = UINT64_MAX};

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = plx_tsc();
		uint64_t raw_ns = plx_kernel_ns(CLOCK_MONOTONIC_RAW);
		uint64_t width = plx_tsc() - before;

		if (width < best.width)
			best = (struct reading){before + width / 2, raw_ns, width};
	}
	return best;
}

static bool counter_is_invariant(void)
{
#if defined(__x86_64__)
	unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

	/* CPUID 80000007h EDX bit 8: invariant TSC (Intel SDM vol. 3, 18.17.1). */
	return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
#else
	return true;
#endif
}

/* Return false if the thread was preempted in the bracket, or the counter stepped. */
static bool look_at_clocks(struct look *look)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t before_ns = plx_now_ns();
		uint64_t raw_ns = plx_kernel_ns(CLOCK_MONOTONIC_RAW);
		uint64_t monotonic_ns = plx_kernel_ns(CLOCK_MONOTONIC);
		uint64_t boot_ns = plx_kernel_ns(CLOCK_BOOTTIME);
		uint64_t width_ns = plx_now_ns() - before_ns;

		*look = (struct look){before_ns, raw_ns, plx_time_since(monotonic_ns, boot_ns)};
		if (width_ns < LOOK_WIDTH_NS)
			return true;
	}
	return false;
}

static void calibrate(void)
{
	info.invariant = counter_is_invariant();
	origin = read_both();

	struct reading end;
	do {
		end = read_both();
	} while (end.raw_ns - origin.raw_ns < CALIBRATION_NS);

	double counts = (double)(end.count - origin.count);
	double elapsed_ns = (double)(end.raw_ns - origin.raw_ns);
	info.hz = counts / elapsed_ns * 1e9;
	info.residual_ppm = (double)(origin.width + end.width) / 2 / counts * 1e6;
	plx_clock_scale.mult = (uint64_t)(elapsed_ns / counts * 4294967296.0 + 0.5);
	if (!look_at_clocks(&last_look))
		last_look = (struct look){0}; /* would be taken for a step */
}

void plx_clock_init(void)
{
	pthread_once(&once, calibrate);
}

const struct plx_clock_info *plx_clock_info_read(void)
{
	plx_clock_init();
	return &info;
}

/* Under the lock. Return: the step of the counter in ns, for the log; 0: log nothing. */
static int64_t correct(struct look *look)
{
	uint64_t passed_ns = plx_time_since(last_look.raw_ns, look->raw_ns);
	int64_t stepped_ns = (int64_t)(look->now_ns - last_look.now_ns -
				       (look->raw_ns - last_look.raw_ns));
	uint64_t apart_ns = stepped_ns < 0 ? -(uint64_t)stepped_ns : (uint64_t)stepped_ns;

	if (apart_ns <= STEP_NS + passed_ns / RATE_PART)
		return 0;
	/* Relaxed: see plx_tsc_time_ns; only a counter. */
	atomic_fetch_sub_explicit(&plx_clock_scale.base_ns, (uint64_t)stepped_ns,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&step_count, 1, memory_order_relaxed);
	look->now_ns -= (uint64_t)stepped_ns;
	return plx_log_allowed(&step_limit, look->raw_ns) ? stepped_ns : 0;
}

/* Under the lock. Return: for how long the host was suspended. */
static uint64_t note_suspension(const struct look *look)
{
	uint64_t slept_ns = plx_time_since(last_look.suspended_ns, look->suspended_ns);

	if (slept_ns <= STEP_NS)
		return 0;
	/* Relaxed: no other data depends on it. */
	atomic_fetch_add_explicit(&suspended_ns, slept_ns, memory_order_relaxed);
	return slept_ns;
}

void plx_clock_look(bool at_once)
{
	uint64_t slept_ns = 0, since_ns;
	int64_t stepped_ns = 0;
	struct look look;

	if (pthread_mutex_trylock(&look_lock) != 0)
		return; /* another thread is looking and corrects for all */
	since_ns = plx_time_since(last_look.raw_ns, plx_kernel_ns(CLOCK_MONOTONIC_RAW));
	if ((at_once || since_ns >= LOOK_EVERY_NS) && look_at_clocks(&look)) {
		if (last_look.raw_ns) {
			stepped_ns = correct(&look);
			slept_ns = note_suspension(&look);
		}
		last_look = look;
	}
	pthread_mutex_unlock(&look_lock);
	if (stepped_ns)
		plx_log(&log_clock, PLX_LOG_WARNING,
			"the counter of the clock (%s) stepped %s by %.3f s: the host resumed, or "
			"this virtual machine moved; the clock was corrected",
			info.source, stepped_ns < 0 ? "back" : "ahead",
			(double)(stepped_ns < 0 ? -stepped_ns : stepped_ns) / 1e9);
	if (slept_ns)
		plx_log(&log_clock, PLX_LOG_INFO, "the host was suspended for %.3f s",
			(double)slept_ns / 1e9);
}

/* Relaxed: no other data depends on them. */
uint64_t plx_clock_steps(void)
{
	return atomic_load_explicit(&step_count, memory_order_relaxed);
}

uint64_t plx_clock_suspended_ns(void)
{
	return atomic_load_explicit(&suspended_ns, memory_order_relaxed);
}

double plx_clock_drift_ppm(void)
{
	plx_clock_init();

	struct reading now = read_both();
	double clock_ns = (double)plx_tsc_to_ns(now.count - origin.count);
	double true_ns = (double)(now.raw_ns - origin.raw_ns);
	return (clock_ns - true_ns) / true_ns * 1e6;
}
