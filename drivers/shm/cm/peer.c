/* SPDX-License-Identifier: BSD-3-Clause */
#include "../shm.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static bool is_listed(int fd, gid_t group)
{
	socklen_t bytes = 0;
	gid_t none, *groups;
	bool found = false;

	/* Called without room, it returns the size needed. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &none, &bytes) == 0 || errno != ERANGE)
		return false;
	groups = malloc(bytes);
	if (!groups)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes))
		bytes = 0;
	for (size_t i = 0; i < bytes / sizeof(*groups); i++)
		found |= groups[i] == group;
	free(groups);
	return found;
}

static bool is_member(int fd, gid_t primary)
{
	gid_t group = shm_params.group;

	return shm_params.has_group &&
	       plx_id_is_known(group, "/proc/sys/kernel/overflowgid", "/proc/self/gid_map") &&
	       (primary == group || is_listed(fd, group));
}

bool peer_identify(int fd, struct shm_peer *peer_out)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes))
		return false;
	*peer_out = (struct shm_peer){
		.pid = peer.pid, .user = peer.uid, .same_user = plx_is_this_user(peer.uid)};
	if (peer_out->same_user || is_member(fd, peer.gid))
		return true;
	if (peer.uid == geteuid())
		shm_log(FI_LOG_WARN,
			"process %d is refused: user %u is what every user looks like that has no "
			"number in this user namespace",
			(int)peer.pid, (unsigned)peer.uid);
	else
		shm_log(FI_LOG_WARN,
			"process %d of user %u is refused: this one is of user %u; "
			"see FI_PLX_SHM_GROUP to let a group in",
			(int)peer.pid, (unsigned)peer.uid, (unsigned)geteuid());
	return false;
}

/* The system call finds the process by its pid once, for all pieces. By then the pid may be another
 * process's, so the last piece is the probe word: where it matches, all pieces came from the memory
 * that has it, and before the endpoint there cleared it. That costs less than holding the process
 * by a pidfd and asking about it. */
ssize_t peer_read(const struct shm_peer *peer, struct iovec *to, int to_count, struct iovec *from,
		  int from_count)
{
	uint64_t probe = 0;
	ssize_t got;

	to[to_count] = (struct iovec){&probe, sizeof(probe)};
	from[from_count] = (struct iovec){(void *)(uintptr_t)peer->probe_address, sizeof(probe)};
	got = process_vm_readv(peer->pid, to, (unsigned long)to_count + 1, from,
			       (unsigned long)from_count + 1, 0);
	to[to_count] = (struct iovec){0};
	if (got < 0)
		return -errno;
	return probe == peer->probe_value ? got - (ssize_t)sizeof(probe) : -ESRCH;
}

bool peer_can_be_read(const struct shm_peer *peer)
{
	struct iovec to[1], from[1];

	return shm_params.cma && peer->same_user && peer->pid > 0 &&
	       peer_read(peer, to, 0, from, 0) == 0;
}
