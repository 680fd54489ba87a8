/* SPDX-License-Identifier: BSD-3-Clause */
/* Full start and stop, on the real libraries below. */
#include "count.h"
#include "log_capture.h"
#include "plx_eal.h"
#include "plx_fabric.h"
#include "plx_fabric_driver.h"
#include "plx_rpc.h"

#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define ROUNDS 20

static char one_lcore[32], two_lcores[64]; /* on the first allowed CPU */
static unsigned first_cpu;

static int find_cpu(void **state)
{
	struct plx_topo *topo;

	assert_int_equal(plx_topo_open(NULL, &topo), 0);
	first_cpu = plx_cpuset_next(plx_topo_allowed(topo), 0);
	plx_topo_close(topo);
	snprintf(one_lcore, sizeof(one_lcore), "0@%u", first_cpu);
	snprintf(two_lcores, sizeof(two_lcores), "(3,5)@%u", first_cpu);
	log_capture();
	return 0;
}

/* To detect what a start leaves. */
struct state {
	cpu_set_t affinity;
	int threads;
};

static struct state state_now(void)
{
	struct state state = {.threads = count_threads()};

	assert_int_equal(sched_getaffinity(0, sizeof(state.affinity), &state.affinity), 0);
	return state;
}

static void assert_state(const struct state *before)
{
	struct state now = state_now();

	assert_true(CPU_EQUAL(&before->affinity, &now.affinity));
	assert_int_equal(now.threads, before->threads);
}

static void start(const char *lcores)
{
	struct plx_eal_conf conf = {.lcores = lcores, .huge = PLX_HUGE_NONE};

	assert_works(plx_eal_init(&conf));
	plx_eal_conf_fini(&conf);
}

static int add_one(void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
	return plx_loop_run();
}

PLX_TEST(init_starts_lcores_memory_and_fabric)
{
	_Atomic int ran = 0;

	start(two_lcores);
	assert_int_equal(plx_lcore_count(), 2);
	assert_int_equal(plx_lcore_main(), 3);
	assert_int_equal(plx_lcore_id(), 3);
	assert_int_equal(plx_lcore_cpu(5), first_cpu);
	assert_non_null(plx_eal_topo());
	assert_fails(plx_eal_init(&(struct plx_eal_conf){.lcores = one_lcore}), -EALREADY,
		     "call plx_eal_fini first");
	void *memory = plx_mem_alloc(100, 0, PLX_NODE_ANY, NULL);
	assert_non_null(memory);
	plx_mem_free(memory);
	assert_int_equal(plx_lcore_launch(5, add_one, &ran), 0);
	wait_until(atomic_load(&ran));
	/* It stops a running loop. */
	assert_int_equal(plx_eal_fini(), 0);
	assert_int_equal(plx_lcore_count(), 0);
	assert_int_equal(plx_lcore_id(), PLX_LCORE_NONE);
	assert_null(plx_eal_topo());
}

PLX_TEST(init_and_fini_can_be_repeated)
{
	struct state before = state_now();
	int fds = 0;

	for (int i = 0; i < ROUNDS; i++) {
		start(i % 2 ? two_lcores : NULL);
		assert_int_equal(plx_eal_fini(), 0);
		assert_state(&before);
		/* libfabric keeps some from its first start. */
		if (i == 0)
			fds = count_descriptors();
		assert_int_equal(count_descriptors(), fds);
	}
}

PLX_TEST(a_dry_run_checks_and_starts_nothing)
{
	struct plx_eal_conf conf = {.lcores = two_lcores,
				    .huge = PLX_HUGE_1G,
				    .node_bytes = {64 << 20},
				    .main_lcore = 5,
				    .dry_run = true};
	struct state before = state_now();
	char text[1024], wanted[64];
	int fd;

	assert_int_equal(plx_eal_init(&conf), 0);
	assert_state(&before);
	assert_int_equal(plx_lcore_count(), 0);
	assert_int_equal(plx_zone_count(), 0);
	/* This process does not hold the CPU: it can be claimed, or another process has it. */
	struct plx_cpu_holder holder;
	if (plx_cpu_claim(first_cpu, &fd, &holder) == 0)
		close(fd);
	else
		assert_int_not_equal(holder.pid, getpid());

	plx_eal_describe(text, sizeof(text));
	snprintf(wanted, sizeof(wanted), "lcore 5: CPU %u, NUMA node ", first_cpu);
	assert_non_null(strstr(text, wanted));
	assert_true(strstr(text, ", main, idle adaptive:balanced:learned\n") >
		    strstr(text, "lcore 5"));
	assert_non_null(
		strstr(text, "memory: 1G pages, numa prefer, 65536 KiB at start on node 0"));
	assert_non_null(strstr(text, "links: provider auto, receive buffers 256 MiB, heartbeat 100 "
				     "ms, dead after 500 ms\n"));
	assert_int_equal(plx_eal_fini(), 0);
}

