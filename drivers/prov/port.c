/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports. The kernel keeps those of TCP apart from the names of plx_shm's listeners, but a client
 * tries both at one address. So a listener of either provider holds its port for both, except
 * within one process, which may listen with both. Names of plx_shm must not overlap either, as an
 * address and the wildcard do; the kernel sees to that for TCP. The kernel lists the listeners of a
 * network namespace with their inodes. Each program listens before it looks, so of two that start
 * at once at least one is refused. Where the kernel does not list them, none is. */
#include "base_internal.h"
#include "prov.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROW_BYTES    512
#define UNIX_LISTENS 0x10000 /* __SO_ACCEPTCON, in /proc/net/unix */

/* A listener of this host. */
struct row {
	char address[ADDRESS_TEXT_BYTES];
	uint64_t inode;
};

/* What the kernel lists -------------------------------------------------------------------- */

/* Ask for the TCP listeners of a family: sock_diag(7). /proc/net/tcp takes milliseconds, because
 * the kernel also walks its connections. Return: a socket to read them from; -errno. */
static int ask_for_listeners(sa_family_t family)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} ask = {
		.head = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.body = {.sdiag_family = (uint8_t)family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = 1u << TCP_LISTEN},
	};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd >= 0 && send(fd, &ask, sizeof(ask), 0) < 0) {
		close(fd);
		return -errno;
	}
	return fd < 0 ? -errno : fd;
}

static void read_listener(const struct inet_diag_msg *message, struct row *row_out)
{
	struct sockaddr_storage address = {.ss_family = message->idiag_family};
	struct sockaddr_in *four = (struct sockaddr_in *)&address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;

	if (message->idiag_family == AF_INET)
		memcpy(&four->sin_addr, message->id.idiag_src, sizeof(four->sin_addr));
	else
		memcpy(&six->sin6_addr, message->id.idiag_src, sizeof(six->sin6_addr));
	address_set_port((struct sockaddr *)&address, ntohs(message->id.idiag_sport));
	address_format((struct sockaddr *)&address, row_out->address, sizeof(row_out->address));
	row_out->inode = message->idiag_inode;
}

/* Of /proc/net/unix. A name may end with the number of a stand-in, after a dot. Return: whether it
 * is a listener of plx_shm. */
static bool read_shm(const char *line, struct row *row_out)
{
	unsigned flags;
	char *port;

	if (sscanf(line, "%*s %*x %*x %x %*x %*x %" SCNu64 " @" PROV_SHM_NAME ":%79s", &flags,
		   &row_out->inode, row_out->address) != 3 ||
	    !(flags & UNIX_LISTENS))
		return false;
	port = strrchr(row_out->address, ':');
	if (!port)
		return false;
	port[1 + strspn(port + 1, "0123456789")] = '\0';
	return true;
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

static bool find_shm(const struct prov *prov, const char *address, struct row *row_out)
{
	FILE *file = fopen("/proc/thread-self/net/unix", "re");
	char line[ROW_BYTES];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = read_shm(line, row_out) && !is_allowed(prov, true, address, row_out);
	if (file)
		fclose(file);
	return found;
}

static bool find_tcp(const struct prov *prov, sa_family_t family, const char *address,
		     struct row *row_out)
{
	alignas(struct nlmsghdr) uint8_t answer[8192];
	int fd = ask_for_listeners(family);
	bool found = false;
	ssize_t bytes = 1;

	/* The kernel has answered already, or does while it is read. */
	while (fd >= 0 && !found && bytes > 0) {
		const struct nlmsghdr *each = (struct nlmsghdr *)answer;

		bytes = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
		for (unsigned left = bytes > 0 ? (unsigned)bytes : 0;
		     !found && NLMSG_OK(each, left); each = NLMSG_NEXT(each, left)) {
			if (each->nlmsg_type != SOCK_DIAG_BY_FAMILY) { /* the end, or an error */
				bytes = 0;
				break;
			}
			read_listener(NLMSG_DATA(each), row_out);
			found = !is_allowed(prov, false, address, row_out);
		}
	}
	if (fd >= 0)
		close(fd);
	return found;
}

bool prov_port_is_taken(const struct prov *prov, const struct sockaddr *address, char *why_out,
			size_t size)
{
	char text[ADDRESS_TEXT_BYTES], holder[80];
	struct row row;
	bool by_shm;

	address_format(address, text, sizeof(text));
	by_shm = find_shm(prov, text, &row);
	if (!by_shm && (!prov->same_host || (!find_tcp(prov, AF_INET, text, &row) &&
					     !find_tcp(prov, AF_INET6, text, &row))))
		return false;
	snprintf(why_out, size, "%s listens at %s %s; give another port, or 0 for a free one",
		 holder_text(row.inode, holder, sizeof(holder)), row.address,
		 by_shm ? "over shared memory (" PROV_SHM_NAME ")" : "on TCP");
	return true;
}
