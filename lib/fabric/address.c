/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric_address.h"
#include "fabric_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

static int bad_address(const char *what, const char *address, const char *why)
{
	return plx_fail(EINVAL,
			"%s %s: %s; give HOST:PORT, such as 192.0.2.1:7000, [::1]:7000 or *:7000, "
			"with a port of 0 to 65535",
			what, address, why);
}

/* Write an IPv4 address in IPv6 form, ::ffff:192.0.2.1, as IPv4: sockets for IPv6 alone refuse it.
 * Return: what is wrong with the host; NULL: nothing. */
static const char *check_ipv6(char *host)
{
	struct in6_addr address;

	if (inet_pton(AF_INET6, host, &address) != 1)
		return NULL;
	if (IN6_IS_ADDR_V4MAPPED(&address))
		inet_ntop(AF_INET, &address.s6_addr[12], host, INET_ADDRSTRLEN);
	return IN6_IS_ADDR_LINKLOCAL(&address)
		     ? "a link-local address needs its interface, as in [fe80::1%eth0]:7000"
		     : NULL;
}

int address_split(const char *what, const char *address, char *host_out, char *port_out)
{
	if (!address)
		return bad_address(what, "(none)", "no address");

	const char *colon = strrchr(address, ':');
	size_t host_len = colon ? (size_t)(colon - address) : 0;

	if (strlen(address) >= PLX_ADDRESS_MAX)
		return bad_address(what, "(too long)", "address is too long");
	if (strstr(address, "://"))
		return bad_address(what, address, "it needs no scheme");
	if (!colon && address[0] && address[strspn(address, "0123456789")] == '\0')
		return bad_address(what, address, "the host is missing");
	if (!colon)
		return bad_address(what, address, "there is no port");
	if (address[0] == '[') {
		if (host_len < 3 || address[host_len - 1] != ']')
			return bad_address(what, address,
					   "the bracket is not closed before the port");
		memcpy(host_out, address + 1, host_len - 2);
		host_out[host_len - 2] = '\0';
	} else {
		if (memchr(address, ':', host_len))
			return bad_address(what, address, "an IPv6 address needs brackets");
		memcpy(host_out, address, host_len);
		host_out[host_len] = '\0';
	}
	if (strcmp(host_out, "*") == 0)
		host_out[0] = '\0';

	const char *wrong = check_ipv6(host_out);

	if (wrong)
		return bad_address(what, address, wrong);

	const char *port = colon + 1;
	size_t digits = strspn(port, "0123456789");

	if (digits == 0 || port[digits] != '\0' || digits > 5 || atoi(port) > 65535)
		return bad_address(what, address, "bad port");
	memcpy(port_out, port, digits + 1);
	return 0;
}

bool address_is_number(const char *host)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *found;

	if (getaddrinfo(host, NULL, &hints, &found) != 0)
		return false;
	freeaddrinfo(found);
	return true;
}

void address_ask(const char *host, struct address_list *out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	int rc = getaddrinfo(host, NULL, &hints, &found);

	out->count = 0;
	for (struct addrinfo *each = rc ? NULL : found; each && out->count < ADDRESSES_MAX;
	     each = each->ai_next) {
		if (getnameinfo(each->ai_addr, each->ai_addrlen, out->hosts[out->count],
				sizeof(out->hosts[0]), NULL, 0, NI_NUMERICHOST) == 0)
			out->count++;
	}
	if (rc == 0)
		freeaddrinfo(found);
	if (!out->count)
		snprintf(out->why, sizeof(out->why), "%s",
			 rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc ? rc : EAI_NONAME));
}

int address_resolve(const char *what, const char *address, const char *host,
		    struct address_list *out)
{
	if (!lookup_known(host, out))
		address_ask(host, out);
	if (out->count)
		return 0;
	return plx_fail(EHOSTUNREACH,
			"%s %s: the name %s does not resolve: %s; check it, or give an address",
			what, address, host, out->why);
}

int plx_address_check(const char *option, const char *address)
{
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];

	return address_split(option, address, host, port);
}

int plx_address_split(const char *option, const char *address, char host_out[PLX_ADDRESS_MAX],
		      unsigned *port_out)
{
	int rc = plx_address_check(option, address);
	const char *colon;

	if (rc)
		return rc;
	colon = strrchr(address, ':');
	if (colon == address)
		snprintf(host_out, PLX_ADDRESS_MAX, "*");
	else
		snprintf(host_out, PLX_ADDRESS_MAX, "%.*s", (int)(colon - address), address);
	*port_out = (unsigned)strtoul(colon + 1, NULL, 10);
	return 0;
}

bool address_is_same_host(const struct sockaddr *peer, const struct sockaddr *own)
{
	struct in6_addr there = address_host(peer), here = address_host(own);

	if (IN6_IS_ADDR_UNSPECIFIED(&there))
		return false;
	return IN6_IS_ADDR_LOOPBACK(&there) ||
	       (IN6_IS_ADDR_V4MAPPED(&there) && there.s6_addr[12] == 127) ||
	       memcmp(&there, &here, sizeof(here)) == 0;
}

int address_parse(const char *address, struct sockaddr_storage *out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST}, *found;
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];
	int rc = address_split("look for", address, host, port);

	if (rc)
		return rc;
	if (getaddrinfo(host, port, &hints, &found) != 0)
		return bad_address("look for", address, "its host is not a number");
	*out = (struct sockaddr_storage){0};
	memcpy(out, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

/* The kernel connects to a local address from that address, or from a loopback one. */
bool address_is_here(const char *address)
{
	struct sockaddr_storage peer, own;

	return address_parse(address, &peer) == 0 &&
	       address_route((struct sockaddr *)&peer, &own) &&
	       address_is_same_host((struct sockaddr *)&peer, (struct sockaddr *)&own);
}