#define FEW_DESCRIPTORS 200

/* The soft limit of descriptors after a start and an end, from FEW_DESCRIPTORS. */
static rlim_t limit_after(struct plx_eal_conf conf)
{
	struct rlimit before, few, after;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){FEW_DESCRIPTORS, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	conf.lcores = one_lcore;
	conf.huge = PLX_HUGE_NONE;
	assert_works(plx_eal_init(&conf));
	assert_int_equal(plx_eal_fini(), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	return after.rlim_cur;
}

PLX_TEST(a_start_raises_the_soft_limit_of_descriptors)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(limit.rlim_max > FEW_DESCRIPTORS);
	assert_true(limit_after((struct plx_eal_conf){0}) == limit.rlim_max);
	assert_int_equal(limit_after((struct plx_eal_conf){.keep_descriptors = true}),
			 FEW_DESCRIPTORS);
	assert_int_equal(limit_after((struct plx_eal_conf){.dry_run = true}), FEW_DESCRIPTORS);
}

/* Each is refused, also in a dry run, and leaves nothing allocated. */
PLX_TEST(bad_values_are_refused)
{
	static const struct {
		struct plx_eal_conf conf;
		const char *text;
	} rows[] = {
		{{.lcores = "0@4095"}, "lcores 0@4095: CPU 4095 "},
		{{.coremask = "xyz"}, "coremask xyz: column 1: "},
		{{.node_bytes = {SIZE_MAX}}, "socket-mem: more memory than this host has"},
		{{.dead_after_max_ns = PLX_NS_PER_MS},
		 "dead-after-max 1 ms: give at least the silence of heartbeat, 500 ms"},
		{{.provider = "carrier-pigeon"}, "provider carrier-pigeon: unknown provider"},
		{{.log_levels = {"loud"}, .log_level_count = 1}, "log-level loud: unknown level"},
		{{.show_help = true},
		 "help: not handled by this program, which must print plx_eal_options_help()"},
		{{.log_levels = {"x:info"}, .log_level_count = 1}, "unknown component 'x'"},
	};
	int fds = count_descriptors();

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		for (int dry = 0; dry < 2; dry++) {
			struct plx_eal_conf conf = rows[i].conf;

			conf.dry_run = dry;
			assert_fails(plx_eal_init(&conf), -EINVAL, rows[i].text);
			assert_null(plx_eal_topo());
			assert_int_equal(count_descriptors(), fds);
		}
	}
}

PLX_TEST(a_failure_at_the_last_step_undoes_all_others)
{
	static const struct plx_fabric_conf fabric = {.drivers = plx_drivers};
	struct plx_eal_conf conf = {.lcores = two_lcores, .huge = PLX_HUGE_NONE};
	struct state before = state_now();

	/* The fabric is already initialized, so the EAL's start of it fails. */
	assert_int_equal(plx_fabric_init(&fabric), 0);
	int fds = count_descriptors();
	assert_fails(plx_eal_init(&conf), -EALREADY, "the fabric is set up already");
	assert_int_equal(plx_lcore_count(), 0);
	assert_state(&before);
	assert_int_equal(count_descriptors(), fds);
	plx_fabric_fini();

	/* Some of it is always in use. */
	conf.node_bytes[0] = (size_t)(sysconf(_SC_PHYS_PAGES) - 1) * (size_t)sysconf(_SC_PAGESIZE);
	assert_fails(plx_eal_init(&conf), -ENOMEM, "not enough memory");
	assert_state(&before);

	start(two_lcores);
	assert_int_equal(plx_eal_fini(), 0);
}

static _Atomic bool may_return;

static int ignore_stop(void *arg)
{
	while (!atomic_load(&may_return))
		sched_yield();
	return 0;
}

PLX_TEST(fini_names_an_lcore_that_hangs_and_can_be_repeated)
{
	start(two_lcores);
	assert_int_equal(plx_lcore_launch(5, ignore_stop, NULL), 0);
	uint64_t begin_ns = plx_now_ns();
	assert_fails(plx_eal_fini(), -ETIMEDOUT, "lcore 5 (CPU ");
	assert_error_has("has not returned after 5.000 s");
	assert_in_range(plx_now_ns() - begin_ns, 4900 * PLX_NS_PER_MS, 8000 * PLX_NS_PER_MS);
	assert_int_equal(plx_lcore_count(), 2);
	atomic_store(&may_return, true);
	assert_int_equal(plx_eal_fini(), 0);
	assert_int_equal(plx_lcore_count(), 0);
}

