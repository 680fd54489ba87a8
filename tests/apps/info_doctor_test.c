/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-info's advice: each rule, on a host with a single defect. */
#include "info_fixture.h"

/* The doctor must find exactly this. Restores the host. */
static void assert_only_finding(const char *id, enum info_severity severity, const char *seen_part,
				const char *command_part)
{
	struct info_finding findings[INFO_FINDINGS_MAX];
	unsigned count = info_doctor(info, findings);

	if (count != 1)
		fail_msg("%u findings instead of one, '%s'; the first is '%s'", count, id,
			 count ? findings[0].id : "");
	assert_string_equal(findings[0].id, id);
	assert_int_equal(findings[0].severity, severity);
	if (!strstr(findings[0].seen, seen_part))
		fail_msg("'%s' lacks '%s'", findings[0].seen, seen_part);
	if (!strstr(findings[0].command, command_part))
		fail_msg("'%s' lacks '%s'", findings[0].command, command_part);
	assert_true(strlen(findings[0].why) > 20);
	assert_true(strlen(findings[0].command) > 0); /* every finding has a remedy */
	restore_host();
}

PLX_TEST(the_doctor_on_cpus)
{
	sound_host();
	info_parse_cpulist("2", &info->cpus.allowed);
	info->cpus.one_per_core = info->cpus.isolated = info->cpus.allowed;
	assert_only_finding("one-cpu", INFO_PROBLEM, "CPU 2 alone", "taskset -c 0-3");

	info_parse_cpulist("0-1", &info->cpus.allowed);
	info->cpus.one_per_core = info->cpus.allowed;
	assert_only_finding("isolated-cpus", INFO_ADVICE, "CPUs 2-3 are isolated",
			    "taskset -c 2-3 plx-echo -l 2-3");

	memset(&info->cpus.isolated, 0, sizeof(info->cpus.isolated));
	assert_only_finding("isolation", INFO_NOTE, "no CPU is isolated",
			    "isolcpus=managed_irq,domain,1-3 nohz_full=1-3");

	info_parse_cpulist("0,2", &info->cpus.one_per_core);
	assert_only_finding("smt", INFO_NOTE, "4 CPUs on 2 cores", "-l 0,2");

	info_parse_cpulist("1,3", &info->cpus.not_governed);
	snprintf(info->cpus.governor, sizeof(info->cpus.governor), "powersave");
	assert_only_finding("governor", INFO_ADVICE, "powersave",
			    "cpupower --cpu 1,3 frequency-set -g performance");

	for (unsigned cpu = 0; cpu < 4; cpu++)
		info->cpus.claims[info->cpus.claim_count++] = (struct info_claim){.cpu = cpu};
	assert_only_finding("all-claimed", INFO_ADVICE, "every allowed CPU", "-l");
}

PLX_TEST(the_doctor_on_the_kernel)
{
	sound_host();
	info->kernel.quota.cpus = 1.5;
	info->kernel.quota.period_ms = 100;
	snprintf(info->kernel.quota.path, sizeof(info->kernel.quota.path),
		 "/sys/fs/cgroup/a/cpu.max");
	assert_only_finding("cpu-quota", INFO_PROBLEM, "1.50 CPUs in every 100 ms",
			    "tee /sys/fs/cgroup/a/cpu.max");

	info->kernel.clock.invariant = false;
	info->kernel.guest = true;
	assert_only_finding("tsc", INFO_PROBLEM, "invariant", "+invtsc");

	snprintf(info->kernel.clocksource, sizeof(info->kernel.clocksource), "hpet");
	assert_only_finding("clocksource", INFO_ADVICE, "'hpet'", "current_clocksource");

	info->kernel.clock.residual_ppm = 80;
	assert_only_finding("clock-calibration", INFO_NOTE, "80 ppm", "plx-info --doctor");

	info->kernel.steal = 0.02;
	assert_only_finding("steal", INFO_ADVICE, "2.0 %", "vcpupin");
}

