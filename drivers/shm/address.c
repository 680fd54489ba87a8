/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses are those of TCP, and so are the rules of who meets whom: a listener on the wildcard is
 * met at every address of the host, and one on :: at IPv4 addresses too. Behind an address is the
 * name of an abstract UNIX socket, "plx_shm:127.0.0.1:7000", which is shown by `ss -xl`, vanishes
 * with its socket, and is known in its network namespace only. */
#include "shm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

socklen_t shm_address_bytes(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

/* 0 where the family is not one of ours. */
uint16_t shm_address_port(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return ntohs(((const struct sockaddr_in *)address)->sin_port);
	case AF_INET6:
		return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	default:
		return 0;
	}
}

void shm_address_set_port(struct sockaddr *address, uint16_t port)
{
	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)address)->sin_port = htons(port);
	else if (address->sa_family == AF_INET6)
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

/* Copy an address; ::ffff:a.b.c.d becomes the IPv4 address that it is. Returns false where the
 * family is not one of ours. */
static bool plain_copy(const struct sockaddr *address, struct sockaddr_storage *copy_out)
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
	memcpy(copy_out, address, shm_address_bytes(address));
	return shm_address_bytes(address) != 0;
}

/* Such an address can be bound to, and is nobody's. */
static bool is_many(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_MULTICAST(&six->sin6_addr);
	return IN_MULTICAST(ntohl(four->sin_addr.s_addr)) ||
	       four->sin_addr.s_addr == htonl(INADDR_BROADCAST);
}

/* Only an address of this host can be bound to. The list of getifaddrs(3) would lack most of
 * 127.0.0.0/8. */
bool shm_address_is_local(const struct sockaddr *address)
{
	struct sockaddr_storage copy;

	if (!plain_copy(address, &copy) || is_many(&copy))
		return false;
	shm_address_set_port((struct sockaddr *)&copy, 0);

	int fd = socket(copy.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		if (errno != EAFNOSUPPORT)
			shm_log(FI_LOG_WARN, "whether an address is local is not known: %s",
				strerror(errno));
		return false;
	}

	int rc = bind(fd, (struct sockaddr *)&copy, shm_address_bytes((struct sockaddr *)&copy));

	close(fd);
	return rc == 0;
}

/* The name of one address, which tells link-local ones of different interfaces apart. */
static socklen_t write_name(const struct sockaddr_storage *address, struct sockaddr_un *name_out)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	uint16_t port = shm_address_port((const struct sockaddr *)address);
	char text[INET6_ADDRSTRLEN], scope[16] = "";
	int length;

	memset(name_out, 0, sizeof(*name_out));
	name_out->sun_family = AF_UNIX;
	if (address->ss_family == AF_INET) {
		inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
		length = snprintf(name_out->sun_path + 1, sizeof(name_out->sun_path) - 1,
				  SHM_NAME ":%s:%u", text, port);
	} else {
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
		if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
			snprintf(scope, sizeof(scope), "%%%u", six->sin6_scope_id);
		length = snprintf(name_out->sun_path + 1, sizeof(name_out->sun_path) - 1,
				  SHM_NAME ":[%s%s]:%u", text, scope, port);
	}
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static bool is_wildcard(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;

	return address->ss_family == AF_INET ? four->sin_addr.s_addr == htonl(INADDR_ANY)
					     : IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
}

/* The wildcard that covers the address next: of its own family, then the IPv6 one. Returns false
 * where it is that already. */
static bool widen(struct sockaddr_storage *address)
{
	sa_family_t family = is_wildcard(address) ? AF_INET6 : address->ss_family;
	uint16_t port = shm_address_port((struct sockaddr *)address);

	if (is_wildcard(address) && address->ss_family == AF_INET6)
		return false;
	memset(address, 0, sizeof(*address));
	address->ss_family = family;
	shm_address_set_port((struct sockaddr *)address, port);
	return true;
}

int shm_address_names(const struct sockaddr *address, struct sockaddr_un *names_out,
		      socklen_t *lengths_out)
{
	struct sockaddr_storage covering;
	int count = 0;

	if (!plain_copy(address, &covering))
		return 0;
	do {
		lengths_out[count] = write_name(&covering, &names_out[count]);
		count++;
	} while (widen(&covering));
	return count;
}

socklen_t shm_address_standin(const struct sockaddr_un *name, socklen_t length, unsigned index,
			      struct sockaddr_un *standin_out)
{
	size_t used = length - offsetof(struct sockaddr_un, sun_path);

	*standin_out = *name;
	if (index)
		length += (socklen_t)snprintf(standin_out->sun_path + used,
					      sizeof(standin_out->sun_path) - used, ".%u", index);
	return length;
}

bool shm_name_is_foreign(const struct sockaddr_un *name, socklen_t length)
{
	uid_t user;
	int rc = plx_unix_owner(name, length, &user);

	return rc == -ESRCH || (rc == 0 && !plx_is_this_user(user) && !shm_params.has_group);
}

/* The kernel finds it; what it gives two callers, one soon after the other, may be the same. */
int address_find_port(struct sockaddr_storage *address)
{
	struct sockaddr_storage found = *address;
	socklen_t bytes = shm_address_bytes((struct sockaddr *)&found);
	int fd = socket(found.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	shm_address_set_port((struct sockaddr *)&found, 0);
	if (bind(fd, (struct sockaddr *)&found, bytes) ||
	    getsockname(fd, (struct sockaddr *)&found, &bytes))
		rc = -errno;
	close(fd);
	if (rc == 0)
		shm_address_set_port((struct sockaddr *)address,
				     shm_address_port((struct sockaddr *)&found));
	return rc;
}

/* Of callers ------------------------------------------------------------------------------- */

int address_give(const struct sockaddr_storage *address, void *out, size_t *bytes)
{
	size_t needed = shm_address_bytes((const struct sockaddr *)address);
	size_t room = *bytes;

	*bytes = needed;
	if (room)
		memcpy(out, address, room < needed ? room : needed);
	return room < needed ? -FI_ETOOSMALL : 0;
}

int address_take(const void *address, size_t bytes, struct sockaddr_storage *out)
{
	const struct sockaddr *from = address;

	if (!from || bytes < sizeof(from->sa_family) ||
	    (from->sa_family != AF_INET && from->sa_family != AF_INET6) ||
	    bytes < shm_address_bytes(from))
		return -FI_EINVAL;
	memset(out, 0, sizeof(*out));
	memcpy(out, from, shm_address_bytes(from));
	return 0;
}
