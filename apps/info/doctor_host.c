/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs for pollers and what takes time on them, clocks, memory, limits, and the default driver. */
#include "doctor_priv.h"

#include <inttypes.h>
#include <rdma/fabric.h>
#include <string.h>

#define STEAL_TOO_MUCH    0.005
#define CLOCK_PPM_DOUBTED 50.0
#define MEMLOCK_ENOUGH    (UINT64_C(64) << 20)
#define NOFILE_ENOUGH     4096

/* CPUs ---------------------------------------------------------------------------------------- */

static void check_cpu_count(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	char allowed[LIST_BYTES], online[LIST_BYTES];

	if (plx_cpuset_count(&cpus->allowed) > 1)
		return;
	doctor_find(report, INFO_PROBLEM, "one-cpu",
		    "two pollers on one CPU take turns by the scheduler's tick: a round trip takes "
		    "milliseconds instead of microseconds",
		    "use a host, or give this guest, two CPUs or more",
		    "this process may use CPU %s alone",
		    plx_cpuset_format(&cpus->allowed, allowed, sizeof(allowed)));
	if (plx_cpuset_count(&cpus->online) > 1)
		doctor_suggest(report, "taskset -c %s plx-info   # or widen the cgroup's cpuset",
			       plx_cpuset_format(&cpus->online, online, sizeof(online)));
}

static void check_quota(struct report *report)
{
	const struct plx_cpu_quota *quota = &report->info->kernel.quota;

	if (quota->cpus <= 0 || quota->cpus >= plx_cpuset_count(&report->info->cpus.allowed))
		return;
	doctor_find(report, INFO_PROBLEM, "cpu-quota",
		    "a poller uses its CPU all the time, so the quota stops it dead for the rest "
		    "of each period",
		    NULL, "%s grants %.2f CPUs in every %.0f ms", quota->path, quota->cpus,
		    quota->period_ms);
	doctor_suggest(report, "echo %s | sudo tee %s",
		       strstr(quota->path, "cpu.max") ? "max" : "-1", quota->path);
}

static void check_governor(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	char list[LIST_BYTES];

	if (!plx_cpuset_count(&cpus->not_governed))
		return;
	doctor_find(report, INFO_ADVICE, "governor",
		    "a CPU whose frequency follows the load is slow just when a message arrives "
		    "after a quiet time",
		    NULL, "the frequency governor of CPUs %s is not 'performance' (%s)",
		    plx_cpuset_format(&cpus->not_governed, list, sizeof(list)), cpus->governor);
	doctor_suggest(report, "sudo cpupower --cpu %s frequency-set -g performance", list);
}

/* Isolated CPUs are removed from every process's mask at boot; a program must request them. */
static void check_isolated(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	struct plx_cpuset hidden = cpus->isolated;
	char list[LIST_BYTES];

	plx_cpuset_remove_all(&hidden, &cpus->allowed);
	if (!plx_cpuset_count(&hidden))
		return;
	doctor_find(report, INFO_ADVICE, "isolated-cpus",
		    "the CPUs that are best for pollers are not used unless they are asked for",
		    NULL, "CPUs %s are isolated, and not in this process' affinity",
		    plx_cpuset_format(&hidden, list, sizeof(list)));
	doctor_suggest(report, "taskset -c %s plx-echo -l %s ...", list, list);
}

static void check_isolation(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	struct plx_cpuset pollers = cpus->online;
	char list[LIST_BYTES];

	if (plx_cpuset_count(&cpus->isolated) || plx_cpuset_count(&cpus->online) < 2)
		return;
	plx_cpuset_remove(&pollers, plx_cpuset_next(&pollers, 0));
	plx_cpuset_format(&pollers, list, sizeof(list));
	doctor_find(report, INFO_NOTE, "isolation",
		    "other programs, interrupts and the timer tick interrupt pollers: it is the "
		    "tail (p99.9 and beyond) that gains",
		    NULL, "no CPU is isolated (isolcpus, nohz_full, rcu_nocbs)");
	doctor_suggest(report,
		       "boot with: isolcpus=managed_irq,domain,%s nohz_full=%s rcu_nocbs=%s", list,
		       list, list);
}

