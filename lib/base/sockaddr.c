/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockaddr.h"

#include "base_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

socklen_t address_bytes(const struct sockaddr *address)
{
	return address->sa_family == AF_INET  ? sizeof(struct sockaddr_in)
	     : address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : 0;
}

/* Both families have the port at the same place. */
static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	      "");

uint16_t address_port(const struct sockaddr *address)
{
	return address_bytes(address) ? ntohs(((const struct sockaddr_in *)address)->sin_port) : 0;
}

void address_set_port(struct sockaddr *address, uint16_t port)
{
	if (address_bytes(address))
		((struct sockaddr_in *)address)->sin_port = htons(port);
}

bool address_is_any(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
	return ((const struct sockaddr_in *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
}

/* Connecting a UDP socket sends nothing. */
bool address_route(const struct sockaddr *to, struct sockaddr_storage *from_out)
{
	int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof(*from_out);
	bool found;

	if (fd < 0)
		return false;
	*from_out = (struct sockaddr_storage){0};
	found = connect(fd, to, address_bytes(to)) == 0 &&
		getsockname(fd, (struct sockaddr *)from_out, &bytes) == 0;
	close(fd);
	address_set_port((struct sockaddr *)from_out, 0);
	return found;
}

struct in6_addr address_host(const struct sockaddr *address)
{
	struct in6_addr host = {0};

	if (address && address->sa_family == AF_INET6) {
		host = ((const struct sockaddr_in6 *)address)->sin6_addr;
	} else if (address && address->sa_family == AF_INET) {
		host.s6_addr[10] = host.s6_addr[11] = 0xff;
		memcpy(&host.s6_addr[12], &((const struct sockaddr_in *)address)->sin_addr, 4);
	}
	return host;
}

#define GROUP_BYTES 8 /* of an IPv6 address */

/* An address in ::/64, which no network routes as one. */
static bool is_whole(const struct in6_addr *host)
{
	static const uint8_t zero[GROUP_BYTES];

	return memcmp(host->s6_addr, zero, GROUP_BYTES) == 0;
}

struct in6_addr address_group(const struct in6_addr *host)
{
	struct in6_addr group = {0};

	memcpy(group.s6_addr, host->s6_addr, is_whole(host) ? sizeof(group) : GROUP_BYTES);
	return group;
}

#define NETWORK_BITS 48 /* of an IPv6 address */

bool address_network(const struct in6_addr *group, struct in6_addr *network_out)
{
	*network_out = (struct in6_addr){.s6_addr[15] = NETWORK_BITS};
	memcpy(network_out->s6_addr, group->s6_addr, NETWORK_BITS / 8);
	return !is_whole(group);
}

const char *address_group_format(const struct in6_addr *group, char *out, size_t size)
{
	bool is_v4 = IN6_IS_ADDR_V4MAPPED(group), is_network = group->s6_addr[15] == NETWORK_BITS;
	char text[INET6_ADDRSTRLEN] = "";
	struct in6_addr plain = *group;

	if (!is_whole(group))
		plain.s6_addr[15] = 0;
	inet_ntop(is_v4 ? AF_INET : AF_INET6, &plain.s6_addr[is_v4 ? 12 : 0], text, sizeof(text));
	snprintf(out, size, "%s%s", text, is_whole(group) ? "" : is_network ? "/48" : "/64");
	return out;
}

/* A link-local address needs its interface: "%eth0", or "%2" if the interface is gone. */
static void format_scope(const struct sockaddr *address, char out[IF_NAMESIZE + 1])
{
	uint32_t scope = ((const struct sockaddr_in6 *)address)->sin6_scope_id;

	out[0] = scope ? '%' : '\0';
	if (scope && !if_indextoname(scope, out + 1))
		snprintf(out + 1, IF_NAMESIZE, "%u", scope);
}

const char *address_format(const struct sockaddr *address, char *out, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "", scope[IF_NAMESIZE + 1];
	struct in6_addr host = address_host(address);

	if (!address) {
		snprintf(out, size, "unknown");
	} else if (!address_bytes(address)) {
		snprintf(out, size, "address of family %d", address->sa_family);
	} else if (IN6_IS_ADDR_V4MAPPED(&host)) {
		inet_ntop(AF_INET, &host.s6_addr[12], text, sizeof(text));
		snprintf(out, size, "%s:%u", text, address_port(address));
	} else {
		inet_ntop(AF_INET6, &host, text, sizeof(text));
		format_scope(address, scope);
		snprintf(out, size, "[%s%s]:%u", text, scope, address_port(address));
	}
	return out;
}

struct plx_unix_name plx_unix_name(const char *format, ...)
{
	struct plx_unix_name name = {.address.sun_family = AF_UNIX};
	va_list args;

	va_start(args, format);
	int n = vsnprintf(name.address.sun_path + 1, sizeof(name.address.sun_path) - 1, format,
			  args);
	va_end(args);
	name.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return name;
}

int plx_unix_socket(const struct plx_unix_name *name, int type,
		    int (*attach)(int fd, const struct sockaddr *address, socklen_t length))
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0), err;

	if (fd >= 0 && attach(fd, (const struct sockaddr *)&name->address, name->length) == 0)
		return fd;
	err = errno;
	if (fd >= 0)
		close(fd);
	return -err;
}
