/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of lib/base for the other libraries and the apps. Not installed. */
#ifndef BASE_INTERNAL_H
#define BASE_INTERNAL_H

#include "plx_base.h"

#include <sys/socket.h>
#include <sys/un.h>

/** Names of Pollux protocols, for messages to people. */
#define PLX_NAME_NETIO "NetIO"
#define PLX_NAME_RPC   "Pollux RPC"

/** Name the protocol that starts with these bytes: "HTTP", "TLS", "SSH", "ZeroMQ", "a Pollux link",
 * PLX_NAME_NETIO or PLX_NAME_RPC. Return: constant text; NULL if unknown. Thread: any. */
const char *plx_sounds_like(const void *bytes, size_t length);

/** Return whether this user or group id identifies one user or group. The overflow id does not if
 * some ids have no number in this user namespace: they all map to it (user_namespaces(7)). The
 * paths are sys/kernel/overflowuid and self/uid_map of proc(5). Thread: any. */
bool plx_id_is_known(uint32_t id, const char *overflow_path, const char *map_path);

PLX_BEGIN_DECLS /* programs use these too */

/** Return whether `user` is the effective user of this process and identifies no other user.
 * Thread: any. */
bool plx_is_this_user(uid_t user);

/** Find the user that created the unconnected UNIX socket bound to this address, in this network
 * namespace. Costs a few microseconds plus one per hundred sockets on the host. Thread: setup.
 * Return: 0; -ESRCH no such socket; another -errno if the kernel cannot report it (before 5.3, or
 * without unix_diag). */
int plx_unix_owner(const struct sockaddr_un *address, size_t length, uid_t *user_out);

/** An abstract UNIX socket name: sun_path begins with a NUL. */
struct plx_unix_name {
	struct sockaddr_un address;
	socklen_t length;
};

/** Format a name, which must fit. Thread: any. */
struct plx_unix_name plx_unix_name(const char *format, ...) PLX_PRINTF(1, 2);

/** Open a UNIX socket of that type, close-on-exec, and bind(2) or connect(2) it to the name.
 * Thread: any. Return: the socket; -errno. */
int plx_unix_socket(const struct plx_unix_name *name, int type,
		    int (*attach)(int fd, const struct sockaddr *address, socklen_t length));

/** Append an item to the list in `out`, after ", " unless it is the first. `size` is the size of
 * `out`; the item is truncated to fit. Thread: any. */
void plx_list_add(char *out, size_t size, const char *item);

/** Read the start of a small file of /proc or /sys, without trailing white space. The format gives
 * the path. Thread: any. Return whether the file has content; otherwise `out` is "". */
bool plx_read_file(char *out, size_t size, const char *format, ...) PLX_PRINTF(3, 4);

PLX_END_DECLS

/** Text that grows in a buffer. */
struct plx_text {
	char *out;
	size_t size;
	size_t used; /* at least size after something did not fit */
};

/** Append to the text; what does not fit is lost. Thread: any. */
void plx_text_add(struct plx_text *text, const char *format, ...) PLX_PRINTF(2, 3);

/** The next of a sequence of random numbers, from any seed: SplitMix64 (Steele, Lea and Flood,
 * "Fast Splittable Pseudorandom Number Generators", 2014). Thread: owner of the seed. */
static inline uint64_t plx_random_next(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/** Read a clock of the kernel: clock_gettime(2), in ns. Thread: any + signal handlers. */
uint64_t plx_kernel_ns(clockid_t clock);

/** Error text of calls that need what plx_eal_init starts. */
#define NOT_UP_TEXT "Pollux is not up; call plx_eal_init or plx_app_start first"

/** plx_parse_size of a number in MiB unless it has a unit. */
int plx_parse_mib(const char *option, const char *text, uint64_t max, uint64_t *bytes_out);

/** folder: of a control group, below root. is_v2: of version 2 of control groups. */
typedef void (*plx_cgroup_fn)(void *arg, const char *folder, bool is_v2);

/** Visit the control group of this process that has the controller ("cpu"), and its parents: their
 * limits hold too. In a container the path is the host's, but the group's files are at the root,
 * which is visited last. root: replaces "/". Thread: any. */
void plx_cgroup_visit(const char *root, const char *controller, plx_cgroup_fn visit, void *arg);

/** Check that a file or memfd of this process may grow to size_bytes. Beyond RLIMIT_FSIZE (`ulimit
 * -f`) the kernel sends SIGXFSZ, which ends the process. Thread: any. Return: 0; -EFBIG, the text
 * names the limit. */
int plx_file_fits(uint64_t size_bytes);
/** plx_file_fits, then ftruncate(2). Thread: any. Return: 0; -EFBIG; -errno. */
int plx_file_resize(int fd, uint64_t size_bytes);

/** Exclude memory mapped from now on from core dumps: zones, and rings shared with other processes.
 * Off by default. Thread: setup. */
void plx_dump_leave_out(bool on);
/** Apply MADV_DONTDUMP to newly mapped memory if plx_dump_leave_out is on. Thread: any. */
void plx_dump_mark(void *base, size_t size_bytes);

#endif
