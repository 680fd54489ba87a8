/* SPDX-License-Identifier: BSD-3-Clause */
/* What plx-info shows: a row per value, with its key in the JSON and its place in the text. */
#include "describe.h"

#include <rdma/fabric.h>
#include <string.h>

/* A value of `struct type_`. In the text: further members. */
#define HAS(type_, kind_, key_, member_, ...)       \
	{.kind = INFO_##kind_,                      \
	 .key = (key_),                             \
	 .offset = offsetof(struct type_, member_), \
	 __VA_ARGS__}
#define LIST(type_, key_, member_, count_, of_, ...)                                    \
	HAS(type_, LIST, key_, member_, .count_offset = offsetof(struct type_, count_), \
	    .item_bytes = sizeof(((struct type_ *)NULL)->member_[0]), .of = (of_), __VA_ARGS__)
#define MATCH(item_type_, item_member_, own_type_, own_member_)                  \
	.match = true, .item_offset = offsetof(struct item_type_, item_member_), \
	.own_offset = offsetof(struct own_type_, own_member_)

/* clang-format off */

static const struct info_field quota_fields[] = {
	HAS(plx_cpu_quota, REAL, "cpus", cpus, .before = "", .after = " CPUs", .scale = 1, .digits = 2),
	HAS(plx_cpu_quota, REAL, "period_ms", period_ms, .before = " in every ", .after = " ms", .scale = 1),
	HAS(plx_cpu_quota, NAME, "file", path, .before = " (", .after = ")"),
	{0},
};

static const struct info_field clock_fields[] = {
	HAS(plx_clock_info, POINTER, "source", source, .before = ""),
	HAS(plx_clock_info, BOOL, "invariant", invariant, .before = ", invariant", .missing = ", not invariant"),
	HAS(plx_clock_info, REAL, "hz", hz, .before = ", ", .after = " MHz", .scale = 1e-6, .digits = 3),
	HAS(plx_clock_info, POINTER, "frequency", frequency, .before = " "),
	HAS(plx_clock_info, REAL, "residual_ppm", residual_ppm, .before = " to ", .after = " ppm", .scale = 1,
	    .digits = 1),
	{0},
};

static const struct info_field kernel_fields[] = {
	HAS(info_kernel, NAME, "release", release, .label = "kernel", .before = ""),
	HAS(info_kernel, NAME, "machine", machine, .before = " "),
	HAS(info_kernel, BOOL, "guest", guest, .label = "hypervisor", .before = "yes", .missing = "none seen"),
	HAS(info_kernel, TEXT, "hypervisor", hypervisor, .before = ", "),
	HAS(info_kernel, REAL, "steal", steal, .label = "stolen time", .before = "", .after = " % since boot",
	    .scale = 100, .digits = 2),
	HAS(info_kernel, OBJECT, "cpu_quota", quota, .label = "CPU quota", .before = "", .missing = "none",
	    .of = quota_fields),
	HAS(info_kernel, OBJECT, "clock", clock, .label = "clock", .before = "", .of = clock_fields),
	HAS(info_kernel, TEXT, "clocksource", clocksource, .label = "kernel's clock", .before = "",
	    .missing = "unknown"),
	HAS(info_kernel, NAME, NULL, clocksources, .before = " (has: ", .after = ")"),
	{0},
};

static const struct info_field node_fields[] = {
	HAS(info_node, SIGNED, "node", id, .before = ""),
	HAS(info_node, CPUS, "cpus", cpus, .before = ": CPUs "),
	HAS(info_node, BYTES, "total_bytes", total_bytes, .before = "; "),
	HAS(info_node, BYTES, "free_bytes", free_bytes, .before = ", ", .after = " free"),
	{0},
};

static const struct info_field sharer_fields[] = {
	HAS(info_sharer, COUNT, NULL, cpu, .before = ""),
	HAS(info_sharer, TEXT, "command", command, .before = " by "),
	HAS(info_sharer, KNOWN, "pid", pid, .before = " (pid ", .after = ") too: they take turns"),
	{0},
};

