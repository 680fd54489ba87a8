/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

#include "count.h"
#include "rogue.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

struct side server, client;

static struct plx_topo *topo;
static int descriptors_before;
static bool looked_before;

void more_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

bool is_provider_given(void)
{
	return getenv("PLX_TEST_PROVIDER") != NULL;
}

const char *provider_to_test(void)
{
	return is_provider_given() ? getenv("PLX_TEST_PROVIDER") : "tcp";
}

bool is_over_iwarp(void)
{
	struct fi_info *hints, *info = NULL;
	bool found;
	int rc;

	if (strcmp(provider_to_test(), "verbs") != 0)
		return false;
	hints = fi_allocinfo();
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("verbs");
	rc = fi_getinfo(FI_VERSION(1, 17), getenv("PLX_TEST_HOST"), "0", FI_SOURCE, hints, &info);
	found = rc == 0 && info->ep_attr->protocol == FI_PROTO_IWARP;
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return found;
}

const char *here(const char *port)
{
	static char addresses[4][64];
	static unsigned turn;
	const char *host = getenv("PLX_TEST_HOST");
	char *address = addresses[turn++ % PLX_ARRAY_LEN(addresses)];

	snprintf(address, sizeof(addresses[0]), "%s:%s", host ? host : "127.0.0.1", port);
	return address;
}

const char *at_host(const char *host, const struct plx_listener *listener)
{
	static char address[PLX_ADDRESS_MAX];

	snprintf(address, sizeof(address), "%s:%u", host, plx_listener_port(listener));
	return address;
}

static void on_open(struct plx_link *link, void *user)
{
	struct side *side = user;

	side->link = link;
	side->lcore = plx_lcore_id();
	side->opened++;
}

static void note_sequence(struct side *side, const struct plx_buf *message)
{
	uint64_t number;

	if (!side->sequenced || message->len < sizeof(number))
		return;
	memcpy(&number, message->data, sizeof(number));
	side->sequence_errors += number != side->next_sequence;
	side->next_sequence = number + 1;
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct side *side = user;

	side->messages++;
	side->bytes += message->len;
	note_sequence(side, message);
	free(side->last);
	side->last = malloc(message->len + 1);
	memcpy(side->last, message->data, message->len);
	side->last_len = message->len;
	if (side->on_message)
		side->on_message(side, message);
	if (side->keep > side->kept_count)
		side->kept[side->kept_count++] = plx_buf_ref(message);
	if (side->echo && plx_link_send_buf(link, plx_buf_ref(message), NULL, NULL) != 0)
		fail_msg("echo: %s", plx_error());
}

static void on_writable(struct plx_link *link, void *user)
{
	struct side *side = user;

	side->writable++;
	if (side->on_writable)
		side->on_writable(side);
}

static void on_suspect(struct plx_link *link, bool suspect, void *user)
{
	struct side *side = user;

	assert_int_equal(plx_link_is_suspect(link), suspect);
	side->suspect += suspect;
	side->heard += !suspect;
}

static void on_put(struct plx_link *link, uint32_t value, void *user)
{
	struct side *side = user;

	side->puts++;
	side->value = value;
	if (side->on_put)
		side->on_put(side, value);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct side *side = user;

	side->reason = reason;
	side->reason_asked = plx_link_reason(link);
	side->unfinished = plx_link_unfinished(link);
	snprintf(side->text, sizeof(side->text), "%s", text);
	side->link = NULL;
	side->closed++; /* last: another lcore that sees it also sees the rest */
}

const struct plx_link_events side_events = {
	.on_suspect = on_suspect,
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_put = on_put,
	.on_close = on_close,
};

/* list: a format with a CPU for each lcore. */
static void start_lcores(const char *list, unsigned first, unsigned second)
{
	struct plx_lcore_map map;
	struct plx_lcore_conf lcores = {.topo = topo, .map = &map, .main_lcore = PLX_LCORE_NONE};
	char text[64];

	snprintf(text, sizeof(text), list, first, second);
	assert_works(plx_lcore_map_parse_list("-l", text, topo, &map));
	assert_works(plx_lcores_init(&lcores));
	plx_lcore_map_fini(&map);
}

/* An lcore's eventfd outlives the lcore: create both from the start. */
static void leave_eventfds(unsigned cpu)
{
	static bool done;

	if (done)
		return;
	done = true;
	start_lcores("0@%u,1@%u", cpu, cpu);
	assert_int_equal(plx_lcores_fini(5 * PLX_NS_PER_S), 0);
}

