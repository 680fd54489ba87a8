/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs claimed by Pollux processes. A claim is a listening abstract socket, so the descriptors in
 * /proc identify the owners. Connecting to ask would fill the socket's queue.
 * A second process that polls a claimed CPU only gets a warning. It leaves no socket, so it is
 * recognized by its lcores: threads of a process that has mapped the library, bound to CPUs that
 * are all claimed. */
#include "info.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY      "/libpollux.so"
#define WORKER_NAME  "plx-lcore-" /* of every lcore except the main thread */
#define STATUS_BYTES 16384

/* The inode of a descriptor of a socket, which is a link to "socket:[N]"; 0: it is none. */
static uint64_t socket_inode(const char *path)
{
	char target[64];
	unsigned long long inode;
	ssize_t len = readlink(path, target, sizeof(target) - 1);

	if (len <= 0)
		return 0;
	target[len] = '\0';
	return sscanf(target, "socket:[%llu]", &inode) == 1 ? inode : 0;
}

/* The name that the process gave itself, printable; "" if there is no such process. */
static void read_command(const char *root, pid_t pid, char *out, size_t size)
{
	char name[32];

	plx_read_file(name, sizeof(name), "%s/proc/%d/comm", root, (int)pid);
	plx_printable(name, out, size);
}

/* The number that the path of a process or thread ends with. */
static pid_t id_of(const char *path)
{
	return atoi(strrchr(path, '/') + 1);
}

static void note_holder(const char *root, pid_t pid, uint64_t inode, struct info_cpus *cpus)
{
	for (unsigned i = 0; i < cpus->claim_count; i++) {
		struct info_claim *claim = &cpus->claims[i];

		if (claim->inode != inode)
			continue;
		claim->pid = pid;
		read_command(root, pid, claim->command, sizeof(claim->command));
	}
}

static void find_claims_of(const char *root, pid_t pid, struct info_cpus *cpus)
{
	glob_t fds = info_glob("%s/proc/%d/fd/*", root, (int)pid);

	for (size_t i = 0; i < fds.gl_pathc; i++) {
		uint64_t inode = socket_inode(fds.gl_pathv[i]);

		if (inode)
			note_holder(root, pid, inode, cpus);
	}
	globfree(&fds);
}

/* Sharers ------------------------------------------------------------------------------------- */

/* Needs the same rights as reading descriptors, so an owner that could not be identified is not
 * mistaken for a sharer. */
static bool has_library(const char *root, pid_t pid)
{
	char path[256];
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	snprintf(path, sizeof(path), "%s/proc/%d/maps", root, (int)pid);
	FILE *maps = fopen(path, "re");
	if (!maps)
		return false;
	while (!found && getline(&line, &size, maps) > 0)
		found = strstr(line, LIBRARY) != NULL;
	free(line);
	fclose(maps);
	return found;
}

static bool is_lcore(const char *root, pid_t pid, pid_t tid)
{
	char name[32];

	if (tid == pid)
		return true;
	plx_read_file(name, sizeof(name), "%s/proc/%d/task/%d/comm", root, (int)pid, (int)tid);
	return strncmp(name, WORKER_NAME, strlen(WORKER_NAME)) == 0;
}

static bool read_affinity(const char *root, pid_t pid, pid_t tid, struct plx_cpuset *out)
{
	char text[STATUS_BYTES], list[4096];

	plx_read_file(text, sizeof(text), "%s/proc/%d/task/%d/status", root, (int)pid, (int)tid);
	info_find_value(text, "Cpus_allowed_list", false, list, sizeof(list));
	return info_parse_cpulist(list, out);
}

/* Whether a process has claimed the CPU, in any network namespace; pid 0: any process. */
static bool is_claimed(const struct info_cpus *cpus, unsigned cpu, pid_t pid)
{
	for (unsigned i = 0; i < cpus->claim_count; i++)
		if (cpus->claims[i].cpu == cpu && (pid == 0 || cpus->claims[i].pid == pid))
			return true;
	return false;
}