static void check_siblings(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	char list[LIST_BYTES];

	if (plx_cpuset_equal(&cpus->one_per_core, &cpus->allowed))
		return;
	doctor_find(report, INFO_NOTE, "smt",
		    "two pollers on siblings share one core's units and take them from each other",
		    NULL, "the allowed CPUs are SMT siblings: %u CPUs on %u cores",
		    plx_cpuset_count(&cpus->allowed), plx_cpuset_count(&cpus->one_per_core));
	doctor_suggest(report, "-l %s   # one CPU of each core",
		       plx_cpuset_format(&cpus->one_per_core, list, sizeof(list)));
}

static void check_claims(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	struct plx_cpuset left = cpus->allowed;

	for (unsigned i = 0; i < cpus->claim_count; i++)
		plx_cpuset_remove(&left, cpus->claims[i].cpu);
	if (cpus->claim_count && !plx_cpuset_count(&left))
		doctor_find(report, INFO_ADVICE, "all-claimed",
			    "the next program shares a CPU with one of them, and both are slow",
			    "end one of them, or choose with -l which one to share",
			    "Pollux processes claim every allowed CPU");
}

/* The kernel ---------------------------------------------------------------------------------- */

static void check_clocks(struct report *report)
{
	const struct info_kernel *kernel = &report->info->kernel;
	const struct plx_clock_info *clock = &kernel->clock;
	bool reads_tsc = strcmp(clock->source, "tsc") == 0;
	bool has_tsc = strstr(kernel->clocksources, "tsc");

	/* A physical host without one cannot fix it; the clock line shows it. */
	if (reads_tsc && !clock->invariant && kernel->guest)
		doctor_find(report, INFO_PROBLEM, "tsc",
			    "the counter that all times are read from may change its rate or "
			    "differ between CPUs; figures cannot be trusted",
			    "on the hypervisor: pass it through (QEMU: -cpu "
			    "host,migratable=no,+invtsc)",
			    "the hypervisor does not promise an invariant TSC");
	/* A guest that only has its hypervisor's clock cannot choose another. */
	if (reads_tsc && kernel->clocksource[0] && strcmp(kernel->clocksource, "tsc") != 0 &&
	    (!kernel->guest || has_tsc))
		doctor_find(report, INFO_ADVICE, "clocksource",
			    "the kernel may have found the TSC unstable, which Pollux reads; and "
			    "clock_gettime is slower by this source",
			    has_tsc ? "echo tsc | sudo tee /sys/devices/system/clocksource/"
				      "clocksource0/current_clocksource"
				    : "sudo dmesg | grep -i tsc   # why it was given up; newer "
				      "firmware may help",
			    "the kernel's clock is '%s', not 'tsc'", kernel->clocksource);
	if (clock->residual_ppm > CLOCK_PPM_DOUBTED)
		doctor_find(report, INFO_NOTE, "clock-calibration",
			    "times are wrong by that much, which a busy host causes",
			    "plx-info --doctor   # again, when less runs here",
			    "the clock's frequency is known to %.0f ppm only", clock->residual_ppm);
}

static void check_steal(struct report *report)
{
	double steal = report->info->kernel.steal;

	if (steal >= STEAL_TOO_MUCH)
		doctor_find(report, INFO_ADVICE, "steal",
			    "while the hypervisor runs another guest a poller stands still, for "
			    "milliseconds at a time",
			    "on the hypervisor: pin this guest's CPUs (virsh vcpupin), and do not "
			    "overcommit them",
			    "%.1f %% of the CPU time since boot went to other guests of the host",
			    steal * 100);
}

/* Memory and limits --------------------------------------------------------------------------- */

/* Count the nodes that have pools, and those among them without a free huge page of any size. The
 * pools of a node are adjacent. */
