/* SPDX-License-Identifier: BSD-3-Clause */
/* What plx-info reads about CPUs and their claims, memory, the kernel and RDMA devices. */
#include "info_fixture.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

static void assert_cpus(const struct plx_cpuset *set, const char *list)
{
	char text[256];

	assert_string_equal(plx_cpuset_format(set, text, sizeof(text)), list);
}

PLX_TEST(reads_texts_of_the_kernel)
{
	static const char *const bad[] = {"", "x", "1-", "3-1", "1,", "0-4096", "-1"};
	struct plx_cpuset set;
	char value[32];

	assert_true(info_parse_cpulist("0-2,5,7-8", &set));
	assert_cpus(&set, "0-2,5,7-8");
	for (size_t i = 0; i < PLX_ARRAY_LEN(bad); i++) {
		if (info_parse_cpulist(bad[i], &set) || plx_cpuset_count(&set) != 0)
			fail_msg("'%s' was taken for a list of CPUs", bad[i]);
	}
	assert_true(info_find_value("xMemFree: 1\nMemFree:   22 kB\n", "MemFree", false, value,
				    sizeof(value)));
	assert_string_equal(value, "22 kB");
	assert_false(info_find_value("isolcpus_not=1", "isolcpus", true, value, sizeof(value)));
	assert_string_equal(value, "");
}

#define SYS  "/sys/devices/system"
#define NODE SYS "/node/node"
#define IB   "/sys/class/infiniband"

