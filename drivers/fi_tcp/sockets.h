/* SPDX-License-Identifier: BSD-3-Clause */
/* The search for accepted connections of fi_tcp.c, also for its test. */
#ifndef FI_TCP_SOCKETS_H
#define FI_TCP_SOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Make the caller's connection from that peer to that local port close-on-exec. Checks at most
 * looks_max descriptors, one system call each, and skips known accepted connections. Return: the
 * descriptor, which sockets_forget must get before it is closed; -1 not found: it lies past
 * looks_max descriptors and stays inheritable, or the peer has already reset it. */
int sockets_close_on_exec_accepted(uint16_t port, const struct sockaddr *peer, size_t peer_len,
				   unsigned looks_max);

/* Call before closing the descriptor. Accepts -1. */
void sockets_forget(int fd);

#endif