static void check_hugepages(struct report *report)
{
	const struct info_memory *memory = &report->info->memory;
	unsigned nodes = 0, empty = 0;

	for (unsigned i = 0; i < memory->pool_count;) {
		int node_id = memory->pools[i].node_id;
		uint64_t free = 0;

		for (; i < memory->pool_count && memory->pools[i].node_id == node_id; i++)
			free += memory->pools[i].free;
		nodes++;
		empty += free == 0;
	}
	if (nodes && !empty)
		return;
	doctor_find(report, INFO_ADVICE, "hugepages",
		    "buffers then lie on small pages, or on huge ones only if the kernel has some "
		    "at hand: more TLB misses, longer registration with RDMA devices",
		    "sudo sysctl vm.nr_hugepages=256   # 512 MiB over all nodes; per node: "
		    "config/90-pollux-hugepages.conf",
		    empty < nodes ? "%u of %u NUMA nodes have no free huge page"
				  : "no huge page is free (%u of %u NUMA nodes)",
		    empty, nodes);
}

static void check_memlock(struct report *report)
{
	const struct info_memory *memory = &report->info->memory;
	bool rdma = report->info->rdma.device_count > 0;

	if (memory->memlock_bytes >= MEMLOCK_ENOUGH || memory->memlock_exempt)
		return;
	doctor_find(
		report, rdma ? INFO_PROBLEM : INFO_NOTE, "memlock",
		rdma ? "buffers for an RDMA device are locked, once for each lcore with links over "
		       "it: 4 MiB for plx-echo, 16 MiB more for a NetIO socket that sends pages; "
		       "beyond the limit they cannot be registered, and links fail"
		     : "RDMA devices, once there are some, need their buffers locked",
		"ulimit -l unlimited || sudo prlimit --memlock=unlimited --pid $$   # for good: "
		"'USER - memlock unlimited' in /etc/security/limits.d/pollux.conf, and log in "
		"again; in a systemd unit LimitMEMLOCK=infinity",
		"the limit of locked memory is %" PRIu64 " KiB", memory->memlock_bytes / 1024);
}

static void check_settings(struct report *report)
{
	const struct info_memory *memory = &report->info->memory;
	unsigned nodes = report->info->cpus.node_count;

	if (memory->numa_balancing && nodes > 1)
		doctor_find(
			report, INFO_ADVICE, "numa-balancing",
			"the kernel unmaps pages now and then to learn who uses them: page faults "
			"on the message path",
			"sudo sysctl kernel.numa_balancing=0",
			"automatic NUMA balancing is on, on %u nodes", nodes);
	if (strcmp(memory->thp, "never") == 0)
		doctor_find(report, INFO_NOTE, "thp",
			    "where huge pages run out, memory falls back to pages of 4 KiB at once",
			    "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
			    "transparent huge pages are switched off");
	if (memory->nofile < NOFILE_ENOUGH)
		doctor_find(
			report, INFO_NOTE, "nofile",
			"each link takes a descriptor or more; a server runs out of them at that "
			"many",
			"ulimit -n 65536   # for good: LimitNOFILE=65536, or "
			"/etc/security/limits.d/pollux.conf",
			"the limit of open descriptors is %" PRIu64, memory->nofile);
}

/* Links --------------------------------------------------------------------------------------- */

/* The first driver that reaches other hosts is the default one. Those after it need hardware that a
 * host may lack. */
static void check_drivers(struct report *report)
{
	const struct info_fabric *fabric = &report->info->fabric;
	unsigned i = 0;

	while (i < fabric->driver_count && fabric->drivers[i].same_host)
		i++;
	if (i == fabric->driver_count || fabric->drivers[i].available)
		return;
	doctor_find(
		report, INFO_PROBLEM, "no-provider",
		"no program starts without --provider naming another driver, such as shm, which "
		"reaches this host alone",
		"fi_info -l   # is it there? and is FI_PROVIDER set in the environment?",
		"driver %s: libfabric %u.%u has no connected endpoints with provider '%s' here",
		fabric->drivers[i].name, FI_MAJOR(fabric->version), FI_MINOR(fabric->version),
		fabric->drivers[i].provider);
}

void doctor_check_places(struct report *report)
{
	check_cpu_count(report);
	check_quota(report);
	check_drivers(report);
}

void doctor_check_host(struct report *report)
{
	check_clocks(report);
	check_hugepages(report);
	check_memlock(report);
	check_governor(report);
	check_steal(report);
	check_claims(report);
	check_isolated(report);
	check_isolation(report);
	check_siblings(report);
	check_settings(report);
}
