/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processes plx-info finds polling on which CPU. */
#include "info_fixture.h"

#include <unistd.h>

static void expect_holder(int pid, const char *comm, const char *command)
{
	struct info_cpus *cpus = &info->cpus;
	char path[512];

	memset(cpus, 0, sizeof(*cpus));
	put("/proc/net/unix", "head\n0: 00000002 00000000 00010000 0001 01 77 @pollux/cpu/1\n");
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	put(path, comm);
	snprintf(path, sizeof(path), "/proc/%d/fd/0", pid);
	put(path, "");
	snprintf(path, sizeof(path), "%s/proc/%d/fd/5", root, pid);
	assert_int_equal(symlink("socket:[77]", path), 0);
	info_gather_claims(root, cpus);
	assert_int_equal(cpus->claim_count, 1);
	assert_int_equal(cpus->claims[0].pid, pid);
	assert_string_equal(cpus->claims[0].command, command);
}

MADE_UP_TEST(names_the_holder_of_a_claim)
{
	expect_holder(4321, "plx-echo\n", "plx-echo");
}

MADE_UP_TEST(names_the_holder_of_a_claim_in_another_network_namespace)
{
	struct info_cpus *cpus = &info->cpus;
	char path[512];

	memset(cpus, 0, sizeof(*cpus));
	put("/proc/net/unix", "head\n");
	put("/proc/4323/net/unix",
	    "head\n0: 00000002 00000000 00010000 0001 01 77 @pollux/cpu/1\n");
	put("/proc/4323/comm", "plx-echo\n");
	put("/proc/4323/fd/0", "");
	snprintf(path, sizeof(path), "%s/proc/4323/fd/5", root);
	assert_int_equal(symlink("socket:[77]", path), 0);
	info_gather_claims(root, cpus);
	assert_int_equal(cpus->claim_count, 1);
	assert_true(cpus->claims[0].elsewhere);
	assert_int_equal(cpus->claims[0].pid, 4323);
	assert_false(cpus->claims_hidden);
}

/* A process may choose any name: it must not control a terminal, or break the JSON. */
MADE_UP_TEST(a_name_of_a_holder_is_printable)
{
	expect_holder(4322, "\x1b[31mred\xff\n", "\\x1b[31mred\\xff");
}

/* A thread of a fake process; maps: a line of the process's maps. */
static void put_thread(unsigned pid, unsigned tid, const char *name, const char *cpus,
		       const char *maps)
{
	char path[128], text[128];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tid);
	put(path, name);
	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", pid, tid);
	snprintf(text, sizeof(text), "Name:\t%s\nCpus_allowed:\tf\nCpus_allowed_list:\t%s\n", name,
		 cpus);
	put(path, text);
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	put(path, maps);
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	put(path, name);
}

#define MAPS_POLLUX \
	"7f00-7f01 r--p 0 00:1 9 /lib/libc.so.6\n7f02-7f03 r-xp 0 00:1 9 /lib/libpollux.so.0\n"
#define MAPS_OTHER "7f00-7f01 r--p 0 00:1 9 /lib/libc.so.6\n"

/* Pids that no kernel assigns: this process itself is skipped. */
MADE_UP_TEST(names_all_processes_that_share_a_claimed_cpu)
{
	struct info_cpus *cpus = &info->cpus;
	char path[512];

	memset(cpus, 0, sizeof(*cpus));
	info_parse_cpulist("0-3", &cpus->allowed);
	put("/proc/net/unix", "head\n0: 00000002 00000000 00010000 0001 01 77 @pollux/cpu/1\n"
			      "1: 00000002 00000000 00010000 0001 01 78 @pollux/cpu/2\n");
	put_thread(5000001, 5000001, "holder", "1-2", MAPS_POLLUX);
	put("/proc/5000001/fd/0", "");
	for (unsigned i = 0; i < 2; i++) {
		char target[32];

		snprintf(path, sizeof(path), "%s/proc/5000001/fd/%u", root, 5 + i);
		snprintf(target, sizeof(target), "socket:[%u]", 77 + i);
		assert_int_equal(symlink(target, path), 0);
	}
	/* One that claimed it in another network namespace is a holder, too. */
	put("/proc/5000008/net/unix",
	    "head\n0: 00000002 00000000 00010000 0001 01 79 @pollux/cpu/1\n");
	put_thread(5000008, 5000008, "container", "1", MAPS_POLLUX);
	put("/proc/5000008/fd/0", "");
	snprintf(path, sizeof(path), "%s/proc/5000008/fd/5", root);
	assert_int_equal(symlink("socket:[79]", path), 0);
	put_thread(5000003, 5000003, "late", "1", MAPS_POLLUX);
	put_thread(5000002, 5000002, "early", "1", MAPS_POLLUX);
	put_thread(5000002, 5000009, "plx-lcore-4", "2", MAPS_POLLUX);
	put_thread(5000004, 5000004, "stranger", "1", MAPS_OTHER);
	put_thread(5000005, 5000005, "elsewhere", "1,3", MAPS_POLLUX);
	put_thread(5000006, 5000006, "anywhere", "0-3", MAPS_POLLUX);
	put_thread(5000006, 5000007, "logger", "1", MAPS_POLLUX);
	put("/proc/5000002/comm", "early");
	info_gather_claims(root, cpus);
	static const struct {
		unsigned cpu, pid;
		const char *command;
	} wanted[] = {{1, 5000002, "early"}, {1, 5000003, "late"}, {2, 5000002, "early"}};
	assert_int_equal(cpus->claim_count, 3);
	assert_int_equal(cpus->sharer_count, PLX_ARRAY_LEN(wanted));
	for (size_t i = 0; i < PLX_ARRAY_LEN(wanted); i++) {
		assert_int_equal(cpus->sharers[i].cpu, wanted[i].cpu);
		assert_int_equal(cpus->sharers[i].pid, wanted[i].pid);
		assert_string_equal(cpus->sharers[i].command, wanted[i].command);
	}
}

PLX_TEST(sees_a_claim_of_its_own_process)
{
	struct info_cpus *cpus = &info->cpus;
	const unsigned cpu = PLX_CPU_MAX - 7; /* no host has it today */
	int claim = -1;

	memset(cpus, 0, sizeof(*cpus));
	assert_int_equal(plx_cpu_claim(cpu, &claim, NULL), 0);
	info_gather_claims("", cpus);
	bool found = false;
	for (unsigned i = 0; i < cpus->claim_count; i++)
		found |= cpus->claims[i].cpu == cpu && cpus->claims[i].pid == getpid();
	close(claim);
	assert_true(found);
}

int info_claims_tests(void)
{
	return plx_test_run("tests", NULL, NULL);
}
