/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket addresses: IPv4 and IPv6, with a port. */
#ifndef PLX_SOCKADDR_H
#define PLX_SOCKADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* 0 for other address families. */
socklen_t address_bytes(const struct sockaddr *address);
uint16_t address_port(const struct sockaddr *address);
void address_set_port(struct sockaddr *address, uint16_t port);
/* Return whether the address is its family's wildcard. */
bool address_is_any(const struct sockaddr *address);

/* The source address, without a port, of traffic to that address. Return: whether there is a
 * route. */
bool address_route(const struct sockaddr *to, struct sockaddr_storage *from_out);

/* The host as an IPv6 address, the same for IPv4-only and dual-stack listeners. All other address
 * families map to "::". */
struct in6_addr address_host(const struct sockaddr *address);
/* What limits per address count as one: the first 64 bits of an IPv6 host, which is given a whole
 * /64. Those of ::/64 stay whole: IPv4-mapped hosts, and loopback. */
struct in6_addr address_group(const struct in6_addr *host);

/* The network of a group: the first 48 bits of an IPv6 host, which a site is given. Its last byte
 * is 48, so no group equals it. Return: whether the group is in one; those of ::/64 are not. */
bool address_network(const struct in6_addr *group, struct in6_addr *network_out);

#define ADDRESS_GROUP_TEXT_BYTES (INET6_ADDRSTRLEN + 3)
/* Format a group or network as "10.0.0.1", "2001:db8::/64" or "2001:db8::/48". Return: out. */
const char *address_group_format(const struct in6_addr *group, char *out, size_t size);

#define ADDRESS_TEXT_BYTES 80
/* Format as "10.0.0.1:4000" or "[fe80::1%eth0]:4000"; NULL gives "unknown". IPv4-mapped addresses
 * are written as IPv4. Return: out. */
const char *address_format(const struct sockaddr *address, char *out, size_t size);

#endif
