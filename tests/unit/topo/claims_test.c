/* SPDX-License-Identifier: BSD-3-Clause */
#include "folder.h"
#include "own_network.h"

#include "topo_priv.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPU (PLX_CPU_MAX - 9) /* no host has it today */

static char root[FOLDER_BYTES];
static struct plx_cpu_claimed claims[8];

static int make_root(void **state)
{
	folder_make(root);
	return 0;
}

static int remove_root(void **state)
{
	return folder_remove(root);
}

#define TEST(name) PLX_TEST_WITH(name, make_root, remove_root)

#define HEAD       "Num       RefCount Protocol Flags    Type St Inode Path\n"

/* Give a process the same list of sockets as another: they share a network namespace. */
static void share(const char *from, const char *to)
{
	char source[256], target[256];

	folder_put(root, to, ""); /* creates the folders */
	snprintf(source, sizeof(source), "%s%s", root, from);
	snprintf(target, sizeof(target), "%s%s", root, to);
	assert_int_equal(unlink(target), 0);
	assert_int_equal(link(source, target), 0);
}

static unsigned list(unsigned max)
{
	return plx_cpu_claims(root, claims, max);
}

TEST(claims_are_names_of_sockets_that_listen)
{
	assert_int_equal(list(8), 0);
	folder_put(root, "/proc/net/unix",
		   HEAD
		   "0000000000000001: 00000003 00000000 00000000 0001 03  1056\n"
		   "0000000000000002: 00000002 00000000 00010000 0001 01 222 @pollux/cpu/11\n"
		   "0000000000000003: 00000002 00000000 00010000 0001 01 333 @pollux/cpu/3.2\n"
		   "0000000000000004: 00000002 00000000 00000000 0001 03 444 @pollux/cpu/4\n"
		   "0000000000000005: 00000002 00000000 00010000 0001 01 555 @pollux/cpu/x\n"
		   "0000000000000006: 00000002 00000000 00010000 0001 01 666 /run/pollux/cpu/7\n"
		   "0000000000000007: 00000002 00000000 00010000 0001 01 777 @pollux/cpu/4096\n");
	assert_int_equal(list(8), 2);
	assert_int_equal(claims[0].cpu, 3);
	assert_int_equal(claims[0].inode, 333);
	assert_false(claims[0].elsewhere);
	assert_int_equal(claims[1].cpu, 11);
	assert_int_equal(list(1), 1);
}

TEST(claims_of_other_network_namespaces_are_marked_and_listed_once)
{
	folder_put(root, "/proc/net/unix", HEAD "1: 2 0 00010000 0001 01 22 @pollux/cpu/2\n");
	share("/proc/net/unix", "/proc/10/net/unix");
	folder_put(root, "/proc/11/net/unix", HEAD "1: 2 0 00010000 0001 01 33 @pollux/cpu/1\n");
	share("/proc/11/net/unix", "/proc/12/net/unix");
	folder_put(root, "/proc/13/net/unix", HEAD);
	folder_put(root, "/proc/irq/net/unix", HEAD "1: 2 0 00010000 0001 01 44 @pollux/cpu/5\n");
	assert_int_equal(list(8), 2);
	assert_int_equal(claims[0].cpu, 1);
	assert_int_equal(claims[0].inode, 33);
	assert_true(claims[0].elsewhere);
	assert_int_equal(claims[1].cpu, 2);
	assert_false(claims[1].elsewhere);
}

static bool is_listed_elsewhere(unsigned cpu)
{
	static struct plx_cpu_claimed all[1024];
	unsigned count = plx_cpu_claims(NULL, all, PLX_ARRAY_LEN(all));

	for (unsigned i = 0; i < count; i++)
		if (all[i].cpu == cpu && all[i].elsewhere)
			return true;
	return false;
}

/* A child in its own network namespace that claims the CPU. Return: its pid; 0 if it may not have
 * a namespace. */
static pid_t start_elsewhere(void)
{
	int told[2], claim;
	char byte = 0;

	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool own = unshare(CLONE_NEWNET) == 0 || own_user_namespace();

		if (!own || plx_cpu_claim(CPU, &claim, NULL) || write(told[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	if (read(told[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(told[0]);
	return pid;
}

PLX_TEST(a_claim_in_another_network_namespace_is_seen_while_its_process_lives)
{
	pid_t pid = start_elsewhere();
	int claim;

	if (!pid) {
		print_message("skipped: this user may not create a network namespace\n");
		skip();
	}
	bool listed = is_listed_elsewhere(CPU);
	int rc = plx_cpu_claim(CPU, &claim, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(listed);
	assert_int_equal(rc, 0); /* its name is another one */
	close(claim);
	assert_false(is_listed_elsewhere(CPU));
}

TEST(the_search_starts_at_the_lowest_cpu_if_proc_has_all_processes)
{
	struct plx_cpuset cpus = {0};

	assert_int_equal(plx_cpu_first(root, &cpus), PLX_CPU_MAX);
	plx_cpuset_add(&cpus, 3);
	plx_cpuset_add(&cpus, 5);
	assert_false(plx_cpu_claims_hidden(root));
	assert_int_equal(plx_cpu_first(root, &cpus), 3);
}

TEST(the_search_in_a_pid_namespace_starts_where_the_network_namespace_says)
{
	struct plx_cpuset cpus = {0};
	char path[256];
	struct stat network;

	for (unsigned cpu = 0; cpu < 512; cpu++)
		plx_cpuset_add(&cpus, cpu);
	folder_put(root, "/proc/self/ns/pid", "");
	assert_true(plx_cpu_claims_hidden(root));
	assert_int_equal(plx_cpu_first(root, &cpus), 0); /* no number to hash */
	folder_put(root, "/proc/self/ns/net", "");
	snprintf(path, sizeof(path), "%s/proc/self/ns/net", root);
	assert_int_equal(stat(path, &network), 0);
	assert_int_equal(plx_cpu_first(root, &cpus), topo_spread(&cpus, network.st_ino));
}

/* A container takes five or six numbers, one for each of its namespaces. */
PLX_TEST(containers_that_start_one_after_another_spread_over_the_cpus)
{
	struct plx_cpuset cpus = {0};
	unsigned found[12] = {0};

	for (unsigned cpu = 4; cpu < 12; cpu++)
		plx_cpuset_add(&cpus, cpu);
	for (unsigned step = 1; step <= 8; step++) {
		memset(found, 0, sizeof(found));
		for (unsigned i = 0; i < 80; i++)
			found[topo_spread(&cpus, 4026532176u + i * step)]++;
		for (unsigned cpu = 4; cpu < 12; cpu++)
			if (found[cpu] < 2 || found[cpu] > 20)
				fail_msg("step %u: %u of 80 on CPU %u", step, found[cpu], cpu);
	}
}

PLX_TEST_MAIN()
