/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-info's output: as JSON, and as text. */
#include "info_fixture.h"

#include "json_has.h"
#include "plx_fabric_driver.h"

/* The output of info_print_json, parsed. */
static json_t *as_json(const struct info_finding *findings, unsigned count)
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

PLX_TEST(writes_one_json_object_with_a_schema)
{
	struct info_finding findings[INFO_FINDINGS_MAX];

	sound_host();
	info->memory.nofile = 1024;
	info->memory.memlock_bytes = UINT64_MAX;
	info->rdma.device_count = 1;
	info->rdma.devices[0].seen = (struct plx_rdma_device){.name = "mlx5_0", .node = -1};
	unsigned count = info_doctor(info, findings, INFO_FINDINGS_MAX);
	json_t *json = as_json(findings, count);
	json_t *doctor = json_object_get(json, "doctor");

	assert_json_has(json,
			"{'schema': %d, 'pollux': '%s', 'cpus': {'online': '0-3'}, "
			"'memory': {'memlock_bytes': null, 'nofile': 1024}}",
			INFO_JSON_SCHEMA, plx_version());
	assert_int_equal(json_array_size(doctor), count);
	assert_json_has(json_array_get(doctor, 0), "{'id': 'rdma-driver'}");
	json_decref(json);
}

/* CPU 1 has an owner and two sharers; CPU 2 belongs to another user. */
static void shared_host(void)
{
	sound_host();
	info->cpus.claims[0] = (struct info_claim){.cpu = 1, .pid = 99, .command = "plx-ping"};
	info->cpus.claims[1] = (struct info_claim){.cpu = 2, .elsewhere = true};
	info->cpus.claim_count = 2;
	info->cpus.sharers[0] = (struct info_sharer){.cpu = 1, .pid = 41, .command = "plx-echo"};
	info->cpus.sharers[1] = (struct info_sharer){.cpu = 1, .pid = 42, .command = "plx-perf"};
	info->cpus.sharer_count = 2;
}

PLX_TEST(json_of_a_claim_lists_its_sharers)
{
	shared_host();
	json_t *json = as_json(NULL, 0);

	assert_json_has(json, "{'cpus': {'claims': ["
			      "{'cpu': 1, 'pid': 99, 'command': 'plx-ping', "
			      "'sharers': [{}, {'pid': 42, 'command': 'plx-perf'}]}, "
			      "{'sharers': [], 'elsewhere': true}], 'claims_hidden': false}}");
	json_decref(json);
}

/* Without libfabric's providers, because shm is part of the library. libfabric probes once per
 * process, and no other test of this program triggers that. */
PLX_TEST(the_driver_for_this_host_is_always_available)
{
	sound_host();
	const struct info_driver *shm = NULL;
	json_t *json;

	assert_int_equal(setenv("FI_PROVIDER", "psm3", 1), 0);
	info_gather_fabric(plx_drivers, &info->fabric);
	assert_int_equal(unsetenv("FI_PROVIDER"), 0);
	assert_int_equal(info->fabric.provider_count, 0);
	for (unsigned i = 0; i < info->fabric.driver_count; i++) {
		const char *name = info->fabric.drivers[i].name;

		if (strcmp(name, "shm") == 0)
			shm = &info->fabric.drivers[i];
		assert_int_equal(info->fabric.drivers[i].available,
				 strcmp(name, "shm") == 0 || strcmp(name, "tcp") == 0);
	}
	assert_non_null(shm);
	assert_true(shm->available && shm->same_host);
	assert_string_equal(shm->provider, "plx_shm");
	assert_string_equal(shm->domains, "plx_shm");
	assert_non_null(strstr(shm->summary, "shared memory"));
	json = as_json(NULL, 0);
	assert_json_has(json_array_get(json_object_get(json_object_get(json, "fabric"), "drivers"),
				       (size_t)(shm - info->fabric.drivers)),
			"{'name': 'shm', 'available': true, 'same_host': true}");
	json_decref(json);
}

