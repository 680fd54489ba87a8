/* SPDX-License-Identifier: BSD-3-Clause */
/* For people: one fact per line, under headings. */
#include "info.h"

#include <inttypes.h>
#include <rdma/fabric.h>
#include <stdarg.h>
#include <string.h>

#define LIST_BYTES 256

static void heading(FILE *out, const char *text)
{
	fprintf(out, "\n%s\n", text);
}

PLX_PRINTF(3, 4) static void fact(FILE *out, const char *label, const char *format, ...)
{
	va_list args;

	fprintf(out, "  %-15s ", label);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fputc('\n', out);
}

static void cpus_fact(FILE *out, const char *label, const struct plx_cpuset *set)
{
	char list[LIST_BYTES];
	unsigned count = plx_cpuset_count(set);

	if (count == 0)
		fact(out, label, "none");
	else
		fact(out, label, "%s (%u)", plx_cpuset_format(set, list, sizeof(list)), count);
}

/* In whole units without noticeable loss: GiB from 10 GiB on, and for the 1 GiB page. */
static const char *size_text(uint64_t bytes, char *out, size_t size)
{
	if (bytes == UINT64_MAX)
		snprintf(out, size, "unlimited");
	else if (bytes >= UINT64_C(10) << 30 || bytes == UINT64_C(1) << 30)
		snprintf(out, size, "%" PRIu64 " GiB", bytes >> 30);
	else if (bytes >= UINT64_C(1) << 20)
		snprintf(out, size, "%" PRIu64 " MiB", bytes >> 20);
	else
		snprintf(out, size, "%" PRIu64 " KiB", bytes >> 10);
	return out;
}

static void print_host(const struct info_kernel *kernel, FILE *out)
{
	heading(out, "Host");
	fact(out, "kernel", "%s %s", kernel->release, kernel->machine);
	if (!kernel->guest)
		fact(out, "hypervisor", "none seen");
	else
		fact(out, "hypervisor", "%s",
		     kernel->hypervisor[0] ? kernel->hypervisor : "yes, it does not say which");
	if (kernel->steal >= 0)
		fact(out, "stolen time", "%.2f %% since boot", kernel->steal * 100);
	fact(out, "clock", "%s, %s, %.3f MHz %s to %.1f ppm", kernel->clock.source,
	     kernel->clock.invariant ? "invariant" : "not invariant", kernel->clock.hz / 1e6,
	     kernel->clock.frequency, kernel->clock.residual_ppm);
	fact(out, "kernel's clock", "%s (has: %s)",
	     kernel->clocksource[0] ? kernel->clocksource : "unknown", kernel->clocksources);
}

#define TAKES_TURNS " too: they take turns"

static void print_sharers(const struct info_cpus *cpus, unsigned cpu, FILE *out)
{
	for (unsigned i = 0; i < cpus->sharer_count; i++) {
		const struct info_sharer *sharer = &cpus->sharers[i];

		if (sharer->cpu == cpu)
			fact(out, "", "%u by %s (pid %d)" TAKES_TURNS, cpu, sharer->command,
			     (int)sharer->pid);
	}
}

static void print_claims(const struct info_cpus *cpus, FILE *out)
{
	if (cpus->claim_count == 0)
		fact(out, "claimed", "none by Pollux processes");
	for (unsigned i = 0; i < cpus->claim_count; i++) {
		const struct info_claim *claim = &cpus->claims[i];
		const char *where = claim->elsewhere ? ", in another network namespace" : "";
		const char *turns = i && claim[-1].cpu == claim->cpu ? TAKES_TURNS : "";

		if (claim->pid)
			fact(out, i ? "" : "claimed", "%u by %s (pid %d)%s%s", claim->cpu,
			     claim->command, (int)claim->pid, where, turns);
		else
			fact(out, i ? "" : "claimed", "%u by a process of another user%s%s",
			     claim->cpu, where, turns);
		if (i + 1 == cpus->claim_count || claim[1].cpu != claim->cpu)
			print_sharers(cpus, claim->cpu, out);
	}
	if (cpus->claims_hidden)
		fact(out, "", "those of other containers are hidden; lcores look from CPU %u on",
		     plx_cpu_first(NULL, &cpus->allowed));
}

