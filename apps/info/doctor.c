/* SPDX-License-Identifier: BSD-3-Clause */
/* What to change on a host so that Pollux runs well: one small function for each rule. */
#include "info.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MIB               (UINT64_C(1) << 20)
#define MEMLOCK_ENOUGH    (64 * MIB)
#define NOFILE_ENOUGH     4096
#define STEAL_TOO_MUCH    0.005
#define CLOCK_PPM_DOUBTED 50.0
#define LIST_BYTES        64 /* of a list of CPUs in a text */

struct report {
	const struct info *info;
	struct info_finding *findings;
	unsigned count, max;
};

const char *info_severity_name(enum info_severity severity)
{
	static const char *const names[] = {"problem", "advice", "note"};

	return names[severity];
}

/* Add a finding; the command follows with suggest(). */
PLX_PRINTF(5, 6)
static void find(struct report *report, enum info_severity severity, const char *id,
		 const char *why, const char *format, ...)
{
	va_list args;

	if (report->count == report->max)
		return;
	struct info_finding *finding = &report->findings[report->count++];
	*finding = (struct info_finding){.severity = severity, .id = id, .why = why};
	va_start(args, format);
	vsnprintf(finding->seen, sizeof(finding->seen), format, args);
	va_end(args);
}

PLX_PRINTF(2, 3) static void suggest(struct report *report, const char *format, ...)
{
	va_list args;

	if (report->count == 0)
		return;
	struct info_finding *finding = &report->findings[report->count - 1];
	va_start(args, format);
	vsnprintf(finding->command, sizeof(finding->command), format, args);
	va_end(args);
}

static struct plx_cpuset without(const struct plx_cpuset *set, const struct plx_cpuset *minus)
{
	struct plx_cpuset left = *set;

	PLX_CPUSET_FOREACH (cpu, minus)
		plx_cpuset_remove(&left, cpu);
	return left;
}

static bool is_empty(const struct plx_cpuset *set)
{
	return plx_cpuset_next(set, 0) == PLX_CPU_MAX;
}

/* CPUs --------------------------------------------------------------------------------------- */

static void check_cpu_count(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	char allowed[LIST_BYTES], online[LIST_BYTES];

	if (plx_cpuset_count(&cpus->allowed) > 1)
		return;
	find(report, INFO_PROBLEM, "one-cpu",
	     "two pollers on one CPU take turns by the scheduler's tick: a round trip takes "
	     "milliseconds instead of microseconds",
	     "this process may use CPU %s alone",
	     plx_cpuset_format(&cpus->allowed, allowed, sizeof(allowed)));
	if (plx_cpuset_count(&cpus->online) > 1)
		suggest(report, "taskset -c %s plx-info   # or widen the cgroup's cpuset",
			plx_cpuset_format(&cpus->online, online, sizeof(online)));
}

static void check_quota(struct report *report)
{
	const struct info_kernel *kernel = &report->info->kernel;

	if (kernel->quota_cpus <= 0 ||
	    kernel->quota_cpus >= plx_cpuset_count(&report->info->cpus.allowed))
		return;
	find(report, INFO_PROBLEM, "cpu-quota",
	     "a poller uses its CPU all the time, so the quota stops it dead for the rest of each "
	     "period",
	     "%s grants %.2f CPUs in every %.0f ms", kernel->quota_path, kernel->quota_cpus,
	     kernel->period_ms);
	if (strstr(kernel->quota_path, "cpu.max"))
		suggest(report, "echo max | sudo tee %s", kernel->quota_path);
	else
		suggest(report, "echo -1 | sudo tee %s", kernel->quota_path);
}

static void check_governor(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	char list[LIST_BYTES];

	if (is_empty(&cpus->not_governed))
		return;
	find(report, INFO_ADVICE, "governor",
	     "a CPU whose frequency follows the load is slow just when a message arrives after a "
	     "quiet time",
	     "the frequency governor of CPUs %s is not 'performance' (%s)",
	     plx_cpuset_format(&cpus->not_governed, list, sizeof(list)), cpus->governor);
	suggest(report, "sudo cpupower --cpu %s frequency-set -g performance", list);
}

/* Isolated CPUs are taken out of every process' mask at boot, so that one must ask for them. */
static void check_isolation(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	struct plx_cpuset hidden = without(&cpus->isolated, &cpus->allowed);
	char list[LIST_BYTES];

	if (!is_empty(&hidden)) {
		find(report, INFO_ADVICE, "isolated-cpus",
		     "the CPUs that are best for pollers are not used unless they are asked for",
		     "CPUs %s are isolated, and not in this process' affinity",
		     plx_cpuset_format(&hidden, list, sizeof(list)));
		suggest(report, "taskset -c %s plx-echo -l %s ...", list, list);
	}
	if (!is_empty(&cpus->isolated) || plx_cpuset_count(&cpus->online) < 2)
		return;
	struct plx_cpuset pollers = cpus->online;
	plx_cpuset_remove(&pollers, plx_cpuset_next(&pollers, 0));
	plx_cpuset_format(&pollers, list, sizeof(list));
	find(report, INFO_NOTE, "isolation",
	     "other programs, interrupts and the timer tick interrupt pollers: it is the tail "
	     "(p99.9 and beyond) that gains",
	     "no CPU is isolated (isolcpus, nohz_full, rcu_nocbs)");
	suggest(report, "boot with: isolcpus=managed_irq,domain,%s nohz_full=%s rcu_nocbs=%s", list,
		list, list);
}

