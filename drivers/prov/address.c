/* SPDX-License-Identifier: BSD-3-Clause */
#include "prov.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

bool prov_address_plain_copy(const struct sockaddr *address, struct sockaddr_storage *copy_out)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	struct sockaddr_in *four = (struct sockaddr_in *)copy_out;

	memset(copy_out, 0, sizeof(*copy_out));
	if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
		four->sin_family = AF_INET;
		four->sin_port = six->sin6_port;
		memcpy(&four->sin_addr, six->sin6_addr.s6_addr + 12, sizeof(four->sin_addr));
		return true;
	}
	memcpy(copy_out, address, address_bytes(address));
	return address_bytes(address) != 0;
}

/* A socket can bind to such an address, but it names no single host. */
static bool is_many(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_MULTICAST(&six->sin6_addr);
	return IN_MULTICAST(ntohl(four->sin_addr.s_addr)) ||
	       four->sin_addr.s_addr == htonl(INADDR_BROADCAST);
}

/* bind(2) succeeds for addresses of this host only. The list of getifaddrs(3) lacks most of
 * 127.0.0.0/8. */
bool prov_address_is_local(const struct fi_provider *provider, const struct sockaddr *address)
{
	struct sockaddr_storage copy;

	if (!prov_address_plain_copy(address, &copy) || is_many(&copy))
		return false;
	address_set_port((struct sockaddr *)&copy, 0);

	int fd = socket(copy.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		if (errno != EAFNOSUPPORT)
			prov_log(provider, FI_LOG_WARN,
				 "whether an address is local is not known: %s", strerror(errno));
		return false;
	}

	int rc = bind(fd, (struct sockaddr *)&copy, address_bytes((struct sockaddr *)&copy));

	close(fd);
	return rc == 0;
}

/* Connecting a UDP socket sends nothing. */
bool prov_address_route(const struct sockaddr_storage *to, struct sockaddr_storage *from_out)
{
	const struct sockaddr *address = (const struct sockaddr *)to;
	int fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof(*from_out);
	bool found;

	if (fd < 0)
		return false;
	memset(from_out, 0, sizeof(*from_out));
	found = connect(fd, address, address_bytes(address)) == 0 &&
		getsockname(fd, (struct sockaddr *)from_out, &bytes) == 0;
	close(fd);
	address_set_port((struct sockaddr *)from_out, 0);
	return found;
}

/* The kernel picks the port. Two callers in quick succession may get the same one. */
int prov_address_find_port(struct sockaddr_storage *address)
{
	struct sockaddr_storage found = *address;
	socklen_t bytes = address_bytes((struct sockaddr *)&found);
	int fd = socket(found.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	address_set_port((struct sockaddr *)&found, 0);
	if (bind(fd, (struct sockaddr *)&found, bytes) ||
	    getsockname(fd, (struct sockaddr *)&found, &bytes))
		rc = -errno;
	close(fd);
	if (rc == 0)
		address_set_port((struct sockaddr *)address,
				 address_port((struct sockaddr *)&found));
	return rc;
}

/* Addresses of callers --------------------------------------------------------------------- */

int prov_address_give(const struct sockaddr_storage *address, void *out, size_t *bytes)
{
	size_t needed = address_bytes((const struct sockaddr *)address);
	size_t room = *bytes;

	*bytes = needed;
	if (room)
		memcpy(out, address, room < needed ? room : needed);
	return room < needed ? -FI_ETOOSMALL : 0;
}

int prov_address_take(const void *address, size_t bytes, struct sockaddr_storage *out)
{
	const struct sockaddr *from = address;

	if (!from || bytes < sizeof(from->sa_family) ||
	    (from->sa_family != AF_INET && from->sa_family != AF_INET6) ||
	    bytes < address_bytes(from))
		return -FI_EINVAL;
	memset(out, 0, sizeof(*out));
	memcpy(out, from, address_bytes(from));
	return 0;
}