PLX_TEST(the_doctor_omits_what_cannot_be_changed)
{
	struct info_finding findings[INFO_FINDINGS_MAX];

	sound_host();
	assert_int_equal(info_doctor(info, findings), 0);
	info->kernel.guest = true;
	snprintf(info->kernel.clocksource, sizeof(info->kernel.clocksource), "kvm-clock");
	snprintf(info->kernel.clocksources, sizeof(info->kernel.clocksources), "kvm-clock acpi_pm");
	assert_int_equal(info_doctor(info, findings), 0);
	/* With a choice there is a remedy. */
	snprintf(info->kernel.clocksources, sizeof(info->kernel.clocksources), "kvm-clock tsc");
	assert_int_equal(info_doctor(info, findings), 1);
}

PLX_TEST(the_doctor_on_memory)
{
	sound_host();
	info->memory.pools[0].free = 0;
	assert_only_finding("hugepages", INFO_ADVICE, "no huge page is free",
			    "sysctl vm.nr_hugepages=256");

	info->memory.pools[1] = (struct info_pool){1, 2 << 20, 64, 0};
	info->memory.pools[2] = (struct info_pool){1, 1 << 30, 0, 0};
	info->memory.pool_count = 3;
	assert_only_finding("hugepages", INFO_ADVICE, "1 of 2 NUMA nodes", "hugepages.conf");

	snprintf(info->memory.thp, sizeof(info->memory.thp), "never");
	assert_only_finding("thp", INFO_NOTE, "switched off", "madvise");

	info->memory.memlock_bytes = 8192 * 1024;
	assert_only_finding("memlock", INFO_NOTE, "8192 KiB", "ulimit -l unlimited");

	info->memory.nofile = 1024;
	assert_only_finding("nofile", INFO_NOTE, "1024", "ulimit -n 65536");

	info->memory.numa_balancing = true;
	info->cpus.node_count = 2;
	assert_only_finding("numa-balancing", INFO_ADVICE, "2 nodes",
			    "sysctl kernel.numa_balancing=0");
}

PLX_TEST(the_doctor_on_the_transport)
{
	sound_host();
	info->fabric.drivers[0].available = false;
	info->fabric.version = 1 << 16 | 17;
	assert_only_finding("no-provider", INFO_PROBLEM, "libfabric 1.17", "fi_info");
}

