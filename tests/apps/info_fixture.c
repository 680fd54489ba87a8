/* SPDX-License-Identifier: BSD-3-Clause */
#include "info_fixture.h"

char root[FOLDER_BYTES];

static struct info host, sound;

struct info *const info = &host;

int make_root(void **state)
{
	memset(info, 0xa5, sizeof(*info)); /* what is gathered must be complete */
	folder_make(root);
	return 0;
}

int remove_root(void **state)
{
	return folder_remove(root);
}

void put(const char *name, const char *text)
{
	folder_put(root, name, text);
}

void sound_host(void)
{
	memset(info, 0, sizeof(*info));
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
	sound = host;
}

void sound_rdma_host(void)
{
	struct info_device *device = &info->rdma.devices[0];

	sound_host();
	info->rdma.device_count = info->rdma.device_total = 1;
	info->rdma.cm = INFO_FILE_OPEN;
	info->cpus.nodes[0].cpus = info->cpus.online;
	device->usable = device->has_address = true;
	device->seen = (struct plx_rdma_device){.name = "mlx5_0",
						.transport = PLX_RDMA_IB,
						.uverbs = "uverbs0",
						.port_count = 1,
						.ports[0] = {.number = 1,
							     .active = true,
							     .speed_gbps = 100,
							     .state = "4: ACTIVE",
							     .phys_state = "5: LinkUp",
							     .link_layer = "Ethernet",
							     .rate = "100 Gb/sec (4X EDR)",
							     .netdev = "eth1"}};
	device->details = (struct info_details){.inline_max_bytes = 1020,
						.max_sge = 30,
						.max_cqe = 4194303,
						.ports[0] = {1024, 4096},
						.gid_count = 1,
						.gids[0] = {.port = 1,
							    .index = 3,
							    .text = "::ffff:10.0.0.1",
							    .type = "RoCE v2",
							    .netdev = "eth1"}};
	snprintf(device->ports[0].addresses, sizeof(device->ports[0].addresses),
		 "10.0.0.1 fe80::1");
	sound = host;
}

void restore_host(void)
{
	host = sound;
}

json_t *as_json(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *json;

	assert_non_null(out);
	info_complete(info);
	assert_int_equal(info_print_json(info, out), 0);
	fclose(out);
	json = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(json);
	return json;
}