MADE_UP_TEST(a_host_is_read_from_its_files)
{
	static const char *const files[][2] = {
		{"/proc/cpuinfo", "processor\t: 0\nmodel name\t: Made Up 9000\nflags\t: fpu tsc\n"},
		{"/proc/cmdline",
		 "quiet isolcpus=managed_irq,domain,2-3 nohz_full=3 rcu_nocbs=2-3\n"},
		{"/proc/meminfo", "MemTotal:       4096 kB\nMemAvailable:   2048 kB\n"},
		{"/proc/stat", "cpu  50 0 0 15 0 0 0 35 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"},
		{"/proc/sys/kernel/numa_balancing", "1\n"},
		{"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
		{SYS "/cpu/isolated", "2-3\n"},
		{SYS "/cpu/nohz_full", "3\n"},
		{SYS "/cpu/cpu0/cpufreq/scaling_governor", "performance\n"},
		{SYS "/cpu/cpu5/cpufreq/scaling_governor", "powersave\n"},
		{SYS "/clocksource/clocksource0/current_clocksource", "hpet\n"},
		{NODE "1/meminfo", "Node 1 MemTotal: 2048 kB\nNode 1 MemFree:  1024 kB\n"},
		{NODE "1/hugepages/hugepages-2048kB/nr_hugepages", "8\n"},
		{NODE "1/hugepages/hugepages-2048kB/free_hugepages", "5\n"},
		{NODE "0/hugepages/hugepages-1048576kB/nr_hugepages", "1\n"},
		{NODE "0/hugepages/hugepages-2048kB/nr_hugepages", "0\n"},
		{IB "/mlx5_1/ports/1/state", "1: DOWN\n"},
		{IB "/mlx5_0/ports/1/state", "4: ACTIVE\n"},
		{IB "/mlx5_0/device/numa_node", "1\n"},
		{"/dev/infiniband/rdma_cm", ""},
	};
	struct plx_topo *topo;

	for (size_t i = 0; i < PLX_ARRAY_LEN(files); i++)
		put(files[i][0], files[i][1]);
	assert_works(plx_topo_open("synthetic:package:2 numa:1 core:2 pu:2", &topo));
	info_gather_cpus(root, topo, &info->cpus);
	info_gather_memory(root, &info->memory);
	info_gather_kernel(root, &info->kernel);
	info_gather_rdma(root, &info->rdma);
	memset(&info->fabric, 0, sizeof(info->fabric));
	plx_topo_close(topo);

	assert_cpus(&info->cpus.not_governed, "5");
	ASSERT_JSON("{'kernel': {'steal': 0.35, 'cpu_quota': null, 'clocksource': 'hpet'}, "
		    "'cpus': {'model': 'Made Up 9000', 'online': '0-7', 'cores': 4, 'packages': 2, "
		    "'one_per_core': '0,2,4,6', 'isolated': '2-3', 'nohz_full': '3', "
		    "'rcu_nocbs': '2-3', 'governor': 'mixed', 'claims': [], 'nodes': [{}, "
		    "{'node': 1, 'cpus': '4-7', 'total_bytes': 2097152, 'free_bytes': 1048576}]}, "
		    "'memory': {'total_bytes': 4194304, 'available_bytes': 2097152, "
		    "'transparent_hugepages': 'madvise', 'numa_balancing': true, 'hugepages': ["
		    "{'node': 0, 'page_bytes': 2097152, 'total': 0}, "
		    "{'node': 0, 'page_bytes': 1073741824, 'total': 1}, "
		    "{'node': 1, 'page_bytes': 2097152, 'total': 8, 'free': 5}]}, "
		    "'rdma_cm': 'open', 'rdma': ["
		    "{'name': 'mlx5_0', 'node': 1, 'usable': false, 'ports': [{'active': true}]}, "
		    "{'name': 'mlx5_1', 'node': -1, 'ports': [{'active': false}]}]}");
}

#define GROUPS "/sys/fs/cgroup"

MADE_UP_TEST(finds_the_lowest_quota_of_nested_cgroups)
{
	static const struct {
		const char *name, *text; /* the next file */
		double cpus;             /* the quota from then on */
		const char *path;
	} steps[] = {
		{"/proc/self/cgroup", "0::/a/b\n", 0, ""},
		{GROUPS "/a/cpu.max", "50000 100000\n", 0.5, GROUPS "/a/cpu.max"},
		{GROUPS "/a/b/cpu.max", "150000 100000\n", 0.5, GROUPS "/a/cpu.max"},
		{GROUPS "/a/cpu.max", "max 100000\n", 1.5, GROUPS "/a/b/cpu.max"},
		/* Version 1. */
		{"/proc/self/cgroup", "4:cpuset:/\n3:cpu,cpuacct:/a/b\n", 0, ""},
		{GROUPS "/cpu/a/b/cpu.cfs_quota_us", "-1\n", 0, ""},
		{GROUPS "/cpu/a/cpu.cfs_quota_us", "150000\n", 1.5,
		 GROUPS "/cpu/a/cpu.cfs_quota_us"},
		{GROUPS "/cpu/a/cpu.cfs_period_us", "200000\n", 0.75,
		 GROUPS "/cpu/a/cpu.cfs_quota_us"},
		/* In a container the cgroup itself is mounted there. */
		{GROUPS "/cpu/cpu.cfs_quota_us", "50000\n", 0.5, GROUPS "/cpu/cpu.cfs_quota_us"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(steps); i++) {
		put(steps[i].name, steps[i].text);
		info_gather_kernel(root, &info->kernel);
		assert_true(info->kernel.quota.cpus == steps[i].cpus);
		assert_string_equal(info->kernel.quota.path, steps[i].path);
	}
	assert_true(info->kernel.quota.period_ms == 100);
}

static void take_address(const char *netdev, const char *text, unsigned flags)
{
	struct sockaddr_storage storage = {0};
	struct sockaddr_in *four = (void *)&storage;
	struct sockaddr_in6 *six = (void *)&storage;
	struct ifaddrs list = {
		.ifa_name = (char *)netdev, .ifa_flags = flags, .ifa_addr = (void *)&storage};

	if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
		storage.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1)
		storage.ss_family = AF_INET6;
	else
		list.ifa_addr = NULL; /* an interface without an address */
	info_take_addresses(&list, &info->rdma);
}

PLX_TEST(ports_have_the_addresses_of_their_interfaces)
{
	struct info_device *device = &info->rdma.devices[0];

	info->rdma = (struct info_rdma){.device_count = 1};
	device->seen = (struct plx_rdma_device){
		.port_count = 2,
		.ports = {{.number = 1, .netdev = "eth1"},
			  {.number = 2, .active = true, .netdev = "eth2"}}};
	device->details.gid_count = 1;
	device->details.gids[0] = (struct info_gid){.port = 2, .netdev = "eth2.7"};
	take_address("eth1", "10.0.0.1", IFF_UP); /* its port is not active */
	take_address("eth2", "fe80::1", IFF_UP);
	take_address("eth2", "none", IFF_UP);
	take_address("eth2", "10.0.0.3", 0); /* down */
	take_address("eth20", "10.0.0.4", IFF_UP);
	assert_string_equal(device->ports[0].addresses, "10.0.0.1");
	assert_false(device->has_address);

	take_address("eth2.7", "2001:db8::7", IFF_UP); /* a VLAN of the port */
	assert_string_equal(device->ports[1].addresses, "fe80::1 10.0.0.3 2001:db8::7");
	assert_true(device->has_address);
}

MADE_UP_TEST(the_limit_of_locked_memory_may_not_count)
{
	struct info_memory *memory = &info->memory;

	put("/proc/self/status",
	    "Name:\tx\nCapInh:\t0000000000004000\nCapEff:\t0000000000003fff\n");
	info_gather_memory(root, memory);
	assert_false(memory->memlock_exempt);
	put("/proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n");
	info_gather_memory(root, memory);
	assert_true(memory->memlock_exempt);
}

/* Claims of CPUs ---------------------------------------------------------------------------- */

#define HEAD "head\n"
#define POLLUX \
	"7f00-7f01 r--p 0 00:1 9 /lib/libc.so.6\n7f02-7f03 r-xp 0 00:1 9 /lib/libpollux.so.0\n"
#define OTHER "7f00-7f01 r--p 0 00:1 9 /lib/libc.so.6\n"

static void put_of(unsigned pid, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	put(path, text);
}

/* A thread of a fake process; maps: a line of the process's maps. */
static void put_thread(unsigned pid, const char *name, const char *cpus, const char *maps)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "task/%u/comm", pid);
	put_of(pid, path, name);
	snprintf(path, sizeof(path), "task/%u/status", pid);
	snprintf(text, sizeof(text), "Name:\t%s\nCpus_allowed_list:\t%s\n", name, cpus);
	put_of(pid, path, text);
	put_of(pid, "maps", maps);
	put_of(pid, "comm", name);
}

