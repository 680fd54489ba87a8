/* SPDX-License-Identifier: BSD-3-Clause */
/* What lib/base does for the other libraries, and programs that are no part of Pollux do not need:
 * not installed. */
#ifndef BASE_INTERNAL_H
#define BASE_INTERNAL_H

#include "plx_base.h"

struct sockaddr_un;

/** Names of Pollux' own protocols, for people. */
#define PLX_NAME_NETIO "NetIO"
#define PLX_NAME_RPC   "Pollux RPC"

/** The protocol that begins with these bytes, for people: "HTTP", "TLS", "SSH", "ZeroMQ", "a Pollux
 * link", PLX_NAME_NETIO or PLX_NAME_RPC. Constant text; NULL: none of them. Thread: any. */
const char *plx_sounds_like(const void *bytes, size_t length);

/** Whether that user or group id means one user or group. The overflow id does not where some ids
 * of other users have no number in this user namespace: all of those look like it
 * (user_namespaces(7)). The paths are those of proc(5): sys/kernel/overflowuid and self/uid_map.
 * Thread: any. */
bool plx_id_is_known(uint32_t id, const char *overflow_path, const char *map_path);

PLX_BEGIN_DECLS /* what lib/app or plx-params uses, too */

/** Whether that is the effective user of this process, and no other. Thread: any. */
bool plx_is_this_user(uid_t user);

/** The user who made the UNIX socket that is bound to that address and is not connected, in this
 * network namespace. Costs some microseconds and one for each hundred sockets of the host. Thread:
 * setup. Return: 0; -ESRCH there is none; else -errno: the kernel does not tell (before 5.3, or
 * without unix_diag). */
int plx_unix_owner(const struct sockaddr_un *address, size_t length, uid_t *user_out);

/** Append an item to a list in a text, after ", " if it is not the first. out: a string, of at most
 * size bytes; what does not fit is cut. Thread: any. */
void plx_list_add(char *out, size_t size, const char *item);

PLX_END_DECLS

/** Whether a file of this process, a memfd included, may have size_bytes. Beyond the limit
 * (RLIMIT_FSIZE, `ulimit -f`) the kernel sends SIGXFSZ, which ends the process, to a thread that
 * only tries. Thread: any. Return: 0; -EFBIG, the text names the limit. */
int plx_file_fits(uint64_t size_bytes);

/** ftruncate(2) that asks plx_file_fits first. Thread: any. Return: 0; -EFBIG; -errno. */
int plx_file_resize(int fd, uint64_t size_bytes);

/** Whether memory that is taken from here on stays out of core dumps: zones, and rings that are
 * shared with other processes. Off at first. Thread: setup. */
void plx_dump_leave_out(bool on);

/** Memory of that kind was mapped: leave it out (MADV_DONTDUMP), if that is on. Thread: any. */
void plx_dump_mark(void *base, size_t size_bytes);

#endif
