/* SPDX-License-Identifier: BSD-3-Clause */
/* Time taken by the platform: one thread per CPU spins on the TSC and records gaps between two
 * readings, when something else had the CPU (the kernel, an interrupt, the hypervisor). No latency
 * measured on this host can be better. */
#include "app.h"

#include <jansson.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_MAX    CPU_SETSIZE
#define LONGEST     5
#define GAP_NS      (10 * PLX_NS_PER_US)
#define DURATION_NS (2 * PLX_NS_PER_S)

struct watch {
	pthread_t thread;
	unsigned cpu;
	uint64_t duration_ns;
	int rc;
	uint64_t count;            /* gaps above GAP_NS */
	uint64_t total_ns;         /* of all gaps */
	uint64_t longest[LONGEST]; /* descending, ns */
	uint64_t steal_before, steal_after;
};

static void keep(struct watch *watch, uint64_t gap_ns)
{
	watch->count++;
	watch->total_ns += gap_ns;
	for (unsigned i = 0; i < LONGEST; i++) {
		if (gap_ns <= watch->longest[i])
			continue;
		memmove(&watch->longest[i + 1], &watch->longest[i],
			(LONGEST - 1 - i) * sizeof(watch->longest[0]));
		watch->longest[i] = gap_ns;
		return;
	}
}

static void *spin(void *arg)
{
	struct watch *watch = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(watch->cpu, &set);
	watch->rc = -pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (watch->rc)
		return NULL;

	uint64_t last = plx_tsc();
	uint64_t first_ns = plx_tsc_to_ns(last);
	for (;;) {
		uint64_t now = plx_tsc();
		uint64_t gap_ns = plx_tsc_to_ns(now - last);

		if (plx_unlikely(gap_ns > GAP_NS))
			keep(watch, gap_ns);
		if (plx_tsc_to_ns(now) - first_ns > watch->duration_ns)
			return NULL;
		last = now;
	}
}

/* Steal time in clock ticks: the eighth figure of the "cpuN" line in /proc/stat (proc(5)). */
static uint64_t steal_ticks(unsigned cpu)
{
	char line[512], wanted[24];
	unsigned long long steal = 0;
	FILE *file = fopen("/proc/stat", "re");

	if (!file)
		return 0;
	snprintf(wanted, sizeof(wanted), "cpu%u ", cpu);
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, wanted, strlen(wanted)))
			continue;
		if (sscanf(line, "%*s %*u %*u %*u %*u %*u %*u %*u %llu", &steal) != 1)
			steal = 0;
		break;
	}
	fclose(file);
	return steal;
}

static double steal_ms(const struct watch *watch)
{
	return (double)(watch->steal_after - watch->steal_before) * 1000 /
	       (double)sysconf(_SC_CLK_TCK);
}

static int watch_all(struct watch *watches, unsigned count)
{
	unsigned started = 0;
	int rc = 0;

	for (unsigned i = 0; i < count; i++)
		watches[i].steal_before = steal_ticks(watches[i].cpu);
	for (; started < count && !rc; started += !rc)
		rc = -pthread_create(&watches[started].thread, NULL, spin, &watches[started]);
	for (unsigned i = 0; i < started; i++)
		pthread_join(watches[i].thread, NULL);
	if (rc)
		return plx_fail(-rc, "cannot start a thread: %s", strerror(-rc));
	for (unsigned i = 0; i < count; i++) {
		watches[i].steal_after = steal_ticks(watches[i].cpu);
		if (watches[i].rc)
			return plx_fail(-watches[i].rc, "CPU %u: cannot run there: %s",
					watches[i].cpu, strerror(-watches[i].rc));
	}
	return 0;
}

static void print_text(const struct watch *watches, unsigned count)
{
	printf("platform alone, %.1f s: gaps above %.0f us between two readings of the clock\n",
	       (double)watches[0].duration_ns / (double)PLX_NS_PER_S,
	       (double)GAP_NS / (double)PLX_NS_PER_US);
	printf("%5s %8s %9s %9s   %s\n", "CPU", "gaps", "lost ms", "steal ms", "longest, us");
	for (unsigned i = 0; i < count; i++) {
		const struct watch *watch = &watches[i];

		printf("%5u %8llu %9.2f %9.0f  ", watch->cpu, (unsigned long long)watch->count,
		       (double)watch->total_ns / (double)PLX_NS_PER_MS, steal_ms(watch));
		for (unsigned k = 0; k < LONGEST && watch->longest[k]; k++)
			printf(" %.0f", (double)watch->longest[k] / (double)PLX_NS_PER_US);
		putchar('\n');
	}
}

