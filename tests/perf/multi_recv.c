/* SPDX-License-Identifier: BSD-3-Clause */
/* What a flood of small messages costs its receiver, by the way in which its buffers are posted,
 * over libfabric alone (doc/design/receives.md). `count` and one half of `time` have both ends in
 * one thread: a burst is sent, and lies in the socket when it is received; the other half has a
 * thread that sends, on a CPU of its own. */
#include "multi_recv.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRAINED    16384 /* messages of a round that are sent in bursts, and then received */
#define FLOODED    50000 /* messages of a round that a thread sends */
#define ROUNDS_MAX 1000
#define BURST_MAX  1024 /* so many messages lie in the sockets */
#define WAYS_MAX   8

/* Counting and timing ---------------------------------------------------------------------- */

static int count_way(struct receiver *r, uint64_t burst, uint64_t count)
{
	uint64_t ignored = 0;
	int rc = flood_drain(r, count, burst, &ignored);

	/* With those that warmed it up, as the profiler counts them too. */
	if (!rc)
		printf("%s messages %llu empty %llu\n", r->way->name,
		       (unsigned long long)r->received, (unsigned long long)r->empty);
	return rc;
}

/* Two CPUs that this process may use, the first one for the receiver. */
static int cpus[2];

static int find_cpus(void)
{
	cpu_set_t allowed;
	int found = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
		if (CPU_ISSET(cpu, &allowed))
			cpus[found++] = cpu;
	}
	return found == 2 ? 0 : plx_fail(EINVAL, "two CPUs are needed, one for each end");
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* The sender's side is this thread's alone until it ends. */
static void *sender(void *arg)
{
	pin(cpus[1]);
	return flood_send(arg, FLOODED) ? "the sender failed" : NULL;
}

static int flood(struct receiver *r, double *ns_out)
{
	uint64_t first = r->received, timed;
	pthread_t thread;
	void *wrong;
	int rc = pthread_create(&thread, NULL, sender, r);

	if (rc)
		return plx_fail(rc, "no thread");
	rc = flood_receive(r, first + 1);
	timed = first + FLOODED - r->received;

	uint64_t began = plx_tsc();

	if (!rc)
		rc = flood_receive(r, first + FLOODED);
	*ns_out = (double)plx_tsc_to_ns(plx_tsc() - began) / (double)timed;
	pthread_join(thread, &wrong);
	if (!rc && wrong)
		rc = plx_fail(EIO, "%s", (const char *)wrong);
	return rc;
}

/* Of one way: each round's, and what they were of the first way's in the same round. */
struct samples {
	double drained_ns[ROUNDS_MAX], drained_ratio[ROUNDS_MAX];
	double flooded_ns[ROUNDS_MAX], flooded_ratio[ROUNDS_MAX];
};

static struct samples samples[WAYS_MAX];

static int time_round(struct receiver *r, uint64_t burst, struct samples *of, unsigned round)
{
	uint64_t took_tsc = 0, before = r->received;
	int rc = flood_drain(r, DRAINED, burst, &took_tsc);

	of->drained_ns[round] = (double)plx_tsc_to_ns(took_tsc) / (double)(r->received - before);
	return rc ? rc : flood(r, &of->flooded_ns[round]);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(double), ascending);
	return values[count / 2];
}

static void print_times(const struct receiver *receivers, size_t count, unsigned rounds)
{
	for (size_t i = 0; i < count; i++) {
		for (unsigned n = 0; n < rounds; n++) {
			samples[i].drained_ratio[n] = samples[i].drained_ns[n] /
						      samples[0].drained_ns[n];
			samples[i].flooded_ratio[n] = samples[0].flooded_ns[n] /
						      samples[i].flooded_ns[n];
		}
	}
	printf("%-14s %12s %8s %14s %8s\n", "medians", "ns/received", "ratio", "messages/s",
	       "ratio");
	for (size_t i = 0; i < count; i++)
		printf("%-14s %12.1f %8.3f %14.0f %8.3f\n", receivers[i].way->name,
		       median(samples[i].drained_ns, rounds),
		       median(samples[i].drained_ratio, rounds),
		       1e9 / median(samples[i].flooded_ns, rounds),
		       median(samples[i].flooded_ratio, rounds));
}

