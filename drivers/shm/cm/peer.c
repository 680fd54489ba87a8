/* SPDX-License-Identifier: BSD-3-Clause */
#include "../shm.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5, asm-generic */
#endif

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

bool peer_can_be_read(const struct shm_peer *peer)
{
	uint64_t value;
	struct iovec local = {&value, sizeof(value)};
	struct iovec remote = {(void *)(uintptr_t)peer->probe_address, sizeof(value)};

	return shm_params.cma && peer->same_user && peer->pid > 0 &&
	       process_vm_readv(peer->pid, &local, 1, &remote, 1, 0) == sizeof(value) &&
	       value == peer->probe_value;
}

int peer_hold(int fd, const struct shm_peer *peer)
{
	socklen_t bytes = sizeof(int);
	int pidfd = -1;

	/* Older kernels know only the pid, which may be another's by now: hence the probe. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes))
		pidfd = pidfd_open(peer->pid, 0);
	if (pidfd < 0)
		return -errno;
	if (peer_can_be_read(peer) && peer_is_running(pidfd))
		return pidfd;
	close(pidfd);
	return -ESRCH;
}

bool peer_is_running(int pidfd)
{
	struct pollfd pollfd = {.fd = pidfd, .events = POLLIN};

	return poll(&pollfd, 1, 0) == 0;
}
