/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of UNIX sockets behind addresses. */
#ifndef SHM_NAME_H
#define SHM_NAME_H

#include <stdbool.h>
#include <sys/socket.h>

struct sockaddr_un;

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

#endif