PLX_TEST(json_of_a_device_has_all_that_is_known)
{
	sound_rdma_host();
	json_t *json = as_json(NULL, 0);

	assert_json_has(json,
			"{'rdma_cm': 'open', 'rdma': [{'name': 'mlx5_0', "
			"'transport': 'InfiniBand', 'node': 0, 'cpus': '0-3', 'usable': true, "
			"'unusable': null, 'inline_max_bytes': 1020, 'ports': [{'port': 1, "
			"'active': true, 'state': '4: ACTIVE', 'speed_gbps': 100.0, "
			"'mtu_bytes': 1024, 'mtu_max_bytes': 4096, 'netdev': 'eth1', "
			"'addresses': ['10.0.0.1', 'fe80::1'], 'gids': [{'index': 3, "
			"'gid': '::ffff:10.0.0.1', 'type': 'RoCE v2'}]}]}]}");
	json_decref(json);
}

PLX_TEST(json_of_a_device_is_null_for_unknown_values)
{
	sound_rdma_host();
	info->rdma.devices[0] = (struct info_device){
		.seen = {.name = "mlx5_0", .node = -1, .port_count = 1},
		.unusable = "RDMA device mlx5_0: no permission"};
	json_t *json = as_json(NULL, 0);

	assert_json_has(json, "{'rdma': [{'node': -1, 'usable': false, 'cpus': null, "
			      "'unusable': 'RDMA device mlx5_0: no permission', "
			      "'inline_max_bytes': null, 'max_sge': null, 'max_cqe': null, "
			      "'ports': [{'state': null, 'link_layer': null, 'rate': null, "
			      "'netdev': null, 'speed_gbps': null, 'mtu_bytes': null, "
			      "'mtu_max_bytes': null, 'gids': []}]}]}");
	json_decref(json);
}

/* The text must contain each part. */
static void assert_prints(const char *const *parts, size_t count)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	info_print(info, out);
	info_print_findings(NULL, 0, out);
	fclose(out);
	for (size_t i = 0; i < count; i++) {
		if (!strstr(text, parts[i]))
			fail_msg("'%s' is missing in:\n%s", parts[i], text);
	}
	free(text);
}

PLX_TEST(prints_rdma_devices_for_people)
{
	static const char *const parts[] = {
		"  connections     possible\n",
		"  mlx5_0          transport RoCE, NUMA node 0 (CPUs 0-3)\n",
		"    usable; inline up to 1020 bytes, 30 pieces, 4194303 completions a queue\n",
		"    port 1: ACTIVE (LinkUp), Ethernet, 100 Gb/sec (4X EDR), MTU 1024 of 4096\n",
		"      on eth1: 10.0.0.1 fe80::1\n",
		"      GID 3: ::ffff:10.0.0.1, RoCE v2 on eth1\n",
	};

	sound_rdma_host();
	assert_prints(parts, PLX_ARRAY_LEN(parts));
}

PLX_TEST(prints_why_rdma_devices_are_unusable)
{
	static const char *const parts[] = {
		"  connections     no permission for /dev/infiniband/rdma_cm\n",
		"  mlx5_0          transport InfiniBand, NUMA node unknown\n",
		"    not usable: there is no driver\n",
		"      on ib0: no IP address\n",
		"    and 2 more\n",
		"limit 8 MiB; CAP_IPC_LOCK lifts it\n",
	};
	sound_rdma_host();
	struct info_device *device = &info->rdma.devices[0];

	info->memory.memlock_bytes = 8 << 20;
	info->memory.memlock_exempt = true;
	info->rdma.cm = INFO_FILE_CLOSED;
	info->rdma.device_total = 3;
	device->usable = false;
	device->seen.node = -1;
	strcpy(device->seen.ports[0].link_layer, "InfiniBand");
	strcpy(device->seen.ports[0].netdev, "ib0");
	strcpy(device->unusable, "there is no driver");
	device->addresses[0][0] = '\0';
	assert_prints(parts, PLX_ARRAY_LEN(parts));
}

PLX_TEST(prints_every_section)
{
	static const char *const parts[] = {
		"\nHost\n",
		"\nCPUs\n",
		"\nMemory\n",
		"\nRDMA\n",
		"\nDoctor\n  nothing to change\n",
		"0-3 (4)",
		"claimed         1 by plx-ping (pid 99)\n",
		"\n                  1 by plx-echo (pid 41) too",
		"\n                  1 by plx-perf (pid 42) too",
		" 2 by a process of another user, in another network namespace\n",
		"64 free",
		"driver tcp      uses 'net'",
		"driver shm      uses 'plx_shm' on plx_shm\n",
		"\n                  the same host\n",
	};

	shared_host();
	assert_prints(parts, PLX_ARRAY_LEN(parts));
}

int info_show_tests(void)
{
	return plx_test_run("tests", NULL, NULL);
}
