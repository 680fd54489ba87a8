/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports. The kernel keeps those of TCP apart from the names of plx_shm's listeners, but a client
 * tries both at one address. So a listener of either provider holds its port for both, except
 * within one process, which may listen with both. Names of plx_shm must not overlap either, as an
 * address and the wildcard do; the kernel sees to that for TCP. The kernel lists the listeners of a
 * network namespace with their inodes. Each program listens before it looks, so of two that start
 * at once at least one is refused. Without /proc, no listener is refused. */
#include "base_internal.h"
#include "prov.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define ROW_BYTES    512
#define TCP_LISTENS  0x0a    /* TCP_LISTEN, in /proc/net/tcp */
#define UNIX_LISTENS 0x10000 /* __SO_ACCEPTCON, in /proc/net/unix */

/* A listener of this host. */
struct row {
	char address[ADDRESS_TEXT_BYTES];
	uint64_t inode;
};

/* What the kernel lists -------------------------------------------------------------------- */

enum row_kind { ROW_LISTENER, ROW_OTHER, ROW_LAST };

/* Hexadecimal words, each in the byte order of this host. Return: false: it is no address. */
static bool read_host(const char *words, uint16_t port, struct sockaddr_storage *address_out)
{
	struct sockaddr_in *four = (struct sockaddr_in *)address_out;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)address_out;
	uint32_t *to = six->sin6_addr.s6_addr32;

	*address_out = (struct sockaddr_storage){.ss_family = AF_INET};
	if (strlen(words) == 8) {
		address_set_port((struct sockaddr *)address_out, port);
		return sscanf(words, "%8" SCNx32, &four->sin_addr.s_addr) == 1;
	}
	address_out->ss_family = AF_INET6;
	address_set_port((struct sockaddr *)address_out, port);
	return sscanf(words, "%8" SCNx32 "%8" SCNx32 "%8" SCNx32 "%8" SCNx32, &to[0], &to[1],
		      &to[2], &to[3]) == 4;
}

/* Of /proc/net/tcp and tcp6. Listeners come first. */
static enum row_kind read_tcp(const char *line, struct row *row_out)
{
	struct sockaddr_storage address;
	unsigned port, state;
	char words[33];

	if (sscanf(line, " %*u: %32[0-9A-F]:%4x %*32[0-9A-F]:%*4x %2x %*s %*s %*s %*u %*u %" SCNu64,
		   words, &port, &state, &row_out->inode) != 4)
		return ROW_OTHER; /* the head line */
	if (state != TCP_LISTENS)
		return ROW_LAST;
	if (!read_host(words, (uint16_t)port, &address))
		return ROW_OTHER;
	address_format((struct sockaddr *)&address, row_out->address, sizeof(row_out->address));
	return ROW_LISTENER;
}

/* Of /proc/net/unix. A name may end with the number of a stand-in, after a dot. */
static enum row_kind read_shm(const char *line, struct row *row_out)
{
	unsigned flags;
	char *port;

	if (sscanf(line, "%*s %*x %*x %x %*x %*x %" SCNu64 " @" PROV_SHM_NAME ":%79s", &flags,
		   &row_out->inode, row_out->address) != 3 ||
	    !(flags & UNIX_LISTENS))
		return ROW_OTHER;
	port = strrchr(row_out->address, ':');
	if (!port)
		return ROW_OTHER;
	port[1 + strspn(port + 1, "0123456789")] = '\0';
	return ROW_LISTENER;
}

/* Whether a listener at one gets connections to the other, as on TCP. */
static bool overlaps(const char *a, const char *b)
{
	static const char any[] = "[::]:", any4[] = "0.0.0.0:";
	bool both4 = *a != '[' && *b != '[';

	if (strcmp(strrchr(a, ':'), strrchr(b, ':')) != 0)
		return false;
	return strncmp(a, any, strlen(any)) == 0 || strncmp(b, any, strlen(any)) == 0 ||
	       (both4 &&
		(strncmp(a, any4, strlen(any4)) == 0 || strncmp(b, any4, strlen(any4)) == 0)) ||
	       strcmp(a, b) == 0;
}