static void check_siblings(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	char list[LIST_BYTES];

	if (plx_cpuset_equal(&cpus->one_per_core, &cpus->allowed))
		return;
	find(report, INFO_NOTE, "smt",
	     "two pollers on siblings share one core's units and take them from each other",
	     "the allowed CPUs are SMT siblings: %u CPUs on %u cores",
	     plx_cpuset_count(&cpus->allowed), plx_cpuset_count(&cpus->one_per_core));
	suggest(report, "-l %s   # one CPU of each core",
		plx_cpuset_format(&cpus->one_per_core, list, sizeof(list)));
}

static void check_claims(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	struct plx_cpuset left = cpus->allowed;

	for (unsigned i = 0; i < cpus->claim_count; i++)
		plx_cpuset_remove(&left, cpus->claims[i].cpu);
	if (cpus->claim_count == 0 || !is_empty(&left))
		return;
	find(report, INFO_ADVICE, "all-claimed",
	     "the next program shares a CPU with one of them, and both are slow",
	     "Pollux processes poll on every allowed CPU");
	suggest(report, "end one of them, or choose with -l which one to share");
}

/* Kernel ------------------------------------------------------------------------------------- */

static void check_clock(struct report *report)
{
	const struct info_kernel *kernel = &report->info->kernel;
	bool tsc = strcmp(kernel->clock.source, "tsc") == 0;

	if (tsc && !kernel->clock.invariant)
		find(report, INFO_PROBLEM, "tsc",
		     "the counter that all times are read from may change its rate or differ "
		     "between CPUs; figures cannot be trusted",
		     "this CPU does not promise an invariant TSC");
	if (tsc && kernel->clocksource[0] && strcmp(kernel->clocksource, "tsc") != 0) {
		bool has_tsc = strstr(kernel->clocksources, "tsc") != NULL;

		find(report, INFO_ADVICE, "clocksource",
		     "the kernel may have found the TSC unstable, which Pollux reads; and "
		     "clock_gettime is slower by this source",
		     "the kernel's clock is '%s', not 'tsc'", kernel->clocksource);
		if (has_tsc)
			suggest(report, "echo tsc | sudo tee /sys/devices/system/clocksource/"
					"clocksource0/current_clocksource");
		else
			suggest(report, "sudo dmesg | grep -i tsc   # why it was given up");
	}
	if (kernel->clock.residual_ppm > CLOCK_PPM_DOUBTED)
		find(report, INFO_NOTE, "clock-calibration",
		     "times are wrong by that much; a busy host does it: run plx-info again",
		     "the clock's frequency is known to %.0f ppm only", kernel->clock.residual_ppm);
}

static void check_steal(struct report *report)
{
	const struct info_kernel *kernel = &report->info->kernel;

	if (kernel->steal < STEAL_TOO_MUCH)
		return;
	find(report, INFO_ADVICE, "steal",
	     "while the hypervisor runs another guest a poller stands still, for milliseconds at a "
	     "time",
	     "%.1f %% of the CPU time since boot went to other guests of the host",
	     kernel->steal * 100);
	suggest(report, "on the hypervisor: pin this guest's CPUs (virsh vcpupin), and do not "
			"overcommit them");
}

/* Memory ------------------------------------------------------------------------------------- */

static void check_hugepages(struct report *report)
{
	const struct info_memory *memory = &report->info->memory;
	struct {
		int node_id;
		uint64_t free;
	} nodes[INFO_NODES_MAX];
	unsigned node_count = 0, empty = 0;

	for (unsigned i = 0; i < memory->pool_count; i++) {
		const struct info_pool *pool = &memory->pools[i];

		if (node_count == 0 || nodes[node_count - 1].node_id != pool->node_id) {
			if (node_count == INFO_NODES_MAX)
				break;
			nodes[node_count].node_id = pool->node_id;
			nodes[node_count++].free = 0;
		}
		nodes[node_count - 1].free += pool->free;
	}
	for (unsigned i = 0; i < node_count; i++)
		empty += nodes[i].free == 0;
	if (node_count && !empty)
		return;
	find(report, INFO_ADVICE, "hugepages",
	     "buffers then lie on small pages, or on huge ones only if the kernel has some at "
	     "hand: "
	     "more TLB misses, longer registration with RDMA devices",
	     node_count && empty < node_count ? "%u of %u NUMA nodes have no free huge page"
					      : "no huge page is free (%u of %u NUMA nodes)",
	     empty, node_count);
	suggest(report, "sudo sysctl vm.nr_hugepages=256   # 512 MiB over all nodes; per node: "
			"scripts/hugepages.sh reserve 512");
}

