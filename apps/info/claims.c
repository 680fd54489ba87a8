/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs claimed by Pollux processes. A claim is a listening abstract socket. So the kernel's list of
 * sockets has all claims, and the descriptors in /proc identify the owners. Connecting to ask would
 * fill the socket's queue. */
#include "info.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLAIM_PREFIX       "@pollux/cpu/"
#define UNIX_TEXT_MAX      (4u << 20)
#define FLAG_ACCEPTS_LINKS 0x10000 /* __SO_ACCEPTCON: a listening socket */

/* A line is "Num RefCount Protocol Flags Type St Inode Path", the first six in hex. */
static bool parse_claim(const char *line, struct info_claim *claim)
{
	unsigned flags;
	unsigned long long inode;
	int path_at = 0;

	if (sscanf(line, "%*s %*x %*x %x %*x %*x %llu %n", &flags, &inode, &path_at) < 2 ||
	    !path_at)
		return false;
	const char *path = line + path_at;
	if (!(flags & FLAG_ACCEPTS_LINKS) || strncmp(path, CLAIM_PREFIX, strlen(CLAIM_PREFIX)))
		return false;
	const char *digits = path + strlen(CLAIM_PREFIX);
	char *end;
	unsigned long cpu = strtoul(digits, &end, 10);
	if (end == digits || cpu >= PLX_CPU_MAX)
		return false;
	*claim = (struct info_claim){.cpu = (unsigned)cpu, .inode = inode};
	return true;
}

static int by_cpu(const void *a, const void *b)
{
	const struct info_claim *left = a, *right = b;

	return (left->cpu > right->cpu) - (left->cpu < right->cpu);
}

unsigned info_parse_claims(const char *text, struct info_claim *claims, unsigned max)
{
	unsigned count = 0;

	for (const char *line = text; line && count < max;) {
		char one[256];

		snprintf(one, sizeof(one), "%.*s", (int)strcspn(line, "\n"), line);
		count += parse_claim(one, &claims[count]);
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	qsort(claims, count, sizeof(claims[0]), by_cpu);
	return count;
}

/* The inode of "socket:[N]", or 0. */
static uint64_t socket_inode(int fd_dir, const char *name)
{
	char target[64];
	unsigned long long inode;
	ssize_t len = readlinkat(fd_dir, name, target, sizeof(target) - 1);

	if (len <= 0)
		return 0;
	target[len] = '\0';
	return sscanf(target, "socket:[%llu]", &inode) == 1 ? inode : 0;
}

static void note_holder(const char *root, pid_t pid, uint64_t inode, struct info_cpus *cpus)
{
	for (unsigned i = 0; i < cpus->claim_count; i++) {
		struct info_claim *claim = &cpus->claims[i];

		if (claim->inode != inode)
			continue;
		claim->pid = pid;
		info_read_command(root, pid, claim->command, sizeof(claim->command));
	}
}

static void find_claims_of(const char *root, pid_t pid, struct info_cpus *cpus)
{
	DIR *fds = info_open_dir("%s/proc/%d/fd", root, (int)pid);
	int fd = fds ? dirfd(fds) : -1;
	const char *name;

	while (fd >= 0 && (name = info_next_name(fds))) {
		uint64_t inode = socket_inode(fd, name);

		if (inode)
			note_holder(root, pid, inode, cpus);
	}
	info_close_dir(fds);
}

static void find_holders(const char *root, struct info_cpus *cpus)
{
	DIR *processes = info_open_dir("%s/proc", root);
	pid_t pid;

	while ((pid = info_next_number(processes)))
		find_claims_of(root, pid, cpus);
	info_close_dir(processes);
}

void info_gather_claims(const char *root, struct info_cpus *cpus)
{
	char *text = malloc(UNIX_TEXT_MAX);

	cpus->claim_count = cpus->sharer_count = 0;
	if (text && info_read(text, UNIX_TEXT_MAX, "%s/proc/net/unix", root))
		cpus->claim_count = info_parse_claims(text, cpus->claims, INFO_CLAIMS_MAX);
	free(text);
	if (cpus->claim_count == 0)
		return;
	find_holders(root, cpus);
	info_gather_sharers(root, cpus);
}