static void print_cpus(const struct info_cpus *cpus, const struct info_kernel *kernel, FILE *out)
{
	char list[LIST_BYTES], total[32], available[32];

	heading(out, "CPUs");
	fact(out, "model", "%s", cpus->model[0] ? cpus->model : "unknown");
	cpus_fact(out, "online", &cpus->online);
	cpus_fact(out, "allowed", &cpus->allowed);
	print_claims(cpus, out);
	fact(out, "cores", "%u in %u package%s", cpus->core_count, cpus->package_count,
	     cpus->package_count == 1 ? "" : "s");
	for (unsigned i = 0; i < cpus->node_count; i++) {
		const struct info_node *node = &cpus->nodes[i];

		fact(out, i ? "" : "NUMA nodes", "%d: CPUs %s; %s, %s free", node->id,
		     plx_cpuset_format(&node->cpus, list, sizeof(list)),
		     size_text(node->total_bytes, total, sizeof(total)),
		     size_text(node->free_bytes, available, sizeof(available)));
	}
	fact(out, "governor", "%s", cpus->governor[0] ? cpus->governor : "no frequency control");
	cpus_fact(out, "isolated", &cpus->isolated);
	cpus_fact(out, "nohz_full", &cpus->nohz_full);
	if (kernel->quota.cpus > 0)
		fact(out, "quota", "%.2f CPUs in every %.0f ms (%s)", kernel->quota.cpus,
		     kernel->quota.period_ms, kernel->quota.path);
	else
		fact(out, "quota", "none");
}

static void print_memory(const struct info_memory *memory, FILE *out)
{
	char one[32], two[32];

	heading(out, "Memory");
	fact(out, "in all", "%s, %s available", size_text(memory->total_bytes, one, sizeof(one)),
	     size_text(memory->available_bytes, two, sizeof(two)));
	if (memory->pool_count == 0)
		fact(out, "huge pages", "this kernel has none");
	for (unsigned i = 0; i < memory->pool_count; i++) {
		const struct info_pool *pool = &memory->pools[i];

		fact(out, i ? "" : "huge pages",
		     "node %d, %s each: %" PRIu64 " reserved, %" PRIu64 " free", pool->node_id,
		     size_text(pool->page_bytes, one, sizeof(one)), pool->total, pool->free);
	}
	fact(out, "transparent", "%s", memory->thp[0] ? memory->thp : "not in this kernel");
	fact(out, "locked memory", "limit %s%s", size_text(memory->memlock_bytes, one, sizeof(one)),
	     memory->memlock_exempt && memory->memlock_bytes != UINT64_MAX
		     ? "; CAP_IPC_LOCK lifts it"
		     : "");
	if (memory->nofile == UINT64_MAX)
		fact(out, "descriptors", "no limit");
	else
		fact(out, "descriptors", "limit %" PRIu64, memory->nofile);
}

static void print_fabric(const struct info_fabric *fabric, FILE *out)
{
	char label[96];

	snprintf(label, sizeof(label), "libfabric %u.%u", FI_MAJOR(fabric->version),
		 FI_MINOR(fabric->version));
	heading(out, label);
	for (unsigned i = 0; i < fabric->driver_count; i++) {
		const struct info_driver *driver = &fabric->drivers[i];

		snprintf(label, sizeof(label), "driver %s", driver->name);
		if (driver->available)
			fact(out, label, "uses '%s' on %s", driver->provider, driver->domains);
		else
			fact(out, label, "not here: no '%s' with connected endpoints",
			     driver->provider);
		fact(out, "", "%s", driver->summary);
	}
	for (unsigned i = 0; i < fabric->provider_count; i++) {
		const struct info_provider *provider = &fabric->providers[i];

		fact(out, i ? "" : "providers", "%-16s %s%s%s on %s", provider->name,
		     provider->msg ? "MSG " : "    ", provider->rdm ? "RDM " : "    ",
		     provider->dgram ? "DGRAM" : "     ", provider->domains);
	}
}

