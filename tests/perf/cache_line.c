/* SPDX-License-Identifier: BSD-3-Clause */
/* The round trip of a cache line between two CPUs: `cache-line CPU CPU` prints it in nanoseconds.
 * It takes a few milliseconds, so bench.sh can run it before and after every measurement. A virtual
 * machine's CPUs move between near and distant cores, and every figure changes with them. */
#include "app.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS      32 /* of lines: the cost of a line depends on its address */
#define TRIPS      256
#define TRIPS_WARM 32
#define LINE_BYTES 4096 /* each in a separate page */

struct line {
	_Alignas(LINE_BYTES) _Atomic uint32_t number;
};

static struct line there[PAIRS], back[PAIRS];

static inline void wait_for(struct line *line, uint32_t number)
{
	while (atomic_load_explicit(&line->number, memory_order_acquire) != number)
		plx_pause();
}

static void *answer(void *arg)
{
	for (unsigned pair = 0; pair < PAIRS; pair++) {
		for (uint32_t trip = 1; trip <= TRIPS; trip++) {
			wait_for(&there[pair], trip);
			atomic_store_explicit(&back[pair].number, trip, memory_order_release);
		}
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Returns the median of one pair, in cycles. */
static uint64_t ask(unsigned pair)
{
	static uint64_t cycles[TRIPS];

	for (uint32_t trip = 1; trip <= TRIPS; trip++) {
		uint64_t begin = plx_tsc();

		atomic_store_explicit(&there[pair].number, trip, memory_order_release);
		wait_for(&back[pair], trip);
		cycles[trip - 1] = plx_tsc() - begin;
	}
	qsort(cycles + TRIPS_WARM, TRIPS - TRIPS_WARM, sizeof(*cycles), compare);
	return cycles[TRIPS_WARM + (TRIPS - TRIPS_WARM) / 2];
}

/* The median of all pairs. */
static uint64_t measure(void)
{
	uint64_t medians[PAIRS];

	for (unsigned pair = 0; pair < PAIRS; pair++)
		medians[pair] = ask(pair);
	qsort(medians, PAIRS, sizeof(*medians), compare);
	return medians[PAIRS / 2];
}

/* This thread runs on the second CPU, the new one on the first. Return: 0; an errno value. */
static int start(const uint64_t cpus[2], pthread_t *thread)
{
	pthread_attr_t attr;
	cpu_set_t sets[2];
	int rc;

	for (int i = 0; i < 2; i++) {
		CPU_ZERO(&sets[i]);
		CPU_SET(cpus[i], &sets[i]);
	}
	pthread_attr_init(&attr);
	rc = pthread_setaffinity_np(pthread_self(), sizeof(sets[1]), &sets[1]);
	rc = rc ? rc : pthread_attr_setaffinity_np(&attr, sizeof(sets[0]), &sets[0]);
	rc = rc ? rc : pthread_create(thread, &attr, answer, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

int main(int argc, char **argv)
{
	uint64_t cpus[2], cycles;
	pthread_t thread;
	int rc = argc == 3 ? 0 : plx_fail(EINVAL, "give two CPUs: cache-line CPU CPU");

	for (int i = 0; i < 2 && rc == 0; i++)
		rc = plx_parse_uint("CPU", argv[i + 1], 0, CPU_SETSIZE - 1, &cpus[i]);
	if (rc == 0 && cpus[0] == cpus[1])
		rc = plx_fail(EINVAL, "CPU %s twice: give two CPUs", argv[1]);
	if (rc) {
		fprintf(stderr, "cache-line: %s\n", plx_error());
		return 2;
	}
	plx_clock_init();
	rc = start(cpus, &thread);
	if (rc) {
		fprintf(stderr, "cache-line: cannot run on CPUs %s and %s: %s\n", argv[1], argv[2],
			strerror(rc));
		return 1;
	}
	cycles = measure();
	pthread_join(thread, NULL);
	printf("%llu\n", (unsigned long long)plx_tsc_to_ns(cycles));
	return 0;
}