static const struct info_field claim_fields[] = {
	HAS(info_claim, COUNT, "cpu", cpu, .before = ""),
	HAS(info_claim, TEXT, "command", command, .before = " by ", .missing = " by a process of another user"),
	HAS(info_claim, KNOWN, "pid", pid, .before = " (pid ", .after = ")"),
	HAS(info_claim, BOOL, "elsewhere", elsewhere, .before = ", in another network namespace"),
	HAS(info_claim, BOOL, NULL, shared, .before = " too: they take turns"),
	LIST(info_cpus, "sharers", sharers, sharer_count, sharer_fields, .label = "",
	     MATCH(info_sharer, cpu, info_claim, cpu)),
	{0},
};

static const struct info_field cpus_fields[] = {
	HAS(info_cpus, TEXT, "model", model, .label = "model", .before = "", .missing = "unknown"),
	HAS(info_cpus, CPUS, "online", online, .label = "online", .before = "", .missing = "none"),
	HAS(info_cpus, CPUS, "allowed", allowed, .label = "allowed", .before = "", .missing = "none"),
	HAS(info_cpus, CPUS, "one_per_core", one_per_core),
	LIST(info_cpus, "claims", claims, claim_count, claim_fields, .label = "claimed",
	     .missing = "none by Pollux processes"),
	HAS(info_cpus, BOOL, "claims_hidden", claims_hidden, .label = "",
	    .before = "those of other containers are hidden; lcores look from CPU "),
	HAS(info_cpus, TEXT, NULL, first_cpu, .before = ""),
	HAS(info_cpus, COUNT, "cores", core_count, .label = "cores", .before = ""),
	HAS(info_cpus, COUNT, "packages", package_count, .before = ", packages: "),
	LIST(info_cpus, "nodes", nodes, node_count, node_fields, .label = "NUMA nodes"),
	HAS(info_cpus, TEXT, "governor", governor, .label = "governor", .before = "",
	    .missing = "no frequency control"),
	HAS(info_cpus, CPUS, "isolated", isolated, .label = "isolated", .before = "", .missing = "none"),
	HAS(info_cpus, CPUS, "nohz_full", nohz_full, .label = "nohz_full", .before = "", .missing = "none"),
	HAS(info_cpus, CPUS, "rcu_nocbs", rcu_nocbs, .label = "rcu_nocbs", .before = "", .missing = "none"),
	{0},
};

static const struct info_field pool_fields[] = {
	HAS(info_pool, SIGNED, "node", node_id, .before = "node "),
	HAS(info_pool, BYTES, "page_bytes", page_bytes, .before = ", ", .after = " each"),
	HAS(info_pool, LARGE, "total", total, .before = ": ", .after = " reserved"),
	HAS(info_pool, LARGE, "free", free, .before = ", ", .after = " free"),
	{0},
};

static const struct info_field memory_fields[] = {
	HAS(info_memory, BYTES, "total_bytes", total_bytes, .label = "in all", .before = ""),
	HAS(info_memory, BYTES, "available_bytes", available_bytes, .before = ", ", .after = " available"),
	LIST(info_memory, "hugepages", pools, pool_count, pool_fields, .label = "huge pages",
	     .missing = "this kernel has none"),
	HAS(info_memory, TEXT, "transparent_hugepages", thp, .label = "transparent", .before = "",
	    .missing = "not in this kernel"),
	HAS(info_memory, BOOL, "numa_balancing", numa_balancing),
	HAS(info_memory, BYTES, "memlock_bytes", memlock_bytes, .label = "locked memory", .before = "limit ",
	    .missing = "no limit"),
	HAS(info_memory, BOOL, "memlock_exempt", memlock_exempt,
	    .before = "; this process has CAP_IPC_LOCK and is exempt"),
	HAS(info_memory, LARGE, "nofile", nofile, .label = "descriptors", .before = "limit ",
	    .missing = "no limit"),
	{0},
};

