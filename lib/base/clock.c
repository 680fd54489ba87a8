/* SPDX-License-Identifier: BSD-3-Clause */
/* The TSC against CLOCK_MONOTONIC_RAW. Each reading is a bracket (counter, clock, counter); of
 * several the shortest is kept, which bounds its error by half its length: some 15 ns on a quiet
 * machine. Two of them 10 ms apart give the frequency to a few parts per million. */
#include "plx_base.h"

#include <pthread.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#define CALIBRATION_NS (10 * PLX_NS_PER_MS)
#define BRACKET_TRIES  64
#define DEFAULT_MULT   ((uint64_t)1 << 32)

struct reading {
	uint64_t count;
	uint64_t raw_ns;
	uint64_t width; /* of the bracket, in counts */
};

uint64_t plx_clock_mult = DEFAULT_MULT;

static struct plx_clock_info info;
static struct reading origin;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t raw_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * PLX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static struct reading read_both(void)
{
	struct reading best = {.width = UINT64_MAX};

	for (int i = 0; i < BRACKET_TRIES; i++) {
		uint64_t before = plx_tsc();
		uint64_t raw = raw_ns();
		uint64_t width = plx_tsc() - before;

		if (width < best.width)
			best = (struct reading){before + width / 2, raw, width};
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

static void calibrate(void)
{
#if defined(__x86_64__)
	info.source = "tsc";
#elif defined(__aarch64__)
	info.source = "cntvct";
#else
	info.source = "clock_monotonic_raw";
#endif
	info.frequency = "measured";
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
	plx_clock_mult = (uint64_t)(elapsed_ns / counts * 4294967296.0 + 0.5);
}

void plx_clock_init(void)
{
	pthread_once(&once, calibrate);
}

const struct plx_clock_info *plx_clock_info(void)
{
	plx_clock_init();
	return &info;
}

double plx_clock_drift_ppm(void)
{
	plx_clock_init();

	struct reading now = read_both();
	double clock_ns = (double)plx_tsc_to_ns(now.count - origin.count);
	double true_ns = (double)(now.raw_ns - origin.raw_ns);
	return (clock_ns - true_ns) / true_ns * 1e6;
}
