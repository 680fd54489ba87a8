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

#define CPUS_MAX CPU_SETSIZE
#define LONGEST  5
#define GAP_NS   (10 * PLX_NS_PER_US)

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

/* To the file, or standard output. */
static int write_figures(const struct watch *watches, unsigned count, const char *path)
{
	json_t *cpus = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(cpus, cpu_json(&watches[i]));
	json_t *object = json_pack("{s:I, s:I, s:o}", "duration_ns",
				   (json_int_t)watches[0].duration_ns, "gap_above_ns",
				   (json_int_t)GAP_NS, "cpus", cpus);
	int rc = plx_app_write_json(path, object);

	json_decref(object);
	return rc;
}

static struct watch watches[CPUS_MAX];
static unsigned watch_count;
static const char *cpus, *path = "/dev/stdout";
static uint64_t duration_ns = 2 * PLX_NS_PER_S;

static const struct plx_option options[] = {
	PLX_TEXT("cpus", "N,...", &cpus, "CPUs to watch", .required = true),
	PLX_TIME("duration", "S", &duration_ns, PLX_NS_PER_MS, 3600 * PLX_NS_PER_S,
		 "for how long (default 2s)"),
	PLX_TEXT("json", "FILE", &path, "where to write the figures (default standard output)"),
	PLX_OPTIONS_END,
};

static int check(void)
{
	char *copy = strdup(cpus), *rest = NULL;
	int rc = copy ? 0 : plx_fail(ENOMEM, "out of memory");

	for (char *word = copy ? strtok_r(copy, ",", &rest) : NULL; word && rc == 0;
	     word = strtok_r(NULL, ",", &rest)) {
		uint64_t cpu = 0;

		rc = plx_parse_uint("--cpus", word, 0, CPU_SETSIZE - 1, &cpu);
		if (rc == 0 && watch_count == CPUS_MAX)
			rc = plx_fail(EINVAL, "--cpus: more than %d", CPUS_MAX);
		if (rc == 0)
			watches[watch_count++] = (struct watch){.cpu = (unsigned)cpu,
								.duration_ns = duration_ns};
	}
	free(copy);
	return rc || watch_count ? rc : plx_fail(EINVAL, "--cpus: no CPU given");
}

static const struct plx_app app = {.name = "hiccup",
				   .summary = "spins on the clock, and reports the gaps",
				   .options = options,
				   .check = check};

int main(int argc, char **argv)
{
	int status = plx_app_start_alone(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	plx_clock_init();
	int rc = watch_all(watches, watch_count) ?: write_figures(watches, watch_count, path);
	return plx_app_end_output(&app, rc ? plx_app_fail(&app) : 0);
}
