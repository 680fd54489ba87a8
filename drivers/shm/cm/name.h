/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of the UNIX sockets for addresses. */
#ifndef SHM_NAME_H
#define SHM_NAME_H

#include <stdbool.h>
#include <sys/socket.h>

struct sockaddr_un;

/* The abstract UNIX socket names for an address, in the order that a connector tries them: the
 * address itself, then the wildcards that cover it. A listener uses only the first. Returns how
 * many, at most 3. */
int shm_address_names(const struct sockaddr *address, struct sockaddr_un *names_out,
		      socklen_t *lengths_out);

/* Any user can bind any name. So each name has substitutes, used when another user holds the
 * earlier ones; index 0 is the name itself. Returns the length. */
#define SHM_NAME_STANDINS 4
socklen_t shm_address_standin(const struct sockaddr_un *name, socklen_t length, unsigned index,
			      struct sockaddr_un *standin_out);
/* Whether another user holds the name, or nobody does by now. With FI_PLX_SHM_GROUP no user counts
 * as another, nor does one that the kernel does not report. */
bool shm_name_is_foreign(const struct sockaddr_un *name, socklen_t length);

#endif
