/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer process and its user. */
#ifndef SHM_PEER_H
#define SHM_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* From the kernel, as of connecting, and from the peer's message. */
struct shm_peer {
	pid_t pid;
	uid_t user;
	bool same_user;                      /* as this process */
	uint64_t probe_address, probe_value; /* a word of its memory that identifies it */
};

/* Fill in everything except the probe. Return: whether we may talk to it; if not, the log has the
 * reason. */
bool peer_identify(int fd, struct shm_peer *peer_out);

/* Whether we may and can read its memory: it is the same user's, and the probe word matches. */
bool peer_can_be_read(const struct shm_peer *peer);

/* Hold the process, so that a reused pid is noticed. fd: the connection's.
 * Return: a pidfd, which the caller owns; -errno, -ESRCH if the process has exited. */
int peer_hold(int fd, const struct shm_peer *peer);

/* Whether it is still running: if so, earlier reads by its pid were from its memory. */
bool peer_is_running(int pidfd);

#endif
