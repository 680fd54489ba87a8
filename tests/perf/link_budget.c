/* SPDX-License-Identifier: BSD-3-Clause */
/* A link's cost on top of libfabric, with everything else removed:
 *
 *     link_budget count [mr:]PROVIDER SIZE MESSAGES [HOST]
 *     link_budget time  [mr:]PROVIDER SIZE ROUNDS [HOST]
 *
 * One thread has both ends of a connection, so a message is there when the other end polls, and
 * nothing waits. `count` runs messages whole and then in steps (send, receive, empty poll), in
 * functions whose instructions a profiler can count: link_budget_test.sh. `time` alternates blocks
 * of the two ways, and prints the CPU time per message. */
#include "link_budget.h"

#include "plx_idle.h"
#include "plx_lcore.h"
#include "plx_mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM_UP        2000 /* messages per way before measuring */
#define WARM_AGAIN     32   /* after the other way's turn: a set is cold after a millisecond */
#define APART_LOOKS    4    /* empty polls per message run in steps */
#define BLOCK          500  /* messages timed together */
#define BLOCK_COLD     8
#define SWEPT_BYTES    (4u << 20)
#define BLOCK_LOOKS    1000
#define LOOKS_AT_ONCE  50 /* well below the millisecond after which a set is cold */
#define ROUNDS_MAX     10000
#define SIZE_MAX_BYTES 4000 /* one frame */
#define FINI_TIME_NS   (5 * PLX_NS_PER_S)

struct budget_tally budget_tally;

static const struct budget_way *const ways[] = {&budget_raw, &budget_link};

enum { RAW, LINK, WAYS };

void budget_fail(const char *what)
{
	fprintf(stderr, "link_budget: %s: %s\n", what, plx_error());
	exit(1);
}

static void apart(const struct budget_way *way, uint64_t count, unsigned looks)
{
	/* One message is in flight. */
	for (uint64_t i = 0; i < count; i++) {
		way->receive();
		way->looks(looks);
		way->send();
	}
}

static void count_one(const struct budget_way *way, uint64_t count)
{
	way->turn_by_turn(WARM_UP);
	budget_tally = (struct budget_tally){0};
	way->messages(count);
	printf("%s whole messages %llu empty %llu\n", way->name,
	       (unsigned long long)budget_tally.messages, (unsigned long long)budget_tally.empty);
	budget_tally = (struct budget_tally){0};
	apart(way, count, APART_LOOKS);
	printf("%s apart messages %llu empty %llu looks %llu\n", way->name,
	       (unsigned long long)budget_tally.messages, (unsigned long long)budget_tally.empty,
	       (unsigned long long)count * APART_LOOKS);
}

/* Of this thread, so other threads on its CPU do not count. */
static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static uint64_t empty_timed;

static double time_messages(const struct budget_way *way)
{
	way->turn_by_turn(WARM_AGAIN);

	struct budget_tally before = budget_tally;
	double began = cpu_ns(), took;

	way->messages(BLOCK);
	took = cpu_ns() - began;
	empty_timed += budget_tally.empty - before.empty;
	return took / BLOCK;
}

/* Before each message, walk through more memory than the first two cache levels hold, like a
 * program that works between messages. */
static double time_cold(const struct budget_way *way)
{
	static uint8_t memory[SWEPT_BYTES];
	uint64_t cycles = 0;

	way->turn_by_turn(WARM_AGAIN);
	for (unsigned i = 0; i < BLOCK_COLD; i++) {
		for (size_t at = 0; at < sizeof(memory); at += PLX_CACHE_LINE)
			memory[at]++;

		uint64_t began = plx_tsc();

		way->turn_by_turn(1);
		cycles += plx_tsc() - began;
	}
	return (double)plx_tsc_to_ns(cycles) / BLOCK_COLD;
}

/* Excludes polls that found a message, and the clock reads. */
static double time_looks(const struct budget_way *way)
{
	double sum = 0;

	for (unsigned done = 0; done < BLOCK_LOOKS; done += LOOKS_AT_ONCE) {
		way->receive();

		double first = cpu_ns();
		double began = cpu_ns();

		way->looks(LOOKS_AT_ONCE);
		sum += cpu_ns() - began - (began - first);
		way->send();
	}
	return sum / BLOCK_LOOKS;
}

struct samples {
	double values[ROUNDS_MAX];
};

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_samples(const char *what, struct samples *samples, unsigned count)
{
	qsort(samples->values, count, sizeof(double), ascending);
	printf("%s median %.1f quartiles %.1f %.1f ns\n", what, samples->values[count / 2],
	       samples->values[count / 4], samples->values[count * 3 / 4]);
}

