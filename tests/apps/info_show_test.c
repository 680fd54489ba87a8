/* SPDX-License-Identifier: BSD-3-Clause */
/* How plx-info shows what it found: as JSON, and as text. */
#include "info_fixture.h"

#include "plx_fabric_driver.h"

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

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
 * once in a process, and no other test of the program does. */
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
		"\n                  2 by a process of another user\n",
		"64 free",
		"driver tcp      uses 'net'",
		"driver shm      uses 'plx_shm' on plx_shm; an idle lcore sleeps on it\n",
		"\n                  the same host\n"};
	for (size_t i = 0; i < PLX_ARRAY_LEN(parts); i++) {
		if (!strstr(text, parts[i]))
			fail_msg("'%s' is missing in:\n%s", parts[i], text);
	}
	free(text);
	free(info);
}

int info_show_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_one_json_object_with_a_schema),
		cmocka_unit_test(json_of_a_claim_lists_its_sharers),
		cmocka_unit_test(the_driver_of_this_host_is_always_there),
		cmocka_unit_test(prints_every_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
