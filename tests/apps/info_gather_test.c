/* SPDX-License-Identifier: BSD-3-Clause */
/* What plx-info reads about CPUs, memory, the kernel and RDMA devices. */
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

PLX_TEST(reads_lists_of_cpus)
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

PLX_TEST(finds_values_by_whole_names)
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

	put("/proc/self/cgroup", "3:cpu,cpuacct:/x\n1:name=systemd:/\n");
	put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
	assert_true(quota_cpus(kernel) == 0);
	put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "20000\n");
	put("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "10000\n");
	assert_true(quota_cpus(kernel) == 2);
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

	put("/proc/self/cgroup", "3:cpu:/\n");
	assert_true(quota_cpus(kernel) == 0.5);
	assert_string_equal(kernel->quota.path, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
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

MADE_UP_TEST(counts_devices_beyond_the_room)
{
	struct info_rdma *rdma = &info->rdma;
	char name[128];

	for (unsigned i = 0; i < INFO_DEVICES_MAX + 3; i++) {
		snprintf(name, sizeof(name), "/sys/class/infiniband/mlx5_%u/node_type", i);
		put(name, "1: CA\n");
	}
	info_gather_rdma(root, rdma);
	assert_int_equal(rdma->device_count, INFO_DEVICES_MAX);
	assert_int_equal(rdma->device_total, INFO_DEVICES_MAX + 3);
}

/* The text says why a device cannot be used: no driver, or no permission. */
PLX_TEST(a_missing_device_is_not_usable)
{
	struct info_rdma *rdma = &info->rdma;

	*rdma = (struct info_rdma){.device_count = 1};
	rdma->devices[0].seen = (struct plx_rdma_device){.name = "plx_none0", .node = 1};
	info_probe_rdma(rdma);
	assert_false(rdma->devices[0].usable);
	if (rdma->devices[0].error != -EOPNOTSUPP) { /* that is: built without libibverbs */
		assert_int_equal(rdma->devices[0].error, -ENXIO);
		assert_non_null(strstr(rdma->devices[0].unusable, "modprobe ib_uverbs"));
	}
	assert_int_equal(rdma->devices[0].seen.node, 1);
}

PLX_TEST(a_device_that_cannot_be_opened_has_a_remedy)
{
	struct plx_rdma_device device = {.name = "plx_none0"};
	struct info_details details;

	if (info_probe_device(&device, &details) == -EOPNOTSUPP)
		skip(); /* built without libibverbs: see info_no_libibverbs_test.c */
	assert_fails(info_probe_device(&device, &details), -ENXIO,
		     "RDMA device plx_none0: user space has no way to it, as the kernel module "
		     "ib_uverbs is not loaded; modprobe ib_uverbs");
	strcpy(device.uverbs, "uverbs9999");
	assert_fails(info_probe_device(&device, &details), -ENOENT,
		     "/dev/infiniband/uverbs9999: No such file or directory; give the "
		     "container the devices");
	strcpy(device.uverbs, "../null"); /* an existing file that is no device file */
	if (access("/dev/infiniband", F_OK) == 0) {
		assert_fails(info_probe_device(&device, &details), -ENODEV,
			     "libibverbs has no driver for it; install ibverbs-providers");
	}
}

/* If there is a device, it answers or the error has the reason. */
PLX_TEST(the_devices_of_this_host_answer)
{
	struct plx_rdma_device devices[8];
	unsigned count = plx_rdma_devices(NULL, devices, PLX_ARRAY_LEN(devices));

	for (unsigned i = 0; i < count && i < PLX_ARRAY_LEN(devices); i++) {
		struct info_details details = {0};
		int rc = info_probe_device(&devices[i], &details);

		assert_int_equal(plx_device_node(devices[i].name), devices[i].node);
		if (rc)
			assert_error_has(devices[i].name);
		else
			assert_true(details.max_sge > 0 && details.max_cqe > 0);
	}
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

PLX_TEST(addresses_that_do_not_fit_are_omitted_whole)
{
	struct info_rdma *rdma = &info->rdma;
	struct address address;
	struct info_device *device;

	device = two_port_device(rdma);
	make_address(&address, "eth2", "2001:db8:1111:2222:3333:4444:5555:6666", IFF_UP, NULL);
	for (int i = 0; i < 9; i++)
		info_take_addresses(&address.entry, rdma);
	assert_int_equal(strlen(device->addresses[1]) % 39, 38);
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

int info_gather_tests(void)
{
	return plx_test_run("tests", NULL, NULL);
}
