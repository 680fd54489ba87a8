/* SPDX-License-Identifier: BSD-3-Clause */
/* Other processes that have claimed the measured CPU, and may poll it. */
#include "ping.h"
#include "plx_topo.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static void warn(struct ping_outcome *outcome, unsigned cpu, pid_t holder)
{
	char who[64] = "another process";

	if (outcome->warning_count == PING_WARNINGS_MAX)
		return;
	if (holder > 0)
		snprintf(who, sizeof(who), "process %ld", (long)holder);
	snprintf(outcome->warnings[outcome->warning_count++], sizeof(outcome->warnings[0]),
		 "CPU %u is already claimed by %s: each waits while the other runs, up to "
		 "milliseconds if it polls, and these figures measure that, too; give each process "
		 "its own CPUs with -l",
		 cpu, who);
}

/* Checks the claim, not the EAL's warning, which --log-level may hide. */
void ping_look_for_pollers(struct ping_outcome *outcome)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct plx_cpu_holder holder;
		int fd;

		if (!CPU_ISSET(cpu, &cpus))
			continue;
		int rc = plx_cpu_claim(cpu, &fd, &holder);

		if (rc == 0)
			close(fd);
		else if (rc == -EBUSY && holder.pid != getpid())
			warn(outcome, cpu, holder.pid);
	}
}