/* Count mappings excluded from dumps by the kernel ("dd") and others, among those that contain
 * `base` or whose name contains `name`. */
static void count_dumped(const void *base, const char *name, unsigned *left_out, unsigned *dumped)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	char line[4200];
	bool wanted = false;

	*left_out = *dumped = 0;
	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		uintptr_t from, to;

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
			wanted = ((uintptr_t)base >= from && (uintptr_t)base < to) ||
				 (name && strstr(line, name));
		else if (wanted && strncmp(line, "VmFlags:", 8) == 0)
			++*(strstr(line, " dd") ? left_out : dumped);
	}
	fclose(smaps);
}

PLX_COUNTS(on_open, (*(unsigned *)user), struct plx_link *link, void *user)

static void open_link(unsigned *opened)
{
	static const struct plx_link_events events = {.on_open = on_open};
	struct plx_listen_attr listen_attr = {.link = {.events = &events, .user = opened}};
	struct plx_link_attr attr = {.events = &events, .user = opened};
	uint64_t until_ns = plx_now_ns() + 30 * PLX_NS_PER_S;
	struct plx_listener *listener;
	struct plx_link *link;

	assert_int_equal(plx_link_listen("127.0.0.1:0", &listen_attr, &listener), 0);
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &link), 0);
	while (*opened < 2 && plx_now_ns() < until_ns)
		plx_loop_turn();
	assert_int_equal(*opened, 2);
}

static void check_dumps(enum plx_huge huge, bool is_left_out)
{
	struct plx_eal_conf conf = {
		.lcores = one_lcore, .huge = huge, .provider = "shm", .no_dump = is_left_out};
	unsigned opened = 0, left_out, dumped;
	char text[1024];

	assert_works(plx_eal_init(&conf));
	assert_int_equal(strstr(plx_eal_describe(text, sizeof(text)), ", not in core dumps") !=
				 NULL,
			 is_left_out);
	open_link(&opened);
	count_dumped(plx_zone_get(0)->base, NULL, &left_out, &dumped);
	assert_int_equal(left_out, is_left_out);
	assert_int_equal(dumped, !is_left_out);
	count_dumped(NULL, "memfd:plx_shm", &left_out, &dumped);
	assert_true(left_out + dumped >= 2);
	assert_int_equal(is_left_out ? dumped : left_out, 0);
	assert_int_equal(plx_eal_fini(), 0);
	plx_eal_conf_fini(&conf);
}

PLX_TEST(memory_is_excluded_from_core_dumps_on_request)
{
	skip_if_emulated();
	check_dumps(PLX_HUGE_NONE, true);
	check_dumps(PLX_HUGE_2M, true);
	check_dumps(PLX_HUGE_NONE, false);
}

PLX_TEST(calls_before_init_fail_and_name_plx_eal_init)
{
	static const struct plx_link_events events;
	const struct plx_link_attr link_attr = {.events = &events};
	const struct plx_listen_attr listen_attr = {.link = link_attr};
	const struct plx_pool_attr pool_attr = {.name = "p", .object_count = 1, .object_bytes = 64};
	const char *const addresses[] = {"127.0.0.1:1", NULL};
	struct plx_rpc_service *service;
	struct plx_rpc_client *client;
	struct plx_listener *listener;
	struct plx_link *link;
	struct plx_pool *pool;
	char text[64];

	assert_string_equal(plx_eal_describe(text, sizeof(text)), "Pollux is not up\n");

#define NAMES_INIT(call)                                                      \
	do {                                                                  \
		assert_true((call) < 0);                                      \
		assert_error_has("Pollux is not up");                         \
		assert_error_has("call plx_eal_init or plx_app_start first"); \
	} while (0)

	NAMES_INIT(plx_link_connect(addresses[0], &link_attr, &link));
	NAMES_INIT(plx_link_listen(addresses[0], &listen_attr, &listener));
	NAMES_INIT(plx_pool_create(&pool_attr, &pool));
	NAMES_INIT(plx_rpc_service_create(NULL, &service));
	NAMES_INIT(plx_rpc_client_create(addresses, NULL, &client));
	NAMES_INIT(plx_loop_run());
	NAMES_INIT(plx_lcore_launch(1, NULL, NULL));
	NAMES_INIT(plx_fabric_drain(0));
#undef NAMES_INIT
}

PLX_TEST_MAIN_WITH(find_cpu, NULL)