static void print_gids(const struct info_device *device, unsigned port, FILE *out)
{
	for (unsigned i = 0; i < device->details.gid_count; i++) {
		const struct info_gid *gid = &device->details.gids[i];

		if (gid->port == port)
			fact(out, "", "  GID %u: %s, %s%s%s", gid->index, gid->text, gid->type,
			     gid->netdev[0] ? " on " : "", gid->netdev);
	}
}

static void print_port(const struct info_device *device, unsigned i, FILE *out)
{
	const struct plx_rdma_port *port = &device->seen.ports[i];
	char mtu[48] = "";

	if (device->details.ports[i].mtu_bytes)
		snprintf(mtu, sizeof(mtu), ", MTU %u of %u", device->details.ports[i].mtu_bytes,
			 device->details.ports[i].mtu_max_bytes);
	fact(out, "", "port %u: %s (%s), %s, %s%s", port->number, info_state_word(port->state),
	     info_state_word(port->phys_state), port->link_layer, port->rate, mtu);
	if (port->netdev[0])
		fact(out, "", "  on %s: %s", port->netdev,
		     device->addresses[i][0] ? device->addresses[i] : "no IP address");
	print_gids(device, port->number, out);
}

/* InfiniBand's transport over Ethernet has another name. */
static const char *transport_word(const struct plx_rdma_device *device)
{
	if (device->transport == PLX_RDMA_IB &&
	    strcmp(device->ports[0].link_layer, "Ethernet") == 0)
		return "RoCE";
	return plx_rdma_transport_name(device->transport);
}

static void print_device(const struct info_device *device, const struct info_cpus *cpus, FILE *out)
{
	const char *transport = transport_word(&device->seen);
	char list[LIST_BYTES] = "none";

	for (unsigned i = 0; i < cpus->node_count; i++) {
		if (cpus->nodes[i].id == device->seen.node)
			plx_cpuset_format(&cpus->nodes[i].cpus, list, sizeof(list));
	}
	if (device->seen.node < 0)
		fact(out, device->seen.name, "transport %s, NUMA node unknown", transport);
	else
		fact(out, device->seen.name, "transport %s, NUMA node %d (CPUs %s)", transport,
		     device->seen.node, list);
}

static void print_limits(const struct info_device *device, FILE *out)
{
	const struct info_details *details = &device->details;

	if (!device->usable)
		fact(out, "", "not usable: %s", device->unusable);
	else if (details->inline_max_bytes < 0)
		fact(out, "", "usable; limit of inline sends unknown");
	else
		fact(out, "", "usable; inline up to %d bytes, %u pieces, %u completions a queue",
		     details->inline_max_bytes, details->max_sge, details->max_cqe);
}

static void print_rdma(const struct info_rdma *rdma, const struct info_cpus *cpus, FILE *out)
{
	static const char *const cm[] = {"there is no /dev/infiniband/rdma_cm",
					 "no permission for /dev/infiniband/rdma_cm", "possible"};

	heading(out, "RDMA");
	if (rdma->device_count == 0)
		fact(out, "devices", "none");
	else
		fact(out, "connections", "%s", cm[rdma->cm]);
	for (unsigned i = 0; i < rdma->device_count; i++) {
		const struct info_device *device = &rdma->devices[i];

		print_device(device, cpus, out);
		print_limits(device, out);
		for (unsigned k = 0; k < device->seen.port_count; k++)
			print_port(device, k, out);
	}
	if (rdma->device_total > rdma->device_count)
		fact(out, "", "and %u more", rdma->device_total - rdma->device_count);
}

void info_print(const struct info *info, FILE *out)
{
	fprintf(out, "Pollux %s\n", plx_version());
	print_host(&info->kernel, out);
	print_cpus(&info->cpus, &info->kernel, out);
	print_memory(&info->memory, out);
	print_fabric(&info->fabric, out);
	print_rdma(&info->rdma, &info->cpus, out);
}
