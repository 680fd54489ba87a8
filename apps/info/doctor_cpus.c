/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs available for pollers, and what takes time on them. */
#include "doctor_priv.h"

#include <string.h>

#define LIST_BYTES 64 /* size of a CPU list within a text */

static bool is_empty(const struct plx_cpuset *set)
{
	return plx_cpuset_next(set, 0) == PLX_CPU_MAX;
}

void doctor_check_cpu_count(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	char allowed[LIST_BYTES], online[LIST_BYTES];

	if (plx_cpuset_count(&cpus->allowed) > 1)
		return;
	doctor_find(report, INFO_PROBLEM, "one-cpu",
		    "two pollers on one CPU take turns by the scheduler's tick: a round trip takes "
		    "milliseconds instead of microseconds",
		    "this process may use CPU %s alone",
		    plx_cpuset_format(&cpus->allowed, allowed, sizeof(allowed)));
	if (plx_cpuset_count(&cpus->online) > 1)
		doctor_suggest(report, "taskset -c %s plx-info   # or widen the cgroup's cpuset",
			       plx_cpuset_format(&cpus->online, online, sizeof(online)));
	else
		doctor_suggest(report, "use a host, or give this guest, two CPUs or more");
}

void doctor_check_quota(struct report *report)
{
	const struct info_kernel *kernel = &report->info->kernel;

	if (kernel->quota.cpus <= 0 ||
	    kernel->quota.cpus >= plx_cpuset_count(&report->info->cpus.allowed))
		return;
	doctor_find(report, INFO_PROBLEM, "cpu-quota",
		    "a poller uses its CPU all the time, so the quota stops it dead for the rest "
		    "of each period",
		    "%s grants %.2f CPUs in every %.0f ms", kernel->quota.path, kernel->quota.cpus,
		    kernel->quota.period_ms);
	if (strstr(kernel->quota.path, "cpu.max"))
		doctor_suggest(report, "echo max | sudo tee %s", kernel->quota.path);
	else
		doctor_suggest(report, "echo -1 | sudo tee %s", kernel->quota.path);
}

void doctor_check_governor(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	char list[LIST_BYTES];

	if (is_empty(&cpus->not_governed))
		return;
	doctor_find(report, INFO_ADVICE, "governor",
		    "a CPU whose frequency follows the load is slow just when a message arrives "
		    "after a quiet time",
		    "the frequency governor of CPUs %s is not 'performance' (%s)",
		    plx_cpuset_format(&cpus->not_governed, list, sizeof(list)), cpus->governor);
	doctor_suggest(report, "sudo cpupower --cpu %s frequency-set -g performance", list);
}

/* Isolated CPUs are removed from every process's mask at boot; a program must request them. */
void doctor_check_isolated(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	struct plx_cpuset hidden = cpus->isolated;
	char list[LIST_BYTES];

	plx_cpuset_remove_all(&hidden, &cpus->allowed);
	if (is_empty(&hidden))
		return;
	doctor_find(report, INFO_ADVICE, "isolated-cpus",
		    "the CPUs that are best for pollers are not used unless they are asked for",
		    "CPUs %s are isolated, and not in this process' affinity",
		    plx_cpuset_format(&hidden, list, sizeof(list)));
	doctor_suggest(report, "taskset -c %s plx-echo -l %s ...", list, list);
}

void doctor_check_isolation(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	struct plx_cpuset pollers = cpus->online;
	char list[LIST_BYTES];

	if (!is_empty(&cpus->isolated) || plx_cpuset_count(&cpus->online) < 2)
		return;
	plx_cpuset_remove(&pollers, plx_cpuset_next(&pollers, 0));
	plx_cpuset_format(&pollers, list, sizeof(list));
	doctor_find(
		report, INFO_NOTE, "isolation",
		"other programs, interrupts and the timer tick interrupt pollers: it is the tail "
		"(p99.9 and beyond) that gains",
		"no CPU is isolated (isolcpus, nohz_full, rcu_nocbs)");
	doctor_suggest(report,
		       "boot with: isolcpus=managed_irq,domain,%s nohz_full=%s rcu_nocbs=%s", list,
		       list, list);
}

void doctor_check_siblings(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	char list[LIST_BYTES];

	if (plx_cpuset_equal(&cpus->one_per_core, &cpus->allowed))
		return;
	doctor_find(report, INFO_NOTE, "smt",
		    "two pollers on siblings share one core's units and take them from each other",
		    "the allowed CPUs are SMT siblings: %u CPUs on %u cores",
		    plx_cpuset_count(&cpus->allowed), plx_cpuset_count(&cpus->one_per_core));
	doctor_suggest(report, "-l %s   # one CPU of each core",
		       plx_cpuset_format(&cpus->one_per_core, list, sizeof(list)));
}

void doctor_check_claims(struct report *report)
{
	const struct info_cpus *cpus = &report->info->cpus;
	struct plx_cpuset left = cpus->allowed;

	for (unsigned i = 0; i < cpus->claim_count; i++)
		plx_cpuset_remove(&left, cpus->claims[i].cpu);
	if (cpus->claim_count == 0 || !is_empty(&left))
		return;
	doctor_find(report, INFO_ADVICE, "all-claimed",
		    "the next program shares a CPU with one of them, and both are slow",
		    "Pollux processes claim every allowed CPU");
	doctor_suggest(report, "end one of them, or choose with -l which one to share");
}