static const struct info_field driver_fields[] = {
	HAS(info_driver, POINTER, "name", name, .before = ""),
	HAS(info_driver, BOOL, "available", available, .before = ": uses ", .missing = ": not here, no "),
	HAS(info_driver, NAME, "provider", provider, .before = "'", .after = "'"),
	HAS(info_driver, NAME, "domains", domains, .before = " on ", .missing = " with connected endpoints"),
	HAS(info_driver, BOOL, "same_host", same_host),
	HAS(info_driver, POINTER, "summary", summary, .label = "", .before = ""),
	{0},
};

static const struct info_field provider_fields[] = {
	HAS(info_provider, NAME, "name", name, .before = "", .after = ":"),
	HAS(info_provider, BOOL, "msg", msg, .before = " MSG"),
	HAS(info_provider, BOOL, "rdm", rdm, .before = " RDM"),
	HAS(info_provider, BOOL, "dgram", dgram, .before = " DGRAM"),
	HAS(info_provider, NAME, "domains", domains, .before = " on "),
	{0},
};

static const struct info_field fabric_fields[] = {
	HAS(info_fabric, NAME, "version", version_text, .label = "version", .before = ""),
	LIST(info_fabric, "drivers", drivers, driver_count, driver_fields, .label = "drivers"),
	LIST(info_fabric, "providers", providers, provider_count, provider_fields, .label = "providers"),
	{0},
};

static const struct info_field gid_fields[] = {
	HAS(info_gid, COUNT, "index", index, .before = "GID "),
	HAS(info_gid, NAME, "gid", text, .before = ": "),
	HAS(info_gid, NAME, "type", type, .before = ", "),
	HAS(info_gid, TEXT, "netdev", netdev, .before = " on "),
	{0},
};

static const struct info_field port_fields[] = {
	HAS(info_port, COUNT, "port", seen.number, .before = "port "),
	HAS(info_port, BOOL, "active", seen.active),
	HAS(info_port, STATE, "state", seen.state, .before = ": "),
	HAS(info_port, STATE, "phys_state", seen.phys_state, .before = " (", .after = ")"),
	HAS(info_port, TEXT, "link_layer", seen.link_layer, .before = ", "),
	HAS(info_port, TEXT, "rate", seen.rate, .before = ", "),
	HAS(info_port, REAL, "speed_gbps", seen.speed_gbps),
	HAS(info_port, KNOWN, "mtu_bytes", mtu_bytes, .before = ", MTU "),
	HAS(info_port, KNOWN, "mtu_max_bytes", mtu_max_bytes, .before = " of "),
	HAS(info_port, TEXT, "netdev", seen.netdev, .label = "", .before = "on ",
	    .missing = "on an unknown interface"),
	HAS(info_port, WORDS, "addresses", addresses, .before = ": ", .missing = ": no IP address"),
	LIST(info_device, "gids", details.gids, details.gid_count, gid_fields, .label = "",
	     MATCH(info_gid, port, info_port, seen.number)),
	{0},
};

static const struct info_field device_fields[] = {
	HAS(info_device, NAME, "name", seen.name, .before = ""),
	HAS(info_device, POINTER, "transport", transport),
	HAS(info_device, POINTER, NULL, protocol, .before = ": transport "),
	HAS(info_device, SIGNED, "node", seen.node),
	HAS(info_device, NATURAL, NULL, seen.node, .before = ", NUMA node ", .missing = ", NUMA node unknown"),
	HAS(info_device, TEXT, "cpus", cpus, .before = ", CPUs "),
	HAS(info_device, BOOL, "usable", usable, .label = "", .before = "usable"),
	HAS(info_device, NATURAL, "inline_max_bytes", inline_max_bytes, .before = "; inline up to ",
	    .after = " bytes"),
	HAS(info_device, KNOWN, "max_sge", details.max_sge, .before = ", ", .after = " pieces"),
	HAS(info_device, KNOWN, "max_cqe", details.max_cqe, .before = ", ", .after = " completions a queue"),
	HAS(info_device, POINTER, "unusable", unusable, .label = "", .before = "not usable: "),
	LIST(info_device, "ports", ports, seen.port_count, port_fields, .label = ""),
	{0},
};

static const char *const file_words[] = {"missing", "closed", "open"};

