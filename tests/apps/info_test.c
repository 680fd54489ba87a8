/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-info on hosts that are made up: files below a temporary folder, topologies of hwloc's. */
#include "plx_test.h"

#include "info.h"
#include "plx_fabric_driver.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

static char root[64];

static int make_root(void **state)
{
	snprintf(root, sizeof(root), "/tmp/plx-info-test-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *at)
{
	return remove(path);
}

static int remove_root(void **state)
{
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_parents(char *path)
{
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(path, 0700) != 0)
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
}

static void put(const char *name, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", root, name);
	make_parents(path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void assert_cpus(const struct plx_cpuset *set, const char *list)
{
	char text[256];

	assert_string_equal(plx_cpuset_format(set, text, sizeof(text)), list);
}

/* A host with nothing to change: each test spoils one thing. */
static struct info *sound_host(void)
{
	struct info *info = calloc(1, sizeof(*info));

	assert_non_null(info);
	info_parse_cpulist("0-3", &info->cpus.online);
	info->cpus.allowed = info->cpus.one_per_core = info->cpus.online;
	info_parse_cpulist("2-3", &info->cpus.isolated);
	info->cpus.node_count = 1;
	snprintf(info->kernel.clocksource, sizeof(info->kernel.clocksource), "tsc");
	snprintf(info->kernel.clocksources, sizeof(info->kernel.clocksources), "tsc hpet");
	info->kernel.clock = (struct plx_clock_info){
		.source = "tsc", .frequency = "measured", .hz = 2e9, .invariant = true};
	info->memory.pools[0] = (struct info_pool){0, 2 << 20, 64, 64};
	info->memory.pool_count = 1;
	snprintf(info->memory.thp, sizeof(info->memory.thp), "madvise");
	info->memory.memlock_bytes = info->memory.nofile = UINT64_MAX;
	info->fabric.drivers[0] = (struct info_driver){
		.name = "tcp", .summary = "tcp", .provider = "net", .available = true};
	info->fabric.drivers[1] = (struct info_driver){.name = "shm",
						       .summary = "the same host",
						       .provider = "plx_shm",
						       .domains = "plx_shm",
						       .available = true,
						       .same_host = true};
	info->fabric.driver_count = 2;
	return info;
}

/* The doctor must find exactly this, besides nothing. Frees info. */
static void assert_only_finding(struct info *info, const char *id, enum info_severity severity,
				const char *seen_part, const char *command_part)
{
	struct info_finding findings[INFO_FINDINGS_MAX];
	unsigned count = info_doctor(info, findings, INFO_FINDINGS_MAX);

	if (count != 1)
		fail_msg("%u findings instead of one, '%s'; the first is '%s'", count, id,
			 count ? findings[0].id : "");
	assert_string_equal(findings[0].id, id);
	assert_int_equal(findings[0].severity, severity);
	if (!strstr(findings[0].seen, seen_part))
		fail_msg("'%s' lacks '%s'", findings[0].seen, seen_part);
	if (!strstr(findings[0].command, command_part))
		fail_msg("'%s' lacks '%s'", findings[0].command, command_part);
	assert_true(strlen(findings[0].why) > 20);
	free(info);
}

static void reads_lists_of_cpus(void **state)
{
	struct plx_cpuset set;

	assert_true(info_parse_cpulist("0-2,5,7-8", &set));
	assert_cpus(&set, "0-2,5,7-8");
	assert_true(info_parse_cpulist("4095", &set));
	static const char *const bad[] = {"",     "x",      "1-",  "3-1", "1,",
					  "1,,2", "0-4096", "1 2", "-1"};
	for (size_t i = 0; i < PLX_ARRAY_LEN(bad); i++) {
		if (info_parse_cpulist(bad[i], &set))
			fail_msg("'%s' was taken for a list of CPUs", bad[i]);
		assert_int_equal(plx_cpuset_count(&set), 0);
	}
}

static void finds_values_by_whole_names(void **state)
{
	char value[32];

	assert_true(info_find_value("xMemFree: 1\nMemFree:   22 kB\n", "MemFree", false, value,
				    sizeof(value)));
	assert_string_equal(value, "22 kB");
	assert_true(
		info_find_value("a quiet isolcpus=1-3 b", "isolcpus", true, value, sizeof(value)));
	assert_string_equal(value, "1-3");
	assert_false(info_find_value("isolcpus_not=1", "isolcpus", true, value, sizeof(value)));
	assert_string_equal(value, "");
}

static void a_missing_or_long_file_reads_as_empty(void **state)
{
	char text[8];

	assert_false(info_read(text, sizeof(text), "%s/none", root));
	assert_string_equal(text, "");
	put("/long", "12345678");
	assert_false(info_read(text, sizeof(text), "%s/long", root));
	assert_string_equal(text, "");
	put("/fits", "123456\n");
	assert_true(info_read(text, sizeof(text), "%s/fits", root));
	assert_string_equal(text, "123456");
	put("/words", "none");
	assert_int_equal(info_read_number(7, "%s/words", root), 7);
}

static void sees_cpus_cores_and_nodes(void **state)
{
	struct plx_topo *topo;
	struct info_cpus *cpus = malloc(sizeof(*cpus));

	assert_non_null(cpus);
	put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Made Up 9000\nflags\t: fpu tsc\n");
	put("/proc/cmdline", "quiet isolcpus=managed_irq,domain,2-3 nohz_full=3 rcu_nocbs=2-3\n");
	put("/sys/devices/system/node/node1/meminfo",
	    "Node 1 MemTotal:        2048 kB\nNode 1 MemFree:         1024 kB\n");
	put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
	put("/sys/devices/system/cpu/cpu5/cpufreq/scaling_governor", "powersave\n");
	assert_int_equal(plx_topo_open("synthetic:package:2 numa:1 core:2 pu:2", &topo), 0);
	info_gather_cpus(root, topo, cpus);

	assert_string_equal(cpus->model, "Made Up 9000");
	assert_cpus(&cpus->online, "0-7");
	assert_int_equal(cpus->core_count, 4);
	assert_int_equal(cpus->package_count, 2);
	assert_cpus(&cpus->one_per_core, "0,2,4,6");
	assert_cpus(&cpus->isolated, "2-3");
	assert_cpus(&cpus->nohz_full, "3");
	assert_cpus(&cpus->rcu_nocbs, "2-3");
	assert_int_equal(cpus->node_count, 2);
	assert_int_equal(cpus->nodes[1].total_bytes, 2048 * 1024);
	assert_int_equal(cpus->nodes[1].free_bytes, 1024 * 1024);
	assert_cpus(&cpus->nodes[1].cpus, "4-7");
	assert_cpus(&cpus->not_governed, "5");
	assert_string_equal(cpus->governor, "mixed");
	assert_int_equal(cpus->claim_count, 0);
	plx_topo_close(topo);
	free(cpus);
}

static void reads_claims_from_the_list_of_sockets(void **state)
{
	struct info_claim claims[4];
	static const char text[] =
		"Num       RefCount Protocol Flags    Type St Inode Path\n"
		"0000000000000001: 00000003 00000000 00000000 0001 03  1056\n"
		"0000000000000002: 00000002 00000000 00010000 0001 01 222 @pollux/cpu/11\n"
		"0000000000000003: 00000002 00000000 00010000 0001 01 333 @pollux/cpu/3\n"
		"0000000000000004: 00000002 00000000 00000000 0001 03 444 @pollux/cpu/4\n"
		"0000000000000005: 00000002 00000000 00010000 0001 01 555 @pollux/cpu/x\n"
		"0000000000000006: 00000002 00000000 00010000 0001 01 666 /run/pollux/cpu/7\n";

	assert_int_equal(info_parse_claims(text, claims, PLX_ARRAY_LEN(claims)), 2);
	assert_int_equal(claims[0].cpu, 3);
	assert_int_equal(claims[0].inode, 333);
	assert_int_equal(claims[1].cpu, 11);
	assert_int_equal(info_parse_claims(text, claims, 1), 1);
	assert_int_equal(info_parse_claims("", claims, 4), 0);
}

static void names_the_holder_of_a_claim(void **state)
{
	struct info_cpus *cpus = calloc(1, sizeof(*cpus));
	char path[512];

	assert_non_null(cpus);
	put("/proc/net/unix", "head\n0: 00000002 00000000 00010000 0001 01 77 @pollux/cpu/1\n");
	put("/proc/4321/comm", "plx-echo\n");
	put("/proc/4321/fd/0", "");
	snprintf(path, sizeof(path), "%s/proc/4321/fd/5", root);
	assert_int_equal(symlink("socket:[77]", path), 0);
	info_gather_claims(root, cpus);
	assert_int_equal(cpus->claim_count, 1);
	assert_int_equal(cpus->claims[0].pid, 4321);
	assert_string_equal(cpus->claims[0].command, "plx-echo");
	free(cpus);
}

/* A thread of a made-up process; maps is a line of the process' own. */
static void put_thread(unsigned pid, unsigned tid, const char *name, const char *cpus,
		       const char *maps)
{
	char path[128], text[128];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tid);
	put(path, name);
	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", pid, tid);
	snprintf(text, sizeof(text), "Name:\t%s\nCpus_allowed:\tf\nCpus_allowed_list:\t%s\n", name,
		 cpus);
	put(path, text);
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	put(path, maps);
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	put(path, name);
}

#define MAPS_POLLUX \
	"7f00-7f01 r--p 0 00:1 9 /lib/libc.so.6\n7f02-7f03 r-xp 0 00:1 9 /lib/libpollux.so.0\n"
#define MAPS_OTHER "7f00-7f01 r--p 0 00:1 9 /lib/libc.so.6\n"

/* Pids that no kernel gives: this very process is left out. */
static void names_all_who_share_a_claimed_cpu(void **state)
{
	struct info_cpus *cpus = calloc(1, sizeof(*cpus));
	char path[512];

	assert_non_null(cpus);
	info_parse_cpulist("0-3", &cpus->allowed);
	put("/proc/net/unix", "head\n0: 00000002 00000000 00010000 0001 01 77 @pollux/cpu/1\n"
			      "1: 00000002 00000000 00010000 0001 01 78 @pollux/cpu/2\n");
	put_thread(5000001, 5000001, "holder", "1-2", MAPS_POLLUX);
	put("/proc/5000001/fd/0", "");
	for (unsigned i = 0; i < 2; i++) {
		char target[32];

		snprintf(path, sizeof(path), "%s/proc/5000001/fd/%u", root, 5 + i);
		snprintf(target, sizeof(target), "socket:[%u]", 77 + i);
		assert_int_equal(symlink(target, path), 0);
	}
	put_thread(5000003, 5000003, "late", "1", MAPS_POLLUX);
	put_thread(5000002, 5000002, "early", "1", MAPS_POLLUX);
	put_thread(5000002, 5000009, "plx-lcore-4", "2", MAPS_POLLUX);
	put_thread(5000004, 5000004, "stranger", "1", MAPS_OTHER);
	put_thread(5000005, 5000005, "elsewhere", "1,3", MAPS_POLLUX);
	put_thread(5000006, 5000006, "anywhere", "0-3", MAPS_POLLUX);
	put_thread(5000006, 5000007, "logger", "1", MAPS_POLLUX);
	put("/proc/5000002/comm", "early");
	info_gather_claims(root, cpus);
	static const struct {
		unsigned cpu, pid;
		const char *command;
	} wanted[] = {{1, 5000002, "early"}, {1, 5000003, "late"}, {2, 5000002, "early"}};
	assert_int_equal(cpus->claim_count, 2);
	assert_int_equal(cpus->sharer_count, PLX_ARRAY_LEN(wanted));
	for (size_t i = 0; i < PLX_ARRAY_LEN(wanted); i++) {
		assert_int_equal(cpus->sharers[i].cpu, wanted[i].cpu);
		assert_int_equal(cpus->sharers[i].pid, wanted[i].pid);
		assert_string_equal(cpus->sharers[i].command, wanted[i].command);
	}
	free(cpus);
}

static void sees_a_claim_of_this_very_process(void **state)
{
	struct info_cpus *cpus = calloc(1, sizeof(*cpus));
	const unsigned cpu = PLX_CPU_MAX - 7; /* no host of today has it */
	int claim = -1;

	assert_non_null(cpus);
	assert_int_equal(plx_cpu_claim(cpu, &claim, NULL), 0);
	info_gather_claims("", cpus);
	bool found = false;
	for (unsigned i = 0; i < cpus->claim_count; i++)
		found |= cpus->claims[i].cpu == cpu && cpus->claims[i].pid == getpid();
	close(claim);
	free(cpus);
	assert_true(found);
}

static void reads_huge_pages_by_node_and_size(void **state)
{
	struct info_memory *memory = malloc(sizeof(*memory));

	assert_non_null(memory);
	put("/proc/meminfo", "MemTotal:       4096 kB\nMemAvailable:   2048 kB\n");
	put("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "8\n");
	put("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "5\n");
	put("/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages", "1\n");
	put("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
	put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
	put("/proc/sys/kernel/numa_balancing", "1\n");
	info_gather_memory(root, memory);

	assert_int_equal(memory->total_bytes, 4 << 20);
	assert_int_equal(memory->available_bytes, 2 << 20);
	assert_int_equal(memory->pool_count, 3);
	assert_int_equal(memory->pools[0].node_id, 0);
	assert_int_equal(memory->pools[0].page_bytes, 2 << 20);
	assert_int_equal(memory->pools[1].page_bytes, 1 << 30);
	assert_int_equal(memory->pools[1].total, 1);
	assert_int_equal(memory->pools[2].node_id, 1);
	assert_int_equal(memory->pools[2].total, 8);
	assert_int_equal(memory->pools[2].free, 5);
	assert_string_equal(memory->thp, "madvise");
	assert_true(memory->numa_balancing);
	free(memory);
}

static void reads_steal_and_clock(void **state)
{
	struct info_kernel kernel;

	put("/proc/stat", "cpu  50 0 0 40 0 0 0 10 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
	put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
	put("/sys/devices/system/clocksource/clocksource0/available_clocksource",
	    "hpet acpi_pm \n");
	info_gather_kernel(root, &kernel);
	assert_true(kernel.steal > 0.0999 && kernel.steal < 0.1001);
	assert_string_equal(kernel.clocksource, "hpet");
	assert_string_equal(kernel.clocksources, "hpet acpi_pm");
	assert_true(kernel.clock.hz > 1e6);
	assert_true(kernel.quota_cpus == 0);
}

static void finds_the_least_quota_of_nested_cgroups(void **state)
{
	struct info_kernel kernel;

	put("/proc/self/cgroup", "0::/a/b\n");
	put("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
	put("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
	info_gather_kernel(root, &kernel);
	assert_true(kernel.quota_cpus == 0.5);
	assert_true(kernel.period_ms == 100);
	assert_string_equal(kernel.quota_path, "/sys/fs/cgroup/a/cpu.max");

	put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
	info_gather_kernel(root, &kernel);
	assert_true(kernel.quota_cpus == 1.5);

	put("/proc/self/cgroup", "3:cpu,cpuacct:/x\n1:name=systemd:/\n");
	put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
	info_gather_kernel(root, &kernel);
	assert_true(kernel.quota_cpus == 0);
	put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "20000\n");
	put("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "10000\n");
	info_gather_kernel(root, &kernel);
	assert_true(kernel.quota_cpus == 2);
}

static void reads_rdma_devices(void **state)
{
	struct info_rdma *rdma = malloc(sizeof(*rdma));

	assert_non_null(rdma);
	info_gather_rdma(root, rdma);
	assert_int_equal(rdma->device_count, 0);

	put("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
	put("/sys/class/infiniband/mlx5_0/device/numa_node", "1\n");
	info_gather_rdma(root, rdma);
	assert_int_equal(rdma->device_count, 2);
	assert_string_equal(rdma->devices[0].name, "mlx5_0");
	assert_int_equal(rdma->devices[0].node_id, 1);
	assert_true(rdma->devices[0].ports[0].active);
	assert_string_equal(rdma->devices[0].ports[0].link_layer, "Ethernet");
	assert_int_equal(rdma->devices[1].node_id, -1);
	assert_false(rdma->devices[1].ports[0].active);
	free(rdma);
}

static void the_doctor_leaves_a_sound_host_alone(void **state)
{
	struct info_finding findings[INFO_FINDINGS_MAX];
	struct info *info = sound_host();

	assert_int_equal(info_doctor(info, findings, INFO_FINDINGS_MAX), 0);
	free(info);
}

static void the_doctor_on_cpus(void **state)
{
	struct info *info = sound_host();

	info_parse_cpulist("2", &info->cpus.allowed);
	info->cpus.one_per_core = info->cpus.isolated = info->cpus.allowed;
	assert_only_finding(info, "one-cpu", INFO_PROBLEM, "CPU 2 alone", "taskset -c 0-3");

	info = sound_host();
	info_parse_cpulist("0-1", &info->cpus.allowed);
	info->cpus.one_per_core = info->cpus.allowed;
	assert_only_finding(info, "isolated-cpus", INFO_ADVICE, "CPUs 2-3 are isolated",
			    "taskset -c 2-3 plx-echo -l 2-3");

	info = sound_host();
	memset(&info->cpus.isolated, 0, sizeof(info->cpus.isolated));
	assert_only_finding(info, "isolation", INFO_NOTE, "no CPU is isolated",
			    "isolcpus=managed_irq,domain,1-3 nohz_full=1-3");

	info = sound_host();
	info_parse_cpulist("0,2", &info->cpus.one_per_core);
	assert_only_finding(info, "smt", INFO_NOTE, "4 CPUs on 2 cores", "-l 0,2");

	info = sound_host();
	info_parse_cpulist("1,3", &info->cpus.not_governed);
	snprintf(info->cpus.governor, sizeof(info->cpus.governor), "powersave");
	assert_only_finding(info, "governor", INFO_ADVICE, "powersave",
			    "cpupower --cpu 1,3 frequency-set -g performance");

	info = sound_host();
	for (unsigned cpu = 0; cpu < 4; cpu++)
		info->cpus.claims[info->cpus.claim_count++] = (struct info_claim){.cpu = cpu};
	assert_only_finding(info, "all-claimed", INFO_ADVICE, "every allowed CPU", "-l");
}

static void the_doctor_on_the_kernel(void **state)
{
	struct info *info = sound_host();

	info->kernel.quota_cpus = 1.5;
	info->kernel.period_ms = 100;
	snprintf(info->kernel.quota_path, sizeof(info->kernel.quota_path),
		 "/sys/fs/cgroup/a/cpu.max");
	assert_only_finding(info, "cpu-quota", INFO_PROBLEM, "1.50 CPUs in every 100 ms",
			    "tee /sys/fs/cgroup/a/cpu.max");

	info = sound_host();
	info->kernel.clock.invariant = false;
	assert_only_finding(info, "tsc", INFO_PROBLEM, "invariant", "");

	info = sound_host();
	snprintf(info->kernel.clocksource, sizeof(info->kernel.clocksource), "hpet");
	assert_only_finding(info, "clocksource", INFO_ADVICE, "'hpet'", "current_clocksource");

	info = sound_host();
	info->kernel.clock.residual_ppm = 80;
	assert_only_finding(info, "clock-calibration", INFO_NOTE, "80 ppm", "");

	info = sound_host();
	info->kernel.steal = 0.02;
	assert_only_finding(info, "steal", INFO_ADVICE, "2.0 %", "vcpupin");
}

static void the_doctor_on_memory(void **state)
{
	struct info *info = sound_host();

	info->memory.pools[0].free = 0;
	assert_only_finding(info, "hugepages", INFO_ADVICE, "no huge page is free",
			    "sysctl vm.nr_hugepages=256");

	info = sound_host();
	info->memory.pools[1] = (struct info_pool){1, 2 << 20, 64, 0};
	info->memory.pools[2] = (struct info_pool){1, 1 << 30, 0, 0};
	info->memory.pool_count = 3;
	assert_only_finding(info, "hugepages", INFO_ADVICE, "1 of 2 NUMA nodes", "hugepages.sh");

	info = sound_host();
	snprintf(info->memory.thp, sizeof(info->memory.thp), "never");
	assert_only_finding(info, "thp", INFO_NOTE, "switched off", "madvise");

	info = sound_host();
	info->memory.memlock_bytes = 8192 * 1024;
	assert_only_finding(info, "memlock", INFO_NOTE, "8192 KiB", "ulimit -l unlimited");

	info = sound_host();
	info->memory.nofile = 1024;
	assert_only_finding(info, "nofile", INFO_NOTE, "1024", "ulimit -n 65536");

	info = sound_host();
	info->memory.numa_balancing = true;
	info->cpus.node_count = 2;
	assert_only_finding(info, "numa-balancing", INFO_ADVICE, "2 nodes",
			    "sysctl kernel.numa_balancing=0");
}

static void the_doctor_on_the_transport(void **state)
{
	struct info *info = sound_host();

	info->fabric.drivers[0].available = false;
	info->fabric.version = 1 << 16 | 17;
	assert_only_finding(info, "no-provider", INFO_PROBLEM, "libfabric 1.17", "fi_info");

	info = sound_host(); /* in whichever order they stand */
	info->fabric.drivers[2] = info->fabric.drivers[0];
	info->fabric.drivers[0] = info->fabric.drivers[1];
	info->fabric.drivers[1] = info->fabric.drivers[2];
	info->fabric.drivers[1].available = false;
	assert_only_finding(info, "no-provider", INFO_PROBLEM, "driver tcp:", "fi_info");

	info = sound_host();
	info->rdma.device_count = 1;
	info->rdma.devices[0] = (struct info_device){
		.name = "mlx5_0", .port_count = 1, .ports[0].active = true};
	assert_only_finding(info, "rdma-driver", INFO_PROBLEM, "mlx5_0", "ibverbs-providers");

	info = sound_host();
	info->rdma.device_count = 1;
	info->rdma.devices[0] = (struct info_device){
		.name = "mlx5_0", .usable = true, .port_count = 1};
	assert_only_finding(info, "rdma-port", INFO_ADVICE, "no port of mlx5_0",
			    "ibv_devinfo -d mlx5_0");

	info = sound_host();
	info->rdma.device_count = 1;
	info->rdma.devices[0] = (struct info_device){
		.name = "mlx5_0", .usable = true, .port_count = 1, .ports[0].active = true};
	info->memory.memlock_bytes = 8192 * 1024;
	assert_only_finding(info, "memlock", INFO_PROBLEM, "8192 KiB", "ulimit -l");
}

static void the_gravest_findings_come_first(void **state)
{
	struct info_finding findings[INFO_FINDINGS_MAX];
	struct info *info = sound_host();

	info->memory.nofile = 1024;
	info->kernel.steal = 0.5;
	info->kernel.clock.invariant = false;
	assert_int_equal(info_doctor(info, findings, INFO_FINDINGS_MAX), 3);
	assert_string_equal(findings[0].id, "tsc");
	assert_string_equal(findings[1].id, "steal");
	assert_string_equal(findings[2].id, "nofile");
	assert_int_equal(info_doctor(info, findings, 2), 2);
	free(info);
}

/* What info_print_json writes, parsed. */
static json_t *as_json(const struct info *info, const struct info_finding *findings, unsigned count)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(info_print_json(info, findings, count, out), 0);
	fclose(out);
	json_t *json = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(json);
	return json;
}

static void writes_one_json_object_with_a_schema(void **state)
{
	struct info_finding findings[INFO_FINDINGS_MAX];
	struct info *info = sound_host();

	info->memory.nofile = 1024;
	info->memory.memlock_bytes = UINT64_MAX;
	info->rdma.device_count = 1;
	snprintf(info->rdma.devices[0].name, sizeof(info->rdma.devices[0].name), "mlx5_0");
	unsigned count = info_doctor(info, findings, INFO_FINDINGS_MAX);
	json_t *json = as_json(info, findings, count);
	json_t *cpus = json_object_get(json, "cpus"), *memory = json_object_get(json, "memory");
	json_t *doctor = json_object_get(json, "doctor");

	assert_int_equal(json_integer_value(json_object_get(json, "schema")), INFO_JSON_SCHEMA);
	assert_string_equal(json_string_value(json_object_get(json, "pollux")), plx_version());
	assert_string_equal(json_string_value(json_object_get(cpus, "online")), "0-3");
	assert_true(json_is_null(json_object_get(memory, "memlock_bytes")));
	assert_int_equal(json_integer_value(json_object_get(memory, "nofile")), 1024);
	assert_int_equal(json_array_size(doctor), count);
	assert_string_equal(json_string_value(json_object_get(json_array_get(doctor, 0), "id")),
			    "rdma-driver");
	json_decref(json);
	free(info);
}

/* CPU 1 has a holder and two more; CPU 2 has a holder of another user. */
static struct info *shared_host(void)
{
	struct info *info = sound_host();

	info->cpus.claims[0] = (struct info_claim){.cpu = 1, .pid = 99, .command = "plx-ping"};
	info->cpus.claims[1] = (struct info_claim){.cpu = 2};
	info->cpus.claim_count = 2;
	info->cpus.sharers[0] = (struct info_sharer){.cpu = 1, .pid = 41, .command = "plx-echo"};
	info->cpus.sharers[1] = (struct info_sharer){.cpu = 1, .pid = 42, .command = "plx-perf"};
	info->cpus.sharer_count = 2;
	return info;
}

static void json_of_a_claim_lists_its_sharers(void **state)
{
	struct info *info = shared_host();
	json_t *json = as_json(info, NULL, 0);
	json_t *claims = json_object_get(json_object_get(json, "cpus"), "claims");
	json_t *claim = json_array_get(claims, 0);
	json_t *sharers = json_object_get(claim, "sharers");

	assert_int_equal(json_array_size(claims), 2);
	assert_int_equal(json_integer_value(json_object_get(claim, "cpu")), 1);
	assert_int_equal(json_integer_value(json_object_get(claim, "pid")), 99);
	assert_string_equal(json_string_value(json_object_get(claim, "command")), "plx-ping");
	assert_int_equal(json_array_size(sharers), 2);
	claim = json_array_get(sharers, 1);
	assert_int_equal(json_integer_value(json_object_get(claim, "pid")), 42);
	assert_string_equal(json_string_value(json_object_get(claim, "command")), "plx-perf");
	sharers = json_object_get(json_array_get(claims, 1), "sharers");
	assert_true(json_is_array(sharers));
	assert_int_equal(json_array_size(sharers), 0);
	json_decref(json);
	free(info);
}

/* With nothing of libfabric's: the provider is part of the library. libfabric looks for its own
 * once in a process, and no other test here does. */
static void the_driver_of_this_host_is_always_there(void **state)
{
	struct info *info = sound_host();
	const struct info_driver *shm = NULL;
	json_t *json, *driver;

	assert_int_equal(setenv("FI_PROVIDER", "psm3", 1), 0);
	info_gather_fabric(plx_drivers, &info->fabric);
	assert_int_equal(unsetenv("FI_PROVIDER"), 0);
	assert_int_equal(info->fabric.provider_count, 0);
	for (unsigned i = 0; i < info->fabric.driver_count; i++) {
		if (strcmp(info->fabric.drivers[i].name, "shm") == 0)
			shm = &info->fabric.drivers[i];
		else
			assert_false(info->fabric.drivers[i].available);
	}
	assert_non_null(shm);
	assert_true(shm->available && shm->same_host);
	assert_string_equal(shm->provider, "plx_shm");
	assert_string_equal(shm->domains, "plx_shm");
	assert_non_null(strstr(shm->summary, "shared memory"));
	json = as_json(info, NULL, 0);
	driver = json_array_get(json_object_get(json_object_get(json, "fabric"), "drivers"),
				(size_t)(shm - info->fabric.drivers));
	assert_string_equal(json_string_value(json_object_get(driver, "name")), "shm");
	assert_true(json_is_true(json_object_get(driver, "available")));
	assert_true(json_is_true(json_object_get(driver, "same_host")));
	json_decref(json);
	free(info);
}

static void prints_every_section(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct info *info = shared_host();

	assert_non_null(out);
	info_print(info, out);
	info_print_findings(NULL, 0, out);
	fclose(out);
	static const char *const parts[] = {"\nHost\n",
					    "\nCPUs\n",
					    "\nMemory\n",
					    "\nRDMA\n",
					    "\nDoctor\n  nothing to change\n",
					    "0-3 (4)",
					    "claimed         1 by plx-ping (pid 99)\n",
					    "\n                  1 by plx-echo (pid 41) too",
					    "\n                  1 by plx-perf (pid 42) too",
					    "\n                  2 by a process of another user\n",
					    "64 free",
					    "driver tcp      uses 'net'",
					    "driver shm      uses 'plx_shm' on plx_shm\n",
					    "\n                  the same host\n"};
	for (size_t i = 0; i < PLX_ARRAY_LEN(parts); i++) {
		if (!strstr(text, parts[i]))
			fail_msg("'%s' is missing in:\n%s", parts[i], text);
	}
	free(text);
	free(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_lists_of_cpus),
		cmocka_unit_test(finds_values_by_whole_names),
		cmocka_unit_test_setup_teardown(a_missing_or_long_file_reads_as_empty, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(sees_cpus_cores_and_nodes, make_root, remove_root),
		cmocka_unit_test(reads_claims_from_the_list_of_sockets),
		cmocka_unit_test_setup_teardown(names_the_holder_of_a_claim, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(names_all_who_share_a_claimed_cpu, make_root,
						remove_root),
		cmocka_unit_test(sees_a_claim_of_this_very_process),
		cmocka_unit_test_setup_teardown(reads_huge_pages_by_node_and_size, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(reads_steal_and_clock, make_root, remove_root),
		cmocka_unit_test_setup_teardown(finds_the_least_quota_of_nested_cgroups, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(reads_rdma_devices, make_root, remove_root),
		cmocka_unit_test(the_doctor_leaves_a_sound_host_alone),
		cmocka_unit_test(the_doctor_on_cpus),
		cmocka_unit_test(the_doctor_on_the_kernel),
		cmocka_unit_test(the_doctor_on_memory),
		cmocka_unit_test(the_doctor_on_the_transport),
		cmocka_unit_test(the_gravest_findings_come_first),
		cmocka_unit_test(writes_one_json_object_with_a_schema),
		cmocka_unit_test(json_of_a_claim_lists_its_sharers),
		cmocka_unit_test(the_driver_of_this_host_is_always_there),
		cmocka_unit_test(prints_every_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