/* The holder --------------------------------------------------------------------------------- */

static bool has_socket(const char *process, uint64_t inode)
{
	const struct dirent *entry;
	char path[300];
	bool found = false;
	struct stat it;
	DIR *folder;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/fd", process);
	folder = opendir(path);
	fd = folder ? dirfd(folder) : -1;
	while (fd >= 0 && !found && (entry = readdir(folder)))
		found = fstatat(fd, entry->d_name, &it, 0) == 0 && S_ISSOCK(it.st_mode) &&
			it.st_ino == inode;
	if (folder)
		closedir(folder);
	return found;
}

/* Processes of other users are hidden, except from root. */
static const char *holder_text(uint64_t inode, char *out, size_t size)
{
	DIR *folder = opendir("/proc");
	const struct dirent *entry;
	char name[32];

	snprintf(out, size, "another program");
	while (folder && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)*entry->d_name) || !has_socket(entry->d_name, inode))
			continue;
		plx_read_file(name, sizeof(name), "/proc/%s/comm", entry->d_name);
		snprintf(out, size, "process %.20s (%s)", entry->d_name, name);
		break;
	}
	if (folder)
		closedir(folder);
	return out;
}

/* Programs of another user do not reach this one's listener of plx_shm, nor the reverse, so that
 * listener cannot keep a program off its port. */
static bool is_of_another_user(const struct prov *prov, const struct row *row)
{
	struct plx_unix_name name = plx_unix_name(PROV_SHM_NAME ":%s", row->address);
	uid_t user;

	if (plx_unix_owner(&name.address, name.length, &user) != 0 || plx_is_this_user(user))
		return false;
	prov_log(prov->libfabric, FI_LOG_WARN,
		 "user %u listens at %s over shared memory (" PROV_SHM_NAME
		 "): that user's programs "
		 "on this host connect there",
		 (unsigned)user, row->address);
	return true;
}

/* The check ---------------------------------------------------------------------------------- */

/* Whether that listener may exist in addition to one of prov at the address. */
static bool is_allowed(const struct prov *prov, bool is_shm, const char *address,
		       const struct row *row)
{
	if (!overlaps(address, row->address))
		return true;
	if (is_shm && prov->same_host)
		return strcmp(address, row->address) == 0 || is_of_another_user(prov, row);
	return has_socket("self", row->inode) || (is_shm && is_of_another_user(prov, row));
}

static bool find_other(const struct prov *prov, const char *path,
		       enum row_kind (*read)(const char *line, struct row *row_out),
		       const char *address, struct row *row_out)
{
	FILE *file = fopen(path, "re");
	enum row_kind kind = ROW_OTHER;
	char line[ROW_BYTES];
	bool found = false;

	while (file && !found && kind != ROW_LAST && fgets(line, sizeof(line), file)) {
		kind = read(line, row_out);
		found = kind == ROW_LISTENER &&
			!is_allowed(prov, read == read_shm, address, row_out);
	}
	if (file)
		fclose(file);
	return found;
}

bool prov_port_is_taken(const struct prov *prov, const struct sockaddr *address, char *why_out,
			size_t size)
{
	char text[ADDRESS_TEXT_BYTES], holder[80];
	struct row row;
	bool by_shm;

	address_format(address, text, sizeof(text));
	by_shm = find_other(prov, "/proc/thread-self/net/unix", read_shm, text, &row);
	if (!by_shm && (!prov->same_host ||
			(!find_other(prov, "/proc/thread-self/net/tcp", read_tcp, text, &row) &&
			 !find_other(prov, "/proc/thread-self/net/tcp6", read_tcp, text, &row))))
		return false;
	snprintf(why_out, size, "%s listens at %s %s; give another port, or 0 for a free one",
		 holder_text(row.inode, holder, sizeof(holder)), row.address,
		 by_shm ? "over shared memory (" PROV_SHM_NAME ")" : "on TCP");
	return true;
}