/* The process has the socket by which CPU 1 is claimed. */
static void put_holder(unsigned pid, unsigned socket)
{
	char path[512], target[32];

	put_of(pid, "fd/0", "");
	snprintf(path, sizeof(path), "%s/proc/%u/fd/5", root, pid);
	snprintf(target, sizeof(target), "socket:[%u]", socket);
	assert_int_equal(symlink(target, path), 0);
}

/* Pids that no kernel assigns: this process itself is skipped. A process may choose any name: it
 * must not control a terminal, or break the JSON. */
MADE_UP_TEST(names_all_processes_that_share_a_claimed_cpu)
{
	sound_host();
	put("/proc/net/unix", HEAD "0: 00000002 00000000 00010000 0001 01 77 @pollux/cpu/1\n");
	put_thread(5000001, "\x1b[31mholder", "1-2", POLLUX);
	put_holder(5000001, 77);
	put_thread(5000003, "late", "1", POLLUX);
	put_thread(5000002, "early", "1", POLLUX);
	put_thread(5000004, "stranger", "1", OTHER);
	put_thread(5000006, "anywhere", "0-3", POLLUX);
	info_gather_claims(root, &info->cpus);
	ASSERT_JSON("{'cpus': {'claims': [{'pid': 5000001, 'command': '\\\\x1b[31mholder', "
		    "'sharers': [{'pid': 5000002, 'command': 'early'}, {'pid': 5000003}]}]}}");
}

MADE_UP_TEST(names_the_holder_of_a_claim_in_another_network_namespace)
{
	sound_host();
	put("/proc/net/unix", HEAD);
	put_of(4323, "net/unix", HEAD "0: 00000002 00000000 00010000 0001 01 78 @pollux/cpu/1\n");
	put_of(4323, "comm", "plx-echo\n");
	put_holder(4323, 78);
	info_gather_claims(root, &info->cpus);
	ASSERT_JSON("{'cpus': {'claims': [{'cpu': 1, 'pid': 4323, 'elsewhere': true}]}}");
}

PLX_TEST_MAIN()