/* Rounds in which each way has its turn, beginning with another one each time. */
static int time_ways(struct receiver *receivers, size_t count, uint64_t burst, unsigned rounds)
{
	int rc = 0;

	for (unsigned round = 0; round < rounds && !rc; round++) {
		for (size_t i = 0; i < count && !rc; i++) {
			size_t which = (i + round) % count;

			rc = time_round(&receivers[which], burst, &samples[which], round);
		}
	}
	if (!rc)
		print_times(receivers, count, rounds);
	return rc;
}

/* The command line ------------------------------------------------------------------------- */

struct command {
	const struct plx_fabric_driver *driver;
	const char *provider;
	const char *way; /* NULL: all */
	size_t size;
	uint64_t burst;
	uint64_t count; /* of messages, or rounds */
};

static const struct plx_fabric_driver *find_driver(const char *provider)
{
	for (const struct plx_fabric_driver *const *d = plx_drivers; *d; d++) {
		if (!(*d)->getinfo && (*d)->provider(provider, true, fi_version()))
			return *d;
	}
	return NULL;
}

static int measure(const struct command *command)
{
	static struct receiver receivers[WAYS_MAX];
	size_t count = 0;
	int rc = 0;

	for (size_t i = 0; i < receive_way_count && !rc; i++) {
		if (command->way && strcmp(command->way, receive_ways[i].name) != 0)
			continue;
		rc = receiver_open(&receivers[count], &receive_ways[i], command->driver,
				   command->provider, command->size);
		if (rc == -FI_ENODATA) {
			printf("%s: %s has no such thing\n", receive_ways[i].name,
			       command->provider);
			rc = 0;
			side_close(&receivers[count].sides[0]);
			continue;
		}
		count++;
	}
	if (!rc && count)
		rc = command->way
			   ? count_way(&receivers[0], command->burst, command->count)
			   : time_ways(receivers, count, command->burst, (unsigned)command->count);
	for (size_t i = 0; i < count; i++)
		receiver_close(&receivers[i]);
	return rc;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: multi-recv count PROVIDER WAY SIZE BURST MESSAGES\n"
		"       multi-recv time PROVIDER SIZE BURST ROUNDS\n"
		"       multi-recv trials PROVIDER\n"
		"PROVIDER: libfabric's name, as net or tcp. SIZE: %d to %d B. BURST: messages\n"
		"that are sent before they are received, at most %d; up to %d have a receive\n"
		"where each needs one of its own. At most %d rounds.\n"
		"WAY:",
		RECEIVER_SIZE_MIN, RECEIVER_SIZE_MAX, BURST_MAX, RECEIVER_POSTED_MAX, ROUNDS_MAX);
	for (size_t i = 0; i < receive_way_count; i++)
		fprintf(stderr, " %s", receive_ways[i].name);
	fprintf(stderr, "\n"
			"count: for callgrind, which is to look at flood_receive.\n"
			"time: what a message takes its receiver, and messages a second.\n"
			"trials: what the provider does with a receive context.\n");
	return 2;
}

static bool parse(int argc, char **argv, struct command *command)
{
	bool counts = argc == 7 && strcmp(argv[1], "count") == 0;

	if (!counts && (argc != 6 || strcmp(argv[1], "time") != 0))
		return false;
	command->way = counts ? argv[3] : NULL;
	command->size = strtoull(argv[3 + counts], NULL, 10);
	command->burst = strtoull(argv[4 + counts], NULL, 10);
	command->count = strtoull(argv[5 + counts], NULL, 10);
	return command->size >= RECEIVER_SIZE_MIN && command->size <= RECEIVER_SIZE_MAX &&
	       command->count && (counts || command->count <= ROUNDS_MAX);
}

int main(int argc, char **argv)
{
	struct command command = {.provider = argc > 2 ? argv[2] : ""};
	bool tries = argc == 3 && strcmp(argv[1], "trials") == 0;

	command.driver = find_driver(command.provider);
	if (!command.driver || (!tries && !parse(argc, argv, &command)))
		return usage();
	plx_clock_init();

	int rc = find_cpus();

	if (!rc) {
		pin(cpus[0]);
		rc = tries ? receive_trials(command.driver, command.provider) : measure(&command);
	}
	if (rc)
		fprintf(stderr, "multi-recv: %s\n", plx_error());
	return rc != 0;
}
