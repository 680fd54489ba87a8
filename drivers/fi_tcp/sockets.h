/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of libfabric's, which it has no calls for. */
#ifndef FI_TCP_SOCKETS_H
#define FI_TCP_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The caller's socket that listens there becomes close-on-exec. */
void sockets_close_on_exec_listener(const struct sockaddr *address, size_t address_len);

/* Another descriptor takes the number of the socket that listens there, which is closed by that,
 * and whose owner closes it later without knowing. Return: whether there was one. */
bool sockets_give_back_port(const struct sockaddr *address, size_t address_len);

/* The caller's connection from that peer to that port of ours becomes close-on-exec. At most
 * looks_max descriptors are looked at, a system call each: those below it that are not accepted
 * connections. Return: the descriptor, to be forgotten before it is closed; -1 not found: it lies
 * behind more descriptors than that and stays inheritable, or the peer has reset it already. */
int sockets_close_on_exec_accepted(uint16_t port, const struct sockaddr *peer, size_t peer_len,
				   unsigned looks_max);

/* Before the descriptor is closed; -1 is accepted. */
void sockets_forget(int fd);

#endif
