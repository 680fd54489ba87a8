/* SPDX-License-Identifier: BSD-3-Clause */
/* For programs: everything as one JSON object. CPU sets are strings in the kernel's list format;
 * unknown values are null. */
#include "info.h"

#include <jansson.h>
#include <rdma/fabric.h>
#include <string.h>

#define LIST_BYTES 4096

/* Invalid UTF-8 is escaped; otherwise there would be no JSON at all. */
static json_t *text(const char *value)
{
	char printable[1024];

	return value[0] ? json_string(plx_printable(value, printable, sizeof(printable)))
			: json_null();
}

static json_t *bytes(uint64_t value)
{
	return value == UINT64_MAX ? json_null() : json_integer((json_int_t)value);
}

static json_t *cpu_list(const struct plx_cpuset *set)
{
	char list[LIST_BYTES];

	if (plx_cpuset_count(set) == 0)
		return json_string("");
	return json_string(plx_cpuset_format(set, list, sizeof(list)));
}

static json_t *nodes_json(const struct info_cpus *cpus)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < cpus->node_count; i++) {
		const struct info_node *node = &cpus->nodes[i];

		json_array_append_new(array, json_pack("{s:i, s:o, s:o, s:o}", "node", node->id,
						       "cpus", cpu_list(&node->cpus), "total_bytes",
						       bytes(node->total_bytes), "free_bytes",
						       bytes(node->free_bytes)));
	}
	return array;
}

static json_t *sharers_json(const struct info_cpus *cpus, unsigned cpu)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < cpus->sharer_count; i++) {
		const struct info_sharer *sharer = &cpus->sharers[i];

		if (sharer->cpu == cpu)
			json_array_append_new(array,
					      json_pack("{s:i, s:o}", "pid", (int)sharer->pid,
							"command", text(sharer->command)));
	}
	return array;
}

static json_t *claims_json(const struct info_cpus *cpus)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < cpus->claim_count; i++) {
		const struct info_claim *claim = &cpus->claims[i];

		json_array_append_new(
			array,
			json_pack("{s:i, s:o, s:o, s:b, s:o}", "cpu", (int)claim->cpu, "pid",
				  claim->pid ? json_integer(claim->pid) : json_null(), "command",
				  text(claim->command), "elsewhere", (int)claim->elsewhere,
				  "sharers", sharers_json(cpus, claim->cpu)));
	}
	return array;
}

static json_t *cpus_json(const struct info_cpus *cpus)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:b}",
			 "model", text(cpus->model), "online", cpu_list(&cpus->online), "allowed",
			 cpu_list(&cpus->allowed), "one_per_core", cpu_list(&cpus->one_per_core),
			 "isolated", cpu_list(&cpus->isolated), "nohz_full",
			 cpu_list(&cpus->nohz_full), "rcu_nocbs", cpu_list(&cpus->rcu_nocbs),
			 "governor", text(cpus->governor), "cores", (int)cpus->core_count,
			 "packages", (int)cpus->package_count, "nodes", nodes_json(cpus), "claims",
			 claims_json(cpus), "claims_hidden", (int)cpus->claims_hidden);
}

static json_t *memory_json(const struct info_memory *memory)
{
	json_t *pools = json_array();

	for (unsigned i = 0; i < memory->pool_count; i++) {
		const struct info_pool *pool = &memory->pools[i];

		json_array_append_new(pools,
				      json_pack("{s:i, s:o, s:o, s:o}", "node", pool->node_id,
						"page_bytes", bytes(pool->page_bytes), "total",
						bytes(pool->total), "free", bytes(pool->free)));
	}
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:b, s:o, s:b, s:o}", "total_bytes",
		bytes(memory->total_bytes), "available_bytes", bytes(memory->available_bytes),
		"hugepages", pools, "transparent_hugepages", text(memory->thp), "numa_balancing",
		(int)memory->numa_balancing, "memlock_bytes", bytes(memory->memlock_bytes),
		"memlock_exempt", (int)memory->memlock_exempt, "nofile", bytes(memory->nofile));
}

static json_t *kernel_json(const struct info_kernel *kernel)
{
	const struct plx_clock_info *clock = &kernel->clock;
	json_t *quota = json_null();

	if (kernel->quota.cpus > 0)
		quota = json_pack("{s:f, s:f, s:s}", "cpus", kernel->quota.cpus, "period_ms",
				  kernel->quota.period_ms, "file", kernel->quota.path);
	return json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:{s:s, s:s, s:f, s:f, s:b}}",
			 "release", kernel->release, "machine", kernel->machine, "guest",
			 (int)kernel->guest, "hypervisor", text(kernel->hypervisor), "steal",
			 kernel->steal < 0 ? json_null() : json_real(kernel->steal), "cpu_quota",
			 quota, "clocksource", text(kernel->clocksource), "clock", "source",
			 clock->source, "frequency", clock->frequency, "hz", clock->hz,
			 "residual_ppm", clock->residual_ppm, "invariant", (int)clock->invariant);
}

static json_t *providers_json(const struct info_fabric *fabric)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < fabric->provider_count; i++) {
		const struct info_provider *provider = &fabric->providers[i];

		json_array_append_new(
			array, json_pack("{s:s, s:b, s:b, s:b, s:s}", "name", provider->name, "msg",
					 (int)provider->msg, "rdm", (int)provider->rdm, "dgram",
					 (int)provider->dgram, "domains", provider->domains));
	}
	return array;
}