static json_t *cpu_json(const struct watch *watch)
{
	json_t *longest = json_array();

	for (unsigned k = 0; k < LONGEST && watch->longest[k]; k++)
		json_array_append_new(longest, json_integer((json_int_t)watch->longest[k]));
	return json_pack("{s:i, s:I, s:I, s:f, s:I, s:o}", "cpu", (int)watch->cpu, "gap_count",
			 (json_int_t)watch->count, "gap_total_ns", (json_int_t)watch->total_ns,
			 "steal_ms", steal_ms(watch), "longest_ns", (json_int_t)watch->longest[0],
			 "longest_gaps_ns", longest);
}

static int write_json(const struct watch *watches, unsigned count, const char *path)
{
	json_t *cpus = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(cpus, cpu_json(&watches[i]));
	json_t *object = json_pack("{s:I, s:I, s:o}", "duration_ns",
				   (json_int_t)watches[0].duration_ns, "gap_above_ns",
				   (json_int_t)GAP_NS, "cpus", cpus);
	int rc = json_dump_file(object, path, JSON_INDENT(2));

	json_decref(object);
	return rc ? plx_fail(EIO, "cannot write %s", path) : 0;
}

static struct watch watches[CPUS_MAX];
static unsigned watch_count;

static int watch_allowed(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return plx_fail(errno, "cannot tell the allowed CPUs: %s", strerror(errno));
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			watches[watch_count++].cpu = cpu;
	return 0;
}

static const char *cpus_text, *json;
static uint64_t duration_ns = DURATION_NS;
static bool help;

static const struct plx_option options[] = {
	PLX_TEXT("cpus", "N,...", &cpus_text, "CPUs to watch (default: all that are allowed)"),
	PLX_TIME("duration", "S", &duration_ns, PLX_NS_PER_MS, 3600 * PLX_NS_PER_S,
		 "for how long (default 2s)"),
	PLX_TEXT("json", "FILE", &json, "write the figures there too"),
	PLX_FLAG("help", &help, "this text"),
	PLX_OPTIONS_END,
};

static int check(void)
{
	char *copy = cpus_text ? strdup(cpus_text) : NULL, *rest = NULL;
	int rc = 0;

	for (char *word = copy ? strtok_r(copy, ",", &rest) : NULL; word && rc == 0;
	     word = strtok_r(NULL, ",", &rest)) {
		uint64_t cpu = 0;

		rc = plx_parse_uint("--cpus", word, 0, CPU_SETSIZE - 1, &cpu);
		if (rc == 0 && watch_count == CPUS_MAX)
			rc = plx_fail(EINVAL, "--cpus: more than %d", CPUS_MAX);
		if (rc == 0)
			watches[watch_count++].cpu = (unsigned)cpu;
	}
	free(copy);
	return rc || !cpus_text || watch_count ? rc : plx_fail(EINVAL, "--cpus: no CPU given");
}

static const struct plx_app app = {.name = "hiccup", .options = options, .check = check};

static int watch(void)
{
	int rc = watch_count ? 0 : watch_allowed();

	for (unsigned i = 0; i < watch_count; i++)
		watches[i].duration_ns = duration_ns;
	rc = rc ? rc : watch_all(watches, watch_count);
	if (rc)
		return rc;
	print_text(watches, watch_count);
	return json ? write_json(watches, watch_count, json) : 0;
}

int main(int argc, char **argv)
{
	if (plx_app_parse(argc - 1, argv + 1, &app) != 0) {
		plx_app_fail(&app);
		return 2;
	}
	if (help) {
		printf("Usage: hiccup [OPTION]...\nSpin on the clock and report who else took the "
		       "CPUs.\n");
		plx_app_print_options(&app, stdout);
		return 0;
	}
	plx_clock_init();
	return watch() != 0 ? plx_app_fail(&app) : 0;
}
