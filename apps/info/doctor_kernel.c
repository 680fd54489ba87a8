/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock source, and time stolen by the hypervisor. */
#include "doctor_priv.h"

#include <string.h>

#define STEAL_TOO_MUCH    0.005
#define CLOCK_PPM_DOUBTED 50.0

static bool reads_tsc(const struct info_kernel *kernel)
{
	return strcmp(kernel->clock.source, "tsc") == 0;
}

void doctor_check_tsc(struct report *report)
{
	const struct info_kernel *kernel = &report->info->kernel;

	/* A physical host without one cannot fix it; the clock line shows it. */
	if (!reads_tsc(kernel) || kernel->clock.invariant || !kernel->guest)
		return;
	doctor_find(report, INFO_PROBLEM, "tsc",
		    "the counter that all times are read from may change its rate or differ "
		    "between CPUs; figures cannot be trusted",
		    "the hypervisor does not promise an invariant TSC");
	doctor_suggest(report, "on the hypervisor: pass it through (QEMU: -cpu "
			       "host,migratable=no,+invtsc)");
}

void doctor_check_clocksource(struct report *report)
{
	const struct info_kernel *kernel = &report->info->kernel;

	bool has_tsc = strstr(kernel->clocksources, "tsc");

	/* A guest that only has its hypervisor's clock cannot choose another. */
	if (!reads_tsc(kernel) || !kernel->clocksource[0] ||
	    strcmp(kernel->clocksource, "tsc") == 0 || (kernel->guest && !has_tsc))
		return;
	doctor_find(report, INFO_ADVICE, "clocksource",
		    "the kernel may have found the TSC unstable, which Pollux reads; and "
		    "clock_gettime is slower by this source",
		    "the kernel's clock is '%s', not 'tsc'", kernel->clocksource);
	if (has_tsc)
		doctor_suggest(report, "echo tsc | sudo tee /sys/devices/system/clocksource/"
				       "clocksource0/current_clocksource");
	else
		doctor_suggest(report, "sudo dmesg | grep -i tsc   # why it was given up; newer "
				       "firmware may help");
}

void doctor_check_calibration(struct report *report)
{
	const struct info_kernel *kernel = &report->info->kernel;

	if (kernel->clock.residual_ppm <= CLOCK_PPM_DOUBTED)
		return;
	doctor_find(report, INFO_NOTE, "clock-calibration",
		    "times are wrong by that much, which a busy host causes",
		    "the clock's frequency is known to %.0f ppm only", kernel->clock.residual_ppm);
	doctor_suggest(report, "plx-info --doctor   # again, when less runs here");
}

void doctor_check_steal(struct report *report)
{
	const struct info_kernel *kernel = &report->info->kernel;

	if (kernel->steal < STEAL_TOO_MUCH)
		return;
	doctor_find(report, INFO_ADVICE, "steal",
		    "while the hypervisor runs another guest a poller stands still, for "
		    "milliseconds at a time",
		    "%.1f %% of the CPU time since boot went to other guests of the host",
		    kernel->steal * 100);
	doctor_suggest(report,
		       "on the hypervisor: pin this guest's CPUs (virsh vcpupin), and do not "
		       "overcommit them");
}