static json_t *fabric_json(const struct info_fabric *fabric)
{
	json_t *drivers = json_array();
	char version[32];

	for (unsigned i = 0; i < fabric->driver_count; i++) {
		const struct info_driver *driver = &fabric->drivers[i];

		json_array_append_new(
			drivers, json_pack("{s:s, s:s, s:s, s:b, s:b, s:s}", "name", driver->name,
					   "summary", driver->summary, "provider", driver->provider,
					   "available", (int)driver->available, "same_host",
					   (int)driver->same_host, "domains", driver->domains));
	}
	snprintf(version, sizeof(version), "%u.%u", FI_MAJOR(fabric->version),
		 FI_MINOR(fabric->version));
	return json_pack("{s:s, s:o, s:o}", "version", version, "drivers", drivers, "providers",
			 providers_json(fabric));
}

/* The words of a list as an array. */
static json_t *words_json(const char *list)
{
	json_t *array = json_array();

	while (*list) {
		size_t len = strcspn(list, " ");

		json_array_append_new(array, json_stringn(list, len));
		list += len + strspn(list + len, " ");
	}
	return array;
}

static json_t *gids_json(const struct info_device *device, unsigned port)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < device->details.gid_count; i++) {
		const struct info_gid *gid = &device->details.gids[i];

		if (gid->port == port)
			json_array_append_new(array,
					      json_pack("{s:i, s:s, s:s, s:o}", "index",
							(int)gid->index, "gid", gid->text, "type",
							gid->type, "netdev", text(gid->netdev)));
	}
	return array;
}

static json_t *known(unsigned value)
{
	return value ? json_integer(value) : json_null();
}

static json_t *port_json(const struct info_device *device, unsigned i)
{
	const struct plx_rdma_port *port = &device->seen.ports[i];

	return json_pack("{s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "port",
			 (int)port->number, "active", (int)port->active, "state", text(port->state),
			 "phys_state", text(port->phys_state), "link_layer", text(port->link_layer),
			 "rate", text(port->rate), "speed_gbps",
			 port->speed_gbps > 0 ? json_real(port->speed_gbps) : json_null(),
			 "mtu_bytes", known(device->details.ports[i].mtu_bytes), "mtu_max_bytes",
			 known(device->details.ports[i].mtu_max_bytes), "netdev",
			 text(port->netdev), "addresses", words_json(device->addresses[i]), "gids",
			 gids_json(device, port->number));
}

/* NULL: unknown or missing node. */
static const struct info_node *node_of(const struct info_cpus *cpus, int id)
{
	for (unsigned i = 0; i < cpus->node_count; i++) {
		if (cpus->nodes[i].id == id)
			return &cpus->nodes[i];
	}
	return NULL;
}

static json_t *device_json(const struct info_device *device, const struct info_cpus *cpus)
{
	const struct info_node *node = node_of(cpus, device->seen.node);
	const struct info_details *details = &device->details;
	bool has_inline = device->usable && details->inline_max_bytes >= 0;
	json_t *ports = json_array();

	for (unsigned i = 0; i < device->seen.port_count; i++)
		json_array_append_new(ports, port_json(device, i));
	return json_pack(
		"{s:s, s:s, s:i, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "name", device->seen.name,
		"transport", plx_rdma_transport_name(device->seen.transport), "node",
		device->seen.node, "cpus", node ? cpu_list(&node->cpus) : json_null(), "usable",
		(int)device->usable, "unusable", text(device->unusable), "inline_max_bytes",
		has_inline ? json_integer(details->inline_max_bytes) : json_null(), "max_sge",
		known(details->max_sge), "max_cqe", known(details->max_cqe), "ports", ports);
}

static json_t *rdma_json(const struct info_rdma *rdma, const struct info_cpus *cpus)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < rdma->device_count; i++)
		json_array_append_new(array, device_json(&rdma->devices[i], cpus));
	return array;
}

static const char *file_word(enum info_file file)
{
	static const char *const words[] = {"missing", "closed", "open"};

	return words[file];
}

static json_t *findings_json(const struct info_finding *findings, unsigned count)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < count; i++) {
		const struct info_finding *finding = &findings[i];

		json_array_append_new(array,
				      json_pack("{s:s, s:s, s:s, s:s, s:o}", "severity",
						info_severity_name(finding->severity), "id",
						finding->id, "seen", finding->seen, "why",
						finding->why, "command", text(finding->command)));
	}
	return array;
}

int info_print_json(const struct info *info, const struct info_finding *findings, unsigned count,
		    FILE *out)
{
	json_t *all = json_pack(
		"{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "schema", INFO_JSON_SCHEMA,
		"pollux", plx_version(), "kernel", kernel_json(&info->kernel), "cpus",
		cpus_json(&info->cpus), "memory", memory_json(&info->memory), "fabric",
		fabric_json(&info->fabric), "rdma", rdma_json(&info->rdma, &info->cpus), "rdma_cm",
		file_word(info->rdma.cm), "doctor", findings_json(findings, count));
	int err = 0;

	if (!all)
		return plx_fail(ENOMEM, "--json: no memory, or a text of the host is not UTF-8");
	if (json_dumpf(all, out, JSON_INDENT(2) | JSON_ENSURE_ASCII) != 0 ||
	    fputc('\n', out) == EOF)
		err = plx_fail(EIO, "--json: standard output cannot be written to");
	json_decref(all);
	return err;
}
