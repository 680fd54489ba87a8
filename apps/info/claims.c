/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs claimed by Pollux processes. A claim is a listening abstract socket, so the descriptors in
 * /proc identify the owners. Connecting to ask would fill the socket's queue. */
#include "info.h"

#include <string.h>
#include <unistd.h>

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
	struct plx_cpu_claimed claimed[INFO_CLAIMS_MAX];

	cpus->sharer_count = 0;
	cpus->claims_hidden = plx_cpu_claims_hidden(root);
	cpus->claim_count = plx_cpu_claims(root, claimed, INFO_CLAIMS_MAX);
	for (unsigned i = 0; i < cpus->claim_count; i++)
		cpus->claims[i] = (struct info_claim){.cpu = claimed[i].cpu,
						      .inode = claimed[i].inode,
						      .elsewhere = claimed[i].elsewhere};
	if (cpus->claim_count == 0)
		return;
	find_holders(root, cpus);
	info_gather_sharers(root, cpus);
}
