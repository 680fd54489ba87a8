/* SPDX-License-Identifier: BSD-3-Clause */
/* User ids: which identify one user; the user that created a UNIX socket. */
#include "base_internal.h"

#include <inttypes.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OVERFLOW_ID_DEFAULT 65534
#define REPLY_BYTES         16384 /* per read; the kernel fills less */

/* The kernel's socket states. Accepted sockets carry the listener's name, so they are skipped. */
#define STATE_UNCONNECTED 7
#define STATE_LISTENS     10

static uint32_t overflow_id(const char *path)
{
	uint32_t id = OVERFLOW_ID_DEFAULT;
	char text[16];

	if (plx_read_file(text, sizeof(text), "%s", path))
		sscanf(text, "%" SCNu32, &id);
	return id;
}

/* Lines are "inside outside count". The last id, -1, is invalid. */
static bool maps_every_id(const char *path)
{
	uint64_t count, all = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		return false;
	while (fscanf(file, "%*u %*u %" SCNu64, &count) == 1)
		all += count;
	fclose(file);
	return all >= UINT32_MAX;
}

bool plx_id_is_known(uint32_t id, const char *overflow_path, const char *map_path)
{
	return id != overflow_id(overflow_path) || maps_every_id(map_path);
}

bool plx_is_this_user(uid_t user)
{
	return user == geteuid() &&
	       plx_id_is_known(user, "/proc/sys/kernel/overflowuid", "/proc/self/uid_map");
}

/* Request all UNIX sockets of the network namespace, with names and users: sock_diag(7). */
static int ask(int fd)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} message = {
		.header = {.nlmsg_len = sizeof(message),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.request = {.sdiag_family = AF_UNIX,
			    .udiag_states = 1u << STATE_UNCONNECTED | 1u << STATE_LISTENS,
			    .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID},
	};

	return send(fd, &message, sizeof(message), 0) == (ssize_t)sizeof(message) ? 0 : -errno;
}

/* Return whether this socket has that name and its user is known. */
static bool read_socket(const struct nlmsghdr *header, const char *name, size_t length,
			uid_t *user_out)
{
	const struct unix_diag_msg *message = NLMSG_DATA(header);
	const struct rtattr *attr = (const struct rtattr *)(message + 1);
	int left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof(*message)));
	bool is_it = false, has_user = false;

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if (attr->rta_type == UNIX_DIAG_NAME)
			is_it = RTA_PAYLOAD(attr) == length &&
				memcmp(RTA_DATA(attr), name, length) == 0;
		if (attr->rta_type == UNIX_DIAG_UID && RTA_PAYLOAD(attr) == sizeof(*user_out)) {
			memcpy(user_out, RTA_DATA(attr), sizeof(*user_out));
			has_user = true;
		}
	}
	return is_it && has_user;
}

/* Return: 1 found; 0 read on; -errno. */
static int read_reply(int fd, const char *name, size_t length, uid_t *user_out)
{
	_Alignas(struct nlmsghdr) char bytes[REPLY_BYTES];
	ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
	unsigned left = got < 0 ? 0 : (unsigned)got;

	if (got < 0)
		return -errno;
	for (struct nlmsghdr *header = (struct nlmsghdr *)bytes; NLMSG_OK(header, left);
	     header = NLMSG_NEXT(header, left)) {
		if (header->nlmsg_type == NLMSG_DONE)
			return -ESRCH;
		if (header->nlmsg_type == NLMSG_ERROR)
			return -EOPNOTSUPP;
		if (header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct unix_diag_msg)) &&
		    read_socket(header, name, length, user_out))
			return 1;
	}
	return 0;
}

int plx_unix_owner(const struct sockaddr_un *address, size_t length, uid_t *user_out)
{
	size_t path_at = offsetof(struct sockaddr_un, sun_path);
	size_t name_length = length > path_at ? length - path_at : 0;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int rc = fd < 0 ? -errno : ask(fd);

	while (rc == 0)
		rc = read_reply(fd, address->sun_path, name_length, user_out);
	if (fd >= 0)
		close(fd);
	return rc > 0 ? 0 : rc;
}