static const struct info_field finding_fields[] = {
	HAS(info_finding, CHOICE, "severity", severity, .words = info_severity_names),
	HAS(info_finding, POINTER, "id", id),
	HAS(info_finding, NAME, "seen", seen),
	HAS(info_finding, POINTER, "why", why),
	HAS(info_finding, TEXT, "command", command),
	{0},
};

const struct info_field info_fields[] = {
	HAS(info, COUNT, "schema", schema),
	HAS(info, POINTER, "pollux", version),
	HAS(info, OBJECT, "kernel", kernel, .heading = "Host", .of = kernel_fields),
	HAS(info, OBJECT, "cpus", cpus, .heading = "CPUs", .of = cpus_fields),
	HAS(info, OBJECT, "memory", memory, .heading = "Memory", .of = memory_fields),
	HAS(info, OBJECT, "fabric", fabric, .heading = "libfabric", .of = fabric_fields),
	HAS(info, CHOICE, "rdma_cm", rdma.cm, .heading = "RDMA", .label = "rdma_cm", .before = "",
	    .words = file_words),
	LIST(info, "rdma", rdma.devices, rdma.device_count, device_fields, .label = "devices", .missing = "none"),
	HAS(info, KNOWN, NULL, rdma.device_more, .label = "", .before = "and ", .after = " more"),
	LIST(info, "doctor", findings, finding_count, finding_fields),
	{0},
};

/* clang-format on */

/* Values that are made of others ------------------------------------------------------------- */

/* InfiniBand's transport over Ethernet has another name. */
static const char *protocol_of(const struct plx_rdma_device *device)
{
	if (device->transport == PLX_RDMA_IB &&
	    strcmp(device->ports[0].link_layer, "Ethernet") == 0)
		return "RoCE";
	return plx_rdma_transport_name(device->transport);
}

static void complete_device(const struct info_cpus *cpus, struct info_device *device)
{
	const struct info_details *details = &device->details;

	device->transport = plx_rdma_transport_name(device->seen.transport);
	device->protocol = protocol_of(&device->seen);
	device->inline_max_bytes = device->usable ? details->inline_max_bytes : -1;
	device->cpus[0] = '\0';
	for (unsigned i = 0; i < cpus->node_count; i++)
		if (cpus->nodes[i].id == device->seen.node)
			plx_cpuset_format(&cpus->nodes[i].cpus, device->cpus, sizeof(device->cpus));
	for (unsigned i = 0; i < device->seen.port_count; i++) {
		struct info_port *port = &device->ports[i];

		port->seen = device->seen.ports[i];
		if (port->seen.speed_gbps <= 0)
			port->seen.speed_gbps = -1;
		port->mtu_bytes = details->ports[i].mtu_bytes;
		port->mtu_max_bytes = details->ports[i].mtu_max_bytes;
	}
}

static void complete_cpus(struct info_cpus *cpus)
{
	cpus->first_cpu[0] = '\0';
	if (cpus->claims_hidden)
		snprintf(cpus->first_cpu, sizeof(cpus->first_cpu), "%u",
			 plx_cpu_first(NULL, &cpus->allowed));
	for (unsigned i = 0; i < cpus->claim_count; i++)
		cpus->claims[i].shared = i && cpus->claims[i - 1].cpu == cpus->claims[i].cpu;
}

void info_complete(struct info *info)
{
	info->schema = INFO_JSON_SCHEMA;
	info->version = plx_version();
	if (info->kernel.quota.cpus <= 0)
		info->kernel.quota.cpus = -1;
	complete_cpus(&info->cpus);
	snprintf(info->fabric.version_text, sizeof(info->fabric.version_text), "%u.%u",
		 FI_MAJOR(info->fabric.version), FI_MINOR(info->fabric.version));
	info->rdma.device_more = info->rdma.device_total - info->rdma.device_count;
	for (unsigned i = 0; i < info->rdma.device_count; i++)
		complete_device(&info->cpus, &info->rdma.devices[i]);
	info->finding_count = info_doctor(info, info->findings);
}