/* Rounds in which each way runs one block, alternating which is first. */
static void time_part(const char *what, unsigned rounds,
		      double (*part)(const struct budget_way *way))
{
	static struct samples of[WAYS], added;
	char text[64];

	for (unsigned i = 0; i < rounds; i++) {
		for (int n = 0; n < WAYS; n++) {
			int which = (n + (int)i) % WAYS;

			of[which].values[i] = part(ways[which]);
		}
		added.values[i] = of[LINK].values[i] - of[RAW].values[i];
	}
	for (int n = 0; n < WAYS; n++) {
		snprintf(text, sizeof(text), "%s %s", what, ways[n]->name);
		print_samples(text, &of[n], rounds);
	}
	snprintf(text, sizeof(text), "%s added", what);
	print_samples(text, &added, rounds);
}

static void time_all(unsigned rounds)
{
	time_part("message", rounds, time_messages);
	printf("messages %llu empty %llu\n", (unsigned long long)rounds * WAYS * BLOCK,
	       (unsigned long long)empty_timed);
	time_part("look", rounds, time_looks);
	time_part("cold message", rounds, time_cold);
}

static int start(struct plx_topo *topo)
{
	struct plx_mem_conf mem = {.huge = PLX_HUGE_NONE, .numa = PLX_NUMA_ANY};
	struct plx_lcore_place place = {.lcore_id = 0};
	struct plx_lcore_map map = {.count = 1, .places = &place};
	struct plx_lcore_conf conf = {.topo = topo, .map = &map, .main_lcore = 0};
	int rc = plx_mem_init(&mem);

	plx_cpuset_add(&place.cpus, plx_cpuset_next(plx_topo_allowed(topo), 0));
	rc = rc ? rc : plx_lcores_init(&conf);
	return rc ? rc : plx_idle_set(0, &(struct plx_idle_conf){.mode = PLX_IDLE_POLL});
}

static const struct plx_fabric_driver *find_driver(const char *provider)
{
	for (const struct plx_fabric_driver *const *d = plx_drivers; *d; d++) {
		if (strcmp((*d)->name, provider) == 0)
			return *d;
	}
	return NULL;
}

/* "mr:" before a provider's name registers memory and looks up descriptors for each operation, as
 * verbs needs. Return: whether the provider exists. */
static bool choose(const char *provider, struct budget_conf *conf)
{
	static struct plx_fabric_driver registering;
	bool registers = strncmp(provider, "mr:", 3) == 0;

	conf->provider = provider + 3 * registers;
	conf->driver = find_driver(conf->provider);
	if (conf->driver && registers) {
		registering = *conf->driver;
		registering.needs_mr = true;
		conf->driver = &registering;
	}
	return conf->driver;
}

static void measure(const struct budget_conf *conf, bool counts, uint64_t count)
{
	for (int i = 0; i < WAYS; i++) {
		ways[i]->open(conf);
		ways[i]->turn_by_turn(WARM_UP);
	}
	for (int i = 0; i < WAYS && counts; i++)
		count_one(ways[i], count);
	if (!counts)
		time_all((unsigned)count);
	for (int i = 0; i < WAYS; i++)
		ways[i]->close();
}

int main(int argc, char **argv)
{
	bool enough = argc == 5 || argc == 6;
	bool counts = enough && strcmp(argv[1], "count") == 0;
	bool times = enough && strcmp(argv[1], "time") == 0;
	/* Not 127.0.0.1, where programs of other tests try to reuse their ports. */
	struct budget_conf conf = {.host = argc == 6 ? argv[5] : "127.0.0.77"};
	uint64_t count = enough ? strtoull(argv[4], NULL, 10) : 0;
	struct plx_topo *topo;

	if ((!counts && !times) || !count || (times && count > ROUNDS_MAX)) {
		fprintf(stderr,
			"usage: link_budget count [mr:]PROVIDER SIZE MESSAGES [HOST]\n"
			"       link_budget time [mr:]PROVIDER SIZE ROUNDS [HOST]; at most %d "
			"rounds\n",
			ROUNDS_MAX);
		return 2;
	}
	conf.size = strtoull(argv[3], NULL, 10);
	if (!choose(argv[2], &conf) || conf.size > SIZE_MAX_BYTES) {
		fprintf(stderr, "link_budget: %s: no such provider, or more than %d B\n", argv[2],
			SIZE_MAX_BYTES);
		return 2;
	}
	if (plx_topo_open(NULL, &topo) || start(topo))
		budget_fail("start");
	measure(&conf, counts, count);
	if (plx_lcores_fini(FINI_TIME_NS))
		budget_fail("end");
	plx_mem_fini();
	plx_topo_close(topo);
	return 0;
}
