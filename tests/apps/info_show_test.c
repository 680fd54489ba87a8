/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-info's output: as JSON, and as text, both from one description. */
#include "info_fixture.h"

#include "plx_fabric_driver.h"

/* The text must contain each part. */
static void assert_prints(const char *const *parts, size_t count)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	info_complete(info);
	info_print(info, out);
	info_print_findings(info, out);
	fclose(out);
	for (size_t i = 0; i < count; i++) {
		if (!strstr(text, parts[i]))
			fail_msg("'%s' is missing in:\n%s", parts[i], text);
	}
	free(text);
}

#define ASSERT_PRINTS(...)                                \
	assert_prints((const char *const[]){__VA_ARGS__}, \
		      sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* CPU 1 has an owner and two sharers; CPU 2 belongs to another user. */
static void shared_host(void)
{
	sound_host();
	info->memory.nofile = 1024;
	info->cpus.claims[0] = (struct info_claim){.cpu = 1, .pid = 99, .command = "plx-ping"};
	info->cpus.claims[1] = (struct info_claim){.cpu = 2, .elsewhere = true};
	info->cpus.claim_count = 2;
	info->cpus.sharers[0] = (struct info_sharer){.cpu = 1, .pid = 41, .command = "plx-echo"};
	info->cpus.sharers[1] = (struct info_sharer){.cpu = 1, .pid = 42, .command = "plx-perf"};
	info->cpus.sharer_count = 2;
}

PLX_TEST(a_host_is_one_json_object)
{
	shared_host();
	ASSERT_JSON(
		"{'schema': %d, 'pollux': '%s', 'kernel': {'cpu_quota': null, 'hypervisor': null, "
		"'clock': {'source': 'tsc'}}, 'cpus': {'online': '0-3', 'nohz_full': '', "
		"'claims_hidden': false, 'claims': ["
		"{'cpu': 1, 'pid': 99, 'command': 'plx-ping', 'elsewhere': false, "
		"'sharers': [{}, {'pid': 42, 'command': 'plx-perf'}]}, "
		"{'sharers': [], 'pid': null, 'command': null, 'elsewhere': true}]}, "
		"'memory': {'memlock_bytes': null, 'nofile': 1024, 'hugepages': ["
		"{'node': 0, 'page_bytes': 2097152, 'total': 64}]}, "
		"'doctor': [{'severity': 'note', 'id': 'nofile'}]}",
		INFO_JSON_SCHEMA, plx_version());
}

PLX_TEST(a_host_is_printed_in_sections)
{
	shared_host();
	info->kernel.quota = (struct plx_cpu_quota){.cpus = 1.5, .period_ms = 100, .path = "/f"};
	info->memory.memlock_bytes = 8 << 20;
	info->memory.memlock_exempt = true;
	ASSERT_PRINTS("\nHost\n", "CPU quota       1.50 CPUs in every 100 ms (/f)\n",
		      "hypervisor      none seen\n", "\nCPUs\n", "online          0-3 (4)\n",
		      "nohz_full       none\n", "claimed         1 by plx-ping (pid 99)\n",
		      "                    1 by plx-echo (pid 41) too: they take turns\n",
		      "                    1 by plx-perf (pid 42) too: they take turns\n",
		      " 2 by a process of another user, in another network namespace\n",
		      "\nMemory\n", "node 0, 2 MiB each: 64 reserved, 64 free\n",
		      "limit 8 MiB; this process has CAP_IPC_LOCK and is exempt\n",
		      "descriptors     limit 1024\n", "drivers         tcp: uses 'net'",
		      "                  shm: uses 'plx_shm' on plx_shm\n",
		      "                    the same host\n", "\nRDMA\n",
		      "\nDoctor\n  !! problem: ");
	sound_host();
	ASSERT_PRINTS("\nDoctor\n  nothing to change\n");
}

PLX_TEST(control_characters_are_escaped_once)
{
	shared_host();
	strcpy(info->cpus.claims[0].command, "\\x1b"); /* as info_read_command escapes it */
	strcpy(info->kernel.clocksource, "t\x1b[31m");
	info->kernel.quota = (struct plx_cpu_quota){.cpus = 1.5, .path = "/f\n"};
	ASSERT_JSON("{'kernel': {'clocksource': 't\\\\x1b[31m', 'cpu_quota': {'file': '/f\\n'}}, "
		    "'cpus': {'claims': [{'command': '\\\\x1b'}, {}]}}");
	ASSERT_PRINTS("claimed         1 by \\x1b (pid 99)\n", "t\\x1b[31m", " (/f\\x0a)\n");
}

static const struct plx_fabric_driver *find(const char *name)
{
	const struct plx_fabric_driver *const *at = plx_drivers;

	while (strcmp((*at)->name, name) != 0)
		at++;
	return *at;
}

/* Without libfabric's providers, because shm is part of the library. libfabric probes once per
 * process, and no other test of this program triggers that. */
PLX_TEST(the_drivers_of_pollux_are_always_available)
{
	/* A build without libibverbs has no such driver. */
	static const struct plx_fabric_driver verbs = {.name = "verbs", .provider = "verbs"};
	const struct plx_fabric_driver *const drivers[] = {find("tcp"), find("shm"), &verbs, NULL};

	sound_host();
	assert_int_equal(setenv("FI_PROVIDER", "psm3", 1), 0);
	info_gather_fabric(drivers, &info->fabric);
	assert_int_equal(unsetenv("FI_PROVIDER"), 0);
	assert_int_equal(info->fabric.provider_count, 0);
	ASSERT_JSON("{'fabric': {'providers': [], 'drivers': ["
		    "{'name': 'tcp', 'available': true, 'same_host': false}, "
		    "{'name': 'shm', 'available': true, 'same_host': true, 'provider': 'plx_shm', "
		    "'domains': 'plx_shm'}, {'name': 'verbs', 'available': false}]}}");
	ASSERT_PRINTS("verbs: not here, no 'verbs' with connected endpoints\n");
}

PLX_TEST(a_device_shows_all_that_is_known)
{
	sound_rdma_host();
	ASSERT_JSON("{'rdma_cm': 'open', 'rdma': [{'name': 'mlx5_0', "
		    "'transport': 'InfiniBand', 'node': 0, 'cpus': '0-3', 'usable': true, "
		    "'unusable': null, 'inline_max_bytes': 1020, 'ports': [{'port': 1, "
		    "'active': true, 'state': '4: ACTIVE', 'speed_gbps': 100.0, "
		    "'mtu_bytes': 1024, 'mtu_max_bytes': 4096, 'netdev': 'eth1', "
		    "'addresses': ['10.0.0.1', 'fe80::1'], 'gids': [{'index': 3, "
		    "'gid': '::ffff:10.0.0.1', 'type': 'RoCE v2'}]}]}]}");
	ASSERT_PRINTS(
		"  rdma_cm         open\n",
		"  devices         mlx5_0: transport RoCE, NUMA node 0, CPUs 0-3\n",
		"  usable; inline up to 1020 bytes, 30 pieces, 4194303 completions a queue\n",
		"  port 1: ACTIVE (LinkUp), Ethernet, 100 Gb/sec (4X EDR), MTU 1024 of 4096\n",
		"    on eth1: 10.0.0.1 fe80::1\n", "    GID 3: ::ffff:10.0.0.1, RoCE v2 on eth1\n");
}

PLX_TEST(a_device_shows_what_is_unknown)
{
	sound_rdma_host();
	info->rdma.device_total = 3;
	info->rdma.devices[0] = (struct info_device){
		.seen = {.name = "mlx5_0", .node = -1, .transport = PLX_RDMA_IB, .port_count = 1},
		.unusable = "there is no driver"};
	ASSERT_JSON("{'rdma': [{'node': -1, 'usable': false, 'cpus': null, "
		    "'unusable': 'there is no driver', 'max_sge': null, "
		    "'ports': [{'state': null, 'speed_gbps': null, 'addresses': []}]}]}");
	ASSERT_PRINTS("mlx5_0: transport InfiniBand, NUMA node unknown\n",
		      "  not usable: there is no driver\n", "    and 2 more\n");
}

PLX_TEST_MAIN()
