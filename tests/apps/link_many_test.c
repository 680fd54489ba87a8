/* SPDX-License-Identifier: BSD-3-Clause */
/* Thousands of links to one lcore: no loop turn is long while they connect, none is lost, and each
 * takes few mappings. The lcore is in this process; many_links opens the links. */
#include "process_fixture.h"

#include "plx_eal.h"
#include "plx_fabric.h"
#include "plx_lcore.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The aim is 5 ms, which a quiet host meets; before there were bounds one turn took 500 ms. A busy
 * host lengthens single turns. */
#define TURN_NS_LONG      (20 * PLX_NS_PER_MS)
#define TURN_NS_MAX       (100 * PLX_NS_PER_MS)
#define LONG_TURNS_MAX    3
#define DESCRIPTORS_SPARE 500
#define MAPPINGS_SPARE    1000

static cpu_set_t all_cpus, own_cpu;
static unsigned opened, closed, lost;

static void on_open(struct plx_link *link, void *user)
{
	opened++;
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	plx_link_send(link, message->data, message->len);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	closed++;
	if (reason != PLX_LINK_CLOSED && lost < 3)
		print_message("%s\n", text);
	lost += reason != PLX_LINK_CLOSED;
}

/* Of this thread: preemption does not count. */
static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * PLX_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Turn until *value is target, while the links do `what`. No turn may be long. */
static void turn_until(const unsigned *value, unsigned target, unsigned limit_s, const char *what)
{
	uint64_t end_ns = plx_now_ns() + limit_s * PLX_NS_PER_S, longest_ns = 0;
	unsigned long_turns = 0;

	while (*value < target && plx_now_ns() < end_ns) {
		uint64_t begin_ns = cpu_ns(), turn_ns;

		assert_true(plx_loop_turn() >= 0);
		turn_ns = cpu_ns() - begin_ns;
		longest_ns = turn_ns > longest_ns ? turn_ns : longest_ns;
		long_turns += turn_ns > TURN_NS_LONG;
	}
	assert_int_equal(*value, target);
	print_message("the longest turn while they %s takes %.2f ms, %u take more than %u ms\n",
		      what, (double)longest_ns / PLX_NS_PER_MS, long_turns,
		      (unsigned)(TURN_NS_LONG / PLX_NS_PER_MS));
	if (PLX_SANITIZED)
		return;
	assert_in_range(longest_ns, 0, TURN_NS_MAX);
	assert_in_range(long_turns, 0, LONG_TURNS_MAX);
}

static unsigned count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned count = 0;
	int c;

	assert_non_null(maps);
	while ((c = getc(maps)) != EOF)
		count += c == '\n';
	fclose(maps);
	return count;
}

static void need(const char *what, uint64_t has, uint64_t needed)
{
	if (has >= needed)
		return;
	print_message("skipped: %s is %llu, and %llu are needed\n", what, (unsigned long long)has,
		      (unsigned long long)needed);
	skip();
}

static uint64_t max_map_count(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long long count = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu", &count), 1);
	fclose(file);
	return count;
}

static void many(const char *provider, unsigned count)
{
	static const struct plx_link_events events = {
		.on_open = on_open, .on_message = on_message, .on_close = on_close};
	struct plx_listen_attr attr = {.link = {.events = &events,
						.provider = provider,
						.close_timeout_ns = 60 * PLX_NS_PER_S}};
	struct plx_listener *listener;
	struct process *client;
	struct rlimit files;
	uint64_t end_ns;
	unsigned mappings;
	char text[64];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	need("RLIMIT_NOFILE (ulimit -Hn)", files.rlim_max, count + DESCRIPTORS_SPARE);
	need("vm.max_map_count", max_map_count(), 2 * count + MAPPINGS_SPARE);
	opened = closed = lost = 0;
	assert_int_equal(plx_link_listen("127.0.0.1:0", &attr, &listener), 0);
	mappings = count_mappings();
	sched_setaffinity(0, sizeof(all_cpus), &all_cpus); /* the child inherits it */
	client = launch("tests/apps/many_links -l 0@%u --huge none --receive-mem 4G --provider %s "
			"-- --connect %s --links %u",
			client_cpu, provider, plx_listener_address(listener), count);
	sched_setaffinity(0, sizeof(own_cpu), &own_cpu);
	turn_until(&opened, count, 120, "come");
	snprintf(text, sizeof(text), "echoed %u\n", count);
	end_ns = plx_now_ns() + 60 * PLX_NS_PER_S;
	while (!process_out_has(client, text, 1) && plx_now_ns() < end_ns && !closed)
		plx_loop_turn();
	if (!process_out_has(client, text, 1) || closed)
		fail_msg("%s: %u links have ended: %s", provider, closed, process_err(client));
	assert_int_equal(closed, 0);
	print_message("%s: %u links, %.2f mappings each\n", provider, count,
		      (double)(count_mappings() - mappings) / count);
	assert_in_range(count_mappings() - mappings, 0, 2 * count + MAPPINGS_SPARE);
	process_signal(client, SIGTERM);
	/* A closing link first takes all completions, including other links'. */
	turn_until(&closed, count, 60, "go");
	assert_int_equal(lost, 0);
	plx_listener_close(listener);
	end_all(NULL);
}

/* Each link takes a descriptor here, and many hosts allow only 20 000. */
PROCESS_TEST(over_shm)
{
	many("shm", 15000);
}

PROCESS_TEST(over_tcp)
{
	many("tcp", 15000);
}

static int set_up(void **state)
{
	char lcores[32];
	struct plx_eal_conf conf = {
		.lcores = lcores,
		.huge = PLX_HUGE_NONE,
		.idle = "poll",
		.receive_bytes = UINT64_C(4) << 30,
		.heartbeat_ns = PLX_NS_PER_S,
		.dead_after_ns = 20 * PLX_NS_PER_S,
		.admission.links_max = PLX_NO_LIMIT,
		.admission.links_per_host_max = PLX_NO_LIMIT,
		.admission.accepts_per_s = PLX_NO_LIMIT,
		.admission.handshakes_max = PLX_NO_LIMIT,
	};

	if (group_set_up(state) != 0)
		return -1;
	snprintf(lcores, sizeof(lcores), "0@%u", server_cpu);
	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	if (plx_eal_init(&conf) == 0)
		return sched_getaffinity(0, sizeof(own_cpu), &own_cpu);
	print_message("%s\n", plx_error());
	return -1;
}

static int tear_down(void **state)
{
	plx_eal_fini();
	return 0;
}

PLX_TEST_MAIN_WITH(set_up, tear_down)
