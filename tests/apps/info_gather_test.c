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

MADE_UP_TEST(sees_cpus_cores_and_nodes)
{
	struct plx_topo *topo;
	struct info_cpus *cpus = &info->cpus;

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
}

MADE_UP_TEST(reads_huge_pages_by_node_and_size)
{
	struct info_memory *memory = &info->memory;

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
}

MADE_UP_TEST(reads_steal_and_clock)
{
	struct info_kernel *kernel = &info->kernel;

	put("/proc/stat", "cpu  50 0 0 40 0 0 0 10 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
	put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
	put("/sys/devices/system/clocksource/clocksource0/available_clocksource",
	    "hpet acpi_pm \n");
	info_gather_kernel(root, kernel);
	assert_true(kernel->steal > 0.0999 && kernel->steal < 0.1001);
	assert_string_equal(kernel->clocksource, "hpet");
	assert_string_equal(kernel->clocksources, "hpet acpi_pm");
	assert_true(kernel->clock.hz > 1e6);
	assert_true(kernel->quota.cpus == 0);
}

static double quota_cpus(struct info_kernel *kernel)
{
	info_gather_kernel(root, kernel);
	return kernel->quota.cpus;
}

MADE_UP_TEST(finds_the_lowest_quota_of_nested_cgroups)
{
	struct info_kernel *kernel = &info->kernel;

	put("/proc/self/cgroup", "0::/a/b\n");
	put("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
	put("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
	assert_true(quota_cpus(kernel) == 0.5);
	assert_true(kernel->quota.period_ms == 100);
	assert_string_equal(kernel->quota.path, "/sys/fs/cgroup/a/cpu.max");

	put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
	assert_true(quota_cpus(kernel) == 1.5);
}

MADE_UP_TEST(finds_the_lowest_quota_of_nested_cgroups_v1)
{
	struct info_kernel *kernel = &info->kernel;

	put("/proc/self/cgroup", "4:cpuset:/\n3:cpu,cpuacct:/a/b/c\n");
	put("/sys/fs/cgroup/cpu/a/b/c/cpu.cfs_quota_us", "-1\n");
	put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "300000\n");
	put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n");
	put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
	assert_true(quota_cpus(kernel) == 1.5);
	assert_string_equal(kernel->quota.path, "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us");

	/* In a container the cgroup itself is mounted there. */
	put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
	assert_true(quota_cpus(kernel) == 0.5);
}

MADE_UP_TEST(reads_rdma_devices)
{
	struct info_rdma *rdma = &info->rdma;

	info_gather_rdma(root, rdma);
	assert_int_equal(rdma->device_count, 0);
	assert_int_equal(rdma->cm, INFO_FILE_MISSING);

	put("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
	put("/sys/class/infiniband/mlx5_0/device/numa_node", "1\n");
	put("/dev/infiniband/rdma_cm", "");
	info_gather_rdma(root, rdma);
	assert_int_equal(rdma->device_count, 2);
	assert_int_equal(rdma->device_total, 2);
	assert_int_equal(rdma->cm, INFO_FILE_OPEN);
	assert_string_equal(rdma->devices[0].seen.name, "mlx5_0");
	assert_int_equal(rdma->devices[0].seen.node, 1);
	assert_true(rdma->devices[0].seen.ports[0].active);
	assert_string_equal(rdma->devices[0].seen.ports[0].link_layer, "Ethernet");
	assert_int_equal(rdma->devices[1].seen.node, -1);
	assert_false(rdma->devices[1].seen.ports[0].active);
	assert_false(rdma->devices[0].usable);
}

/* One entry of a getifaddrs list. */
struct address {
	struct ifaddrs entry;
	struct sockaddr_storage storage;
	char netdev[16];
};

static void make_address(struct address *address, const char *netdev, const char *text,
			 unsigned flags, struct address *next)
{
	struct sockaddr_in *four = (void *)&address->storage;
	struct sockaddr_in6 *six = (void *)&address->storage;

	memset(address, 0, sizeof(*address));
	snprintf(address->netdev, sizeof(address->netdev), "%s", netdev);
	address->entry = (struct ifaddrs){.ifa_name = address->netdev,
					  .ifa_flags = flags,
					  .ifa_addr = (void *)&address->storage,
					  .ifa_next = next ? &next->entry : NULL};
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
		address->storage.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1)
		address->storage.ss_family = AF_INET6;
	else
		address->entry.ifa_addr = NULL; /* an interface without an address */
}

static struct info_device *two_port_device(struct info_rdma *rdma)
{
	struct info_device *device = &rdma->devices[0];

	*rdma = (struct info_rdma){.device_count = 1};
	device->seen = (struct plx_rdma_device){
		.port_count = 2,
		.ports = {{.number = 1, .netdev = "eth1"},
			  {.number = 2, .active = true, .netdev = "eth2"}}};
	device->details.gid_count = 1;
	device->details.gids[0] = (struct info_gid){.port = 2, .netdev = "eth2.7"};
	return device;
}

PLX_TEST(ports_have_the_addresses_of_their_interfaces)
{
	struct info_rdma *rdma = &info->rdma;
	struct address list[5];
	struct info_device *device;

	device = two_port_device(rdma);
	make_address(&list[0], "eth1", "10.0.0.1", IFF_UP, &list[1]); /* its port is not active */
	make_address(&list[1], "eth2", "fe80::1", IFF_UP, &list[2]);
	make_address(&list[2], "eth2", "none", IFF_UP, &list[3]);
	make_address(&list[3], "eth2", "10.0.0.3", 0, &list[4]); /* down */
	make_address(&list[4], "eth20", "10.0.0.4", IFF_UP, NULL);
	info_take_addresses(&list[0].entry, rdma);
	assert_string_equal(device->addresses[0], "10.0.0.1");
	assert_string_equal(device->addresses[1], "fe80::1 10.0.0.3");
	assert_false(device->has_address);

	make_address(&list[0], "eth2.7", "2001:db8::7", IFF_UP, NULL); /* a VLAN of the port */
	info_take_addresses(&list[0].entry, rdma);
	assert_string_equal(device->addresses[1], "fe80::1 10.0.0.3 2001:db8::7");
	assert_true(device->has_address);
}

MADE_UP_TEST(the_limit_of_locked_memory_may_not_count)
{
	struct info_memory *memory = &info->memory;

	info_gather_memory(root, memory);
	assert_false(memory->memlock_exempt);
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
static void put_thread(unsigned pid, unsigned tid, const char *name, const char *cpus,
		       const char *maps)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "task/%u/comm", tid);
	put_of(pid, path, name);
	snprintf(path, sizeof(path), "task/%u/status", tid);
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
	struct info_cpus *cpus = &info->cpus;

	memset(cpus, 0, sizeof(*cpus));
	info_parse_cpulist("0-3", &cpus->allowed);
	put("/proc/net/unix", HEAD "0: 00000002 00000000 00010000 0001 01 77 @pollux/cpu/1\n");
	put_thread(5000001, 5000001, "\x1b[31mholder", "1-2", POLLUX);
	put_holder(5000001, 77);
	put_thread(5000003, 5000003, "late", "1", POLLUX);
	put_thread(5000002, 5000002, "early", "1", POLLUX);
	put_thread(5000004, 5000004, "stranger", "1", OTHER);
	put_thread(5000006, 5000006, "anywhere", "0-3", POLLUX);
	info_gather_claims(root, cpus);
	assert_int_equal(cpus->claim_count, 1);
	assert_int_equal(cpus->claims[0].pid, 5000001);
	assert_string_equal(cpus->claims[0].command, "\\x1b[31mholder");
	assert_int_equal(cpus->sharer_count, 2);
	assert_int_equal(cpus->sharers[0].pid, 5000002);
	assert_string_equal(cpus->sharers[0].command, "early");
	assert_int_equal(cpus->sharers[1].pid, 5000003);
}

MADE_UP_TEST(names_the_holder_of_a_claim_in_another_network_namespace)
{
	struct info_cpus *cpus = &info->cpus;

	memset(cpus, 0, sizeof(*cpus));
	put("/proc/net/unix", HEAD);
	put_of(4323, "net/unix", HEAD "0: 00000002 00000000 00010000 0001 01 78 @pollux/cpu/1\n");
	put_of(4323, "comm", "plx-echo\n");
	put_holder(4323, 78);
	info_gather_claims(root, cpus);
	assert_int_equal(cpus->claim_count, 1);
	assert_true(cpus->claims[0].elsewhere);
	assert_int_equal(cpus->claims[0].pid, 4323);
}

PLX_TEST_MAIN()
