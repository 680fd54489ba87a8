/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel, its clock, the hypervisor, and the cgroup's CPU quota. */
#include "info.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#ifdef __x86_64__
#include <cpuid.h>

/* CPUID 1 ECX bit 31 is set in guests; leaf 40000000h names the hypervisor. */
static bool ask_cpu(char *name, size_t size)
{
	unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
	unsigned words[4] = {0};

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & 1u << 31))
		return false;
	__cpuid(0x40000000, eax, words[0], words[1], words[2]);
	snprintf(name, size, "%.12s", (const char *)words);
	return true;
}
#else
static bool ask_cpu(char *name, size_t size)
{
	return false;
}
#endif

const char *info_hypervisor_name(const char *name)
{
	static const char *const names[][2] = {
		{"KVMKVMKVM", "KVM"},           {"Microsoft Hv", "Hyper-V"},
		{"VMwareVMware", "VMware"},     {"XenVMMXenVMM", "Xen"},
		{"TCGTCGTCGTCG", "QEMU"},       {"bhyve bhyve ", "bhyve"},
		{"VBoxVBoxVBox", "VirtualBox"}, {"ACRNACRNACRN", "ACRN"},
		{" lrpepyh  vr", "Parallels"},  {"OpenBSDVMM58", "OpenBSD VMM"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(names); i++) {
		if (strcmp(names[i][0], name) == 0)
			return names[i][1];
	}
	return name;
}

/* The first line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks. guest and
 * guest_nice follow; user and nice already include them. */
static double read_steal(const char *root)
{
	char path[256];
	unsigned long long ticks[8], total = 0;
	int got = 0;

	snprintf(path, sizeof(path), "%s/proc/stat", root);
	FILE *file = fopen(path, "re");
	if (!file)
		return -1;
	got = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1],
		     &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]);
	fclose(file);
	if (got != 8)
		return -1;
	for (int i = 0; i < 8; i++)
		total += ticks[i];
	return total ? (double)ticks[7] / (double)total : 0;
}

void info_gather_kernel(const char *root, struct info_kernel *kernel)
{
	static const char clocks[] = "/sys/devices/system/clocksource/clocksource0";
	char hypervisor[sizeof(kernel->hypervisor)] = "";
	struct utsname name;

	memset(kernel, 0, sizeof(*kernel));
	if (uname(&name) == 0) {
		snprintf(kernel->release, sizeof(kernel->release), "%s %s", name.sysname,
			 name.release);
		snprintf(kernel->machine, sizeof(kernel->machine), "%s", name.machine);
	}
	kernel->guest = ask_cpu(hypervisor, sizeof(hypervisor));
	snprintf(kernel->hypervisor, sizeof(kernel->hypervisor), "%s",
		 info_hypervisor_name(hypervisor));
	kernel->steal = read_steal(root);
	plx_cpu_quota_read(root, &kernel->quota);
	info_read(kernel->clocksource, sizeof(kernel->clocksource), "%s%s/current_clocksource",
		  root, clocks);
	info_read(kernel->clocksources, sizeof(kernel->clocksources), "%s%s/available_clocksource",
		  root, clocks);
	kernel->clock = *plx_clock_info_read();
}