static void check_thp(struct report *report)
{
	if (strcmp(report->info->memory.thp, "never") != 0)
		return;
	find(report, INFO_NOTE, "thp",
	     "where huge pages run out, memory falls back to pages of 4 KiB at once",
	     "transparent huge pages are switched off");
	suggest(report, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
}

static void check_memlock(struct report *report)
{
	uint64_t limit = report->info->memory.memlock_bytes;
	bool rdma = report->info->rdma.device_count > 0;

	if (limit >= MEMLOCK_ENOUGH)
		return;
	find(report, rdma ? INFO_PROBLEM : INFO_NOTE, "memlock",
	     rdma ? "memory that is registered with an RDMA device is locked: links over verbs "
		    "fail "
		    "beyond the limit"
		  : "RDMA devices, once there are some, need their buffers locked",
	     "the limit of locked memory is %" PRIu64 " KiB", limit / 1024);
	suggest(report, "ulimit -l unlimited   # for good: 'USER - memlock unlimited' in "
			"/etc/security/limits.d/pollux.conf, or LimitMEMLOCK=infinity");
}

static void check_nofile(struct report *report)
{
	if (report->info->memory.nofile >= NOFILE_ENOUGH)
		return;
	find(report, INFO_NOTE, "nofile",
	     "each link takes a descriptor or more; a server runs out of them at that many",
	     "the limit of open descriptors is %" PRIu64, report->info->memory.nofile);
	suggest(report, "ulimit -n 65536   # for good: LimitNOFILE=65536, or "
			"/etc/security/limits.d/pollux.conf");
}

static void check_balancing(struct report *report)
{
	if (!report->info->memory.numa_balancing || report->info->cpus.node_count < 2)
		return;
	find(report, INFO_ADVICE, "numa-balancing",
	     "the kernel unmaps pages now and then to learn who uses them: page faults on the "
	     "message path",
	     "automatic NUMA balancing is on, on %u nodes", report->info->cpus.node_count);
	suggest(report, "sudo sysctl kernel.numa_balancing=0");
}

/* Transport ---------------------------------------------------------------------------------- */

static void check_drivers(struct report *report)
{
	const struct info_fabric *fabric = &report->info->fabric;

	for (unsigned i = 0; i < fabric->driver_count; i++) {
		const struct info_driver *driver = &fabric->drivers[i];

		/* The first is the default; the others need hardware that a host may lack. */
		if (driver->available || i > 0)
			continue;
		find(report, INFO_PROBLEM, "no-provider",
		     "no link can be made without --provider naming another driver",
		     "driver %s: libfabric %u.%u has no connected endpoints with provider '%s' "
		     "here",
		     driver->name, fabric->version >> 16, fabric->version & 0xffff,
		     driver->provider);
		suggest(report, "fi_info -l   # is it there? and is FI_PROVIDER set in the "
				"environment?");
	}
}

static void check_rdma(struct report *report)
{
	const struct info_rdma *rdma = &report->info->rdma;

	for (unsigned i = 0; i < rdma->device_count; i++) {
		const struct info_device *device = &rdma->devices[i];
		bool active = false;

		for (unsigned k = 0; k < device->port_count; k++)
			active |= device->ports[k].active;
		if (!device->usable) {
			find(report, INFO_PROBLEM, "rdma-driver",
			     "without it the device cannot be used, and messages take the way over "
			     "tcp",
			     "RDMA device %s has no user-space driver, or /dev/infiniband is "
			     "closed",
			     device->name);
			suggest(report, "sudo apt-get install ibverbs-providers && ibv_devinfo");
		}
		if (!active) {
			find(report, INFO_ADVICE, "rdma-port",
			     "the device is there and cannot be reached", "no port of %s is active",
			     device->name);
			suggest(report,
				"ibv_devinfo -d %s   # then: ip link set DEV up, or the cable",
				device->name);
		}
	}
}

unsigned info_doctor(const struct info *info, struct info_finding *findings, unsigned max)
{
	static void (*const checks[])(struct report *) = {
		check_cpu_count, check_quota,    check_drivers,   check_rdma,  check_clock,
		check_hugepages, check_memlock,  check_governor,  check_steal, check_claims,
		check_isolation, check_siblings, check_balancing, check_thp,   check_nofile,
	};
	struct report report = {.info = info, .max = max};
	struct info_finding *all = calloc(max, sizeof(*all));
	unsigned count = 0;

	if (!all)
		return 0;
	report.findings = all;
	for (size_t i = 0; i < PLX_ARRAY_LEN(checks); i++)
		checks[i](&report);
	for (int severity = INFO_PROBLEM; severity <= INFO_NOTE; severity++) {
		for (unsigned i = 0; i < report.count; i++) {
			if ((int)all[i].severity == severity)
				findings[count++] = all[i];
		}
	}
	free(all);
	return count;
}
