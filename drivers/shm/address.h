/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of endpoints, and the names of UNIX sockets behind them. */
#ifndef SHM_ADDRESS_H
#define SHM_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct sockaddr_un;

/* Whether it is an address of this host. */
bool shm_address_is_local(const struct sockaddr *address);
socklen_t shm_address_bytes(const struct sockaddr *address);
uint16_t shm_address_port(const struct sockaddr *address);
void shm_address_set_port(struct sockaddr *address, uint16_t port);
/* Give it a port, another one than it has, that nobody has for TCP there; it stays free to be
 * taken. Return: 0; -errno there is none, or it is no address of this host. */
int address_find_port(struct sockaddr_storage *address);

/* The abstract UNIX socket names behind an address, in the order to be tried by a connector: the
 * address itself, then the wildcards that cover it. A listener uses the first alone. Returns how
 * many, at most 3. */
int shm_address_names(const struct sockaddr *address, struct sockaddr_un *names_out,
		      socklen_t *lengths_out);

/* Any user can bind any name, so each has others that stand for it where another user has those
 * before: index 0 is the name itself. Returns the length. */
#define SHM_NAME_STANDINS 4
socklen_t shm_address_standin(const struct sockaddr_un *name, socklen_t length, unsigned index,
			      struct sockaddr_un *standin_out);
/* Whether another user has that name, or by now nobody has. With FI_PLX_SHM_GROUP nobody is another
 * user; nor is who the kernel does not tell. */
bool shm_name_is_foreign(const struct sockaddr_un *name, socklen_t length);

/* For fi_getname and its like: -FI_ETOOSMALL and what fits, where it does not. */
int address_give(const struct sockaddr_storage *address, void *out, size_t *bytes);
/* Check an address of a caller, and copy it: -FI_EINVAL. */
int address_take(const void *address, size_t bytes, struct sockaddr_storage *out);

#endif