/* All CPUs of an lcore are claimed, by its process or earlier by another. A thread that may run
 * anywhere is not bound. */
static bool is_kept_to_claims(const struct info_cpus *cpus, const struct plx_cpuset *affinity)
{
	if (plx_cpuset_count(affinity) > 1 && plx_cpuset_equal(affinity, &cpus->allowed))
		return false;
	PLX_CPUSET_FOREACH (cpu, affinity)
		if (!is_claimed(cpus, cpu, 0))
			return false;
	return true;
}

/* The CPUs that the process's lcores are bound to, if it is a Pollux program. */
static struct plx_cpuset polled_by(const char *root, pid_t pid, const struct info_cpus *cpus)
{
	glob_t threads = info_glob("%s/proc/%d/task/[0-9]*", root, (int)pid);
	struct plx_cpuset polled = {0}, affinity;

	for (size_t i = 0; i < threads.gl_pathc; i++) {
		pid_t tid = id_of(threads.gl_pathv[i]);

		if (!read_affinity(root, pid, tid, &affinity) ||
		    !is_kept_to_claims(cpus, &affinity) || !is_lcore(root, pid, tid))
			continue;
		PLX_CPUSET_FOREACH (cpu, &affinity)
			plx_cpuset_add(&polled, cpu);
	}
	globfree(&threads);
	return polled;
}

static void note_sharer(const char *root, pid_t pid, unsigned cpu, struct info_cpus *cpus)
{
	if (is_claimed(cpus, cpu, pid) || cpus->sharer_count == INFO_SHARERS_MAX)
		return;
	struct info_sharer *sharer = &cpus->sharers[cpus->sharer_count++];
	*sharer = (struct info_sharer){.cpu = cpu, .pid = pid};
	read_command(root, pid, sharer->command, sizeof(sharer->command));
}

static void find_shared_by(const char *root, pid_t pid, struct info_cpus *cpus)
{
	struct plx_cpuset polled = polled_by(root, pid, cpus);

	if (plx_cpuset_count(&polled) == 0 || !has_library(root, pid))
		return;
	PLX_CPUSET_FOREACH (cpu, &polled)
		note_sharer(root, pid, cpu, cpus);
}

static int by_cpu_and_pid(const void *a, const void *b)
{
	const struct info_sharer *left = a, *right = b;

	return left->cpu != right->cpu ? (int)left->cpu - (int)right->cpu : left->pid - right->pid;
}

/* Once the claims of a process are known, its further lcores share. */
static void look_at_processes(const char *root, struct info_cpus *cpus)
{
	glob_t processes = info_glob("%s/proc/[0-9]*", root);

	for (size_t i = 0; i < processes.gl_pathc; i++) {
		pid_t pid = id_of(processes.gl_pathv[i]);

		find_claims_of(root, pid, cpus);
		if (pid != getpid())
			find_shared_by(root, pid, cpus);
	}
	globfree(&processes);
	qsort(cpus->sharers, cpus->sharer_count, sizeof(cpus->sharers[0]), by_cpu_and_pid);
}

void info_gather_claims(const char *root, struct info_cpus *cpus)
{
	struct plx_cpu_claimed claimed[INFO_CLAIMS_MAX];

	cpus->sharer_count = 0;
	cpus->claims_hidden = plx_cpu_claims_hidden(root);
	cpus->claim_count = plx_cpu_claims(root, claimed, INFO_CLAIMS_MAX);
	for (unsigned i = 0; i < cpus->claim_count; i++)
		cpus->claims[i] = (struct info_claim){.cpu = claimed[i].cpu,
						      .inode = claimed[i].inode,
						      .elsewhere = claimed[i].elsewhere};
	if (cpus->claim_count)
		look_at_processes(root, cpus);
}