void fixture_start_as(const struct plx_fabric_conf *as, bool two_lcores)
{
	struct plx_fabric_conf fabric = *as;
	struct plx_mem_conf mem = {.huge = PLX_HUGE_NONE, .numa = PLX_NUMA_PREFER};
	bool is_foreign = as->provider && strcmp(as->provider, "foreign") == 0;

	/* Since libfabric 1.20 a domain of its tcp fills 16 MiB at its first transfer, for 60 ms,
	 * unless its buffers are small. Read once, in the process's first libfabric call. */
	setenv("FI_TCP_MAX_RX_SIZE", "128", 0);
	plx_clock_init();
	server = (struct side){.name = "server"};
	client = (struct side){.name = "client"};
	assert_int_equal(plx_topo_open(NULL, &topo), 0);

	unsigned first = plx_cpuset_next(plx_topo_allowed(topo), 0);
	unsigned second = plx_cpuset_next(plx_topo_allowed(topo), first + 1);

	if (second == PLX_CPU_MAX)
		second = first;
	leave_eventfds(first);
	descriptors_before = count_descriptors();
	assert_int_equal(plx_mem_init(&mem), 0);
	start_lcores(two_lcores ? "0@%u,1@%u" : "0@%u", first, second);
	if (!fabric.drivers)
		fabric.drivers = is_foreign ? foreign_drivers : plx_drivers;
	if (plx_fabric_init(&fabric) != 0)
		fail_msg("plx_fabric_init: %s", plx_error());
}

void fixture_start(const char *provider, bool two_lcores)
{
	if (is_provider_given() && (!provider || strcmp(provider, "tcp") == 0))
		provider = provider_to_test();
	fixture_start_as(&(struct plx_fabric_conf){.provider = provider}, two_lcores);
}

void fixture_start_beating(uint64_t heartbeat_ns, uint64_t dead_after_ns, bool two_lcores)
{
	fixture_start_as(&(struct plx_fabric_conf){.provider = provider_to_test(),
						   .heartbeat_ns = heartbeat_ns,
						   .dead_after_ns = dead_after_ns},
			 two_lcores);
}

void side_release(struct side *side, unsigned count)
{
	while (count-- && side->kept_count)
		plx_buf_unref(side->kept[--side->kept_count]);
}

struct plx_link_stats stats_of(const struct plx_link *link)
{
	struct plx_link_stats stats;

	plx_link_stats_read(link, &stats);
	return stats;
}

struct plx_listener_stats listener_stats_of(const struct plx_listener *listener)
{
	struct plx_listener_stats stats;

	plx_listener_stats_read(listener, &stats);
	return stats;
}

uint64_t zone_bytes_used(void)
{
	struct plx_mem_stats stats;

	plx_mem_stats_read(&stats);
	return stats.bytes_used;
}

void fixture_stop(void)
{
	rogue_close_all();
	side_release(&server, UINT32_MAX);
	side_release(&client, UINT32_MAX);
	plx_fabric_fini();
	assert_int_equal(plx_lcores_fini(5 * PLX_NS_PER_S), 0);
	plx_log_set_sink(NULL, NULL);
	assert_int_equal(zone_bytes_used(), 0);
	plx_mem_fini();
	plx_topo_close(topo);
	free(server.last);
	free(client.last);
	server.last = client.last = NULL;
	/* libfabric's first query opens a few for good. */
	if (looked_before)
		assert_int_equal(count_descriptors(), descriptors_before);
	looked_before = true;
}

const char *fixture_provider = "tcp";

int fixture_up(void **state)
{
	fixture_start(fixture_provider, false);
	return 0;
}

int fixture_up_with_pair(void **state)
{
	fixture_up(state);
	fixture_pair(NULL);
	return 0;
}

int fixture_up_with_worker(void **state)
{
	fixture_start(NULL, true);
	worker_start();
	return 0;
}

int fixture_down(void **state)
{
	fixture_stop();
	return 0;
}

int fixture_down_with_worker(void **state)
{
	worker_stop();
	fixture_stop();
	return 0;
}

void fixture_renew_sides(void)
{
	side_release(&server, UINT32_MAX);
	side_release(&client, UINT32_MAX);
	free(server.last);
	free(client.last);
	server = (struct side){.name = "server"};
	client = (struct side){.name = "client"};
}

void fixture_disconnect(void)
{
	plx_link_abort(client.link);
	expect_both_end();
	fixture_renew_sides();
}

/* A guest with emulated CPUs needs longer for everything. */
#define GUEST_PATIENCE 10

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * PLX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Measures this thread's run time: on a busy host time passes without a loop turn. Reading the
 * thread's clock takes a system call, so it is read when the time is over. */
static bool pump_for(const _Atomic unsigned *value, unsigned target, uint64_t limit_ns)
{
	uint64_t end_cpu_ns = thread_cpu_ns() + limit_ns, cpu_ns, until_ns;

	while (*value < target && (cpu_ns = thread_cpu_ns()) < end_cpu_ns) {
		until_ns = plx_now_ns() + end_cpu_ns - cpu_ns;
		while (*value < target && plx_now_ns() < until_ns)
			plx_loop_turn();
	}
	return *value >= target;
}

bool pump_until(const _Atomic unsigned *value, unsigned target, unsigned limit_ms)
{
	return pump_for(value, target,
			(is_provider_given() ? GUEST_PATIENCE : 1) * limit_ms * PLX_NS_PER_MS);
}

void stand_still(uint64_t ns)
{
	uint64_t end_ns = plx_now_ns() + ns;

	while (plx_now_ns() < end_ns)
		plx_pause();
}

void pump_ms(unsigned ms)
{
	_Atomic unsigned never = 0;

	pump_for(&never, 1, ms * PLX_NS_PER_MS);
}
