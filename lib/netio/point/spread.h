/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening socket that spreads its connections over lcores. It has a struct acceptor on each
 * lcore, all with the same number (session.h); the socket's own is one of them. These functions
 * also accept an acceptor that is not spread. */
#ifndef NETIO_SPREAD_H
#define NETIO_SPREAD_H

#include "accept.h"

/* Create the acceptors of the other lcores as copies of this one, which has `bytes`. Thread: the
 * lcore of the socket, as for all functions with `own`. Return: 0; -ENOMEM: release `own`. */
int spread_create(struct acceptor *own, size_t bytes, enum netio_spread how);

/* The socket listens: make attr place connections. */
void spread_listen(struct acceptor *own, struct plx_listen_attr *attr);

/* Accept no more; the other lcores close their connections. */
void spread_close(struct acceptor *own);

/* Return whether any lcore has connections. */
bool spread_any_open(const struct acceptor *own);

/* The socket is released: the other lcores release their acceptors. */
void spread_release(struct acceptor *own);

/* Thread of the functions below: the lcore of the acceptor. */
bool spread_is_closed(const struct acceptor *acceptor);

/* Count one more connection. Return: false: refuse it. */
bool spread_enter(struct acceptor *acceptor);

/* A counted connection has ended. */
void spread_leave(struct acceptor *acceptor);

/* The acceptor is about to be freed. */
void spread_forget(struct acceptor *acceptor);

#endif
