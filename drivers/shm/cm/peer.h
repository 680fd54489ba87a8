/* SPDX-License-Identifier: BSD-3-Clause */
/* The process at the other end of a connection, and its user. */
#ifndef SHM_PEER_H
#define SHM_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* As the kernel said when it connected, and as its message told. */
struct shm_peer {
	pid_t pid;
	uid_t user;
	bool same_user;                      /* as this process */
	uint64_t probe_address, probe_value; /* a word of its memory, by which it is known again */
};

/* Who it is, its probe excepted. Return: whether it may be talked to; if not, the log says why. */
bool peer_identify(int fd, struct shm_peer *peer_out);

/* Whether its memory may be read and can be: of the same user alone, and the word is there. */
bool peer_can_be_read(const struct shm_peer *peer);

/* Hold the process, so that another process that gets its pid is recognised. fd: the connection's.
 * Return: a pidfd, the caller's; -errno, -ESRCH where that process is not there any more. */
int peer_hold(int fd, const struct shm_peer *peer);

/* Whether it was running until now: what was read by its pid before was its memory. */
bool peer_is_running(int pidfd);

#endif