PLX_TEST(the_doctor_on_unusable_rdma_devices)
{
	static const struct {
		int error;
		const char *id, *seen, *command;
	} cases[] = {
		{-ENXIO, "rdma-module", "ib_uverbs is not loaded", "sudo modprobe ib_uverbs"},
		{-ENOENT, "rdma-file", "no file for it in /dev/infiniband", "udevadm trigger"},
		{-EACCES, "rdma-permission", "this user may not open", "chmod a+rw"},
		{-ENODEV, "rdma-driver", "no user-space driver", "ibverbs-providers"},
		{0, "rdma-driver", "no user-space driver", "ibverbs-providers"},
		{-EOPNOTSUPP, "rdma-build", "libibverbs was missing", "libibverbs-dev"},
		{-EIO, "rdma-open", "cannot be opened", "ibv_devinfo -v"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		sound_rdma_host();
		info->rdma.device_count = 2; /* one finding for both */
		info->rdma.devices[1] = info->rdma.devices[0];
		strcpy(info->rdma.devices[1].seen.name, "mlx5_1");
		info->rdma.devices[0].usable = info->rdma.devices[1].usable = false;
		info->rdma.devices[0].error = info->rdma.devices[1].error = cases[i].error;
		assert_only_finding(cases[i].id, INFO_PROBLEM, cases[i].seen, cases[i].command);
	}

	sound_rdma_host();
	info->rdma.cm = INFO_FILE_MISSING;
	assert_only_finding("rdma-cm", INFO_PROBLEM, "no /dev/infiniband/rdma_cm",
			    "modprobe rdma_ucm");

	info->rdma.cm = INFO_FILE_CLOSED;
	assert_only_finding("rdma-cm", INFO_PROBLEM, "this user may not open",
			    "chmod a+rw /dev/infiniband/rdma_cm");
}

static void host_with_port(const char *state, const char *phys_state, const char *link_layer,
			   const char *netdev)
{
	struct plx_rdma_port *port = &info->rdma.devices[0].seen.ports[0];

	sound_rdma_host();
	*port = (struct plx_rdma_port){.number = 1};
	strcpy(port->state, state);
	strcpy(port->phys_state, phys_state);
	strcpy(port->link_layer, link_layer);
	strcpy(port->netdev, netdev);
}

PLX_TEST(the_doctor_on_unreachable_rdma_devices)
{
	host_with_port("", "", "", "");

	assert_only_finding("rdma-port", INFO_ADVICE, "no port of mlx5_0", "ibv_devinfo -d mlx5_0");
	host_with_port("1: DOWN", "3: Disabled", "Ethernet", "eth1");
	assert_only_finding("rdma-port", INFO_ADVICE, "(port 1: DOWN, Disabled)",
			    "ip link set eth1 up");
	host_with_port("1: DOWN", "2: Polling", "InfiniBand", "");
	assert_only_finding("rdma-port", INFO_ADVICE, "Polling", "the cable");
	host_with_port("2: INIT", "5: LinkUp", "InfiniBand", "ib0");
	assert_only_finding("rdma-port", INFO_ADVICE, "INIT", "systemctl start opensm");

	/* one of two devices has no cable, which may be intended */
	info->rdma.device_count = 2;
	info->rdma.devices[1] = info->rdma.devices[0];
	info->rdma.devices[1].seen.ports[0].active = false;
	assert_only_finding("rdma-port", INFO_NOTE, "no port of mlx5_0", "ibv_devinfo");

	info->rdma.devices[0].has_address = false;
	assert_only_finding("rdma-address", INFO_ADVICE, "mlx5_0: its interface eth1 has no",
			    "sudo ip addr add ADDRESS/24 dev eth1");
}

PLX_TEST(the_doctor_on_rdma_devices_of_another_node)
{
	sound_rdma_host();
	info->cpus.node_count = 2;
	info->cpus.nodes[1].id = 1;
	info_parse_cpulist("4-7", &info->cpus.nodes[1].cpus);
	info->rdma.devices[0].seen.node = 1;
	assert_only_finding("rdma-node", INFO_ADVICE,
			    "mlx5_0 is on NUMA node 1 (CPUs 4-7), and none of the allowed CPUs "
			    "(0-3)",
			    "taskset -c 4-7 plx-info");
}

PLX_TEST(the_doctor_on_locked_memory_for_rdma)
{
	struct info_finding findings[INFO_FINDINGS_MAX];

	sound_rdma_host();
	info->memory.memlock_bytes = 8192 * 1024;
	assert_only_finding("memlock", INFO_PROBLEM, "8192 KiB",
			    "/etc/security/limits.d/pollux.conf, and log in again; in a systemd "
			    "unit LimitMEMLOCK=infinity"); /* complete */

	info->memory.memlock_bytes = 8192 * 1024;
	info->memory.memlock_exempt = true;
	assert_int_equal(info_doctor(info, findings), 0);
}

PLX_TEST(the_most_severe_findings_come_first)
{
	struct info_finding findings[INFO_FINDINGS_MAX];

	sound_host();
	info->memory.nofile = 1024;
	info->kernel.steal = 0.5;
	info->kernel.guest = true;
	info->kernel.clock.invariant = false;
	assert_int_equal(info_doctor(info, findings), 3);
	assert_string_equal(findings[0].id, "tsc");
	assert_string_equal(findings[1].id, "steal");
	assert_string_equal(findings[2].id, "nofile");
}

PLX_TEST_MAIN()
