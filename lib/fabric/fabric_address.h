/* SPDX-License-Identifier: BSD-3-Clause */
/* Address texts, name look-ups on another thread, and whether two addresses are on one host. */
#ifndef PLX_FABRIC_ADDRESS_H
#define PLX_FABRIC_ADDRESS_H

#include "plx_address.h"
#include "sockaddr.h"

struct plx_fabric_lcore;

/* Split "host:port" at its last colon, strip the brackets of an IPv6 address, and check both parts.
 * A host of "*" or "" means every address: host_out is "". An IPv4 address in IPv6 form becomes
 * IPv4. Both outputs have room for PLX_ADDRESS_MAX. Return: 0; -EINVAL. */
int address_split(const char *what, const char *address, char *host_out, char *port_out);

#define ADDRESSES_MAX 8 /* used per name */

struct address_list {
	unsigned count; /* 0: see why */
	char why[128];
	char hosts[ADDRESSES_MAX][64]; /* numeric; IPv6 may have a zone */
};

bool address_is_number(const char *host);
/* Call the resolver, which may block. */
void address_ask(const char *host, struct address_list *out);
/* The addresses of a host without duplicates, in the order to try them (RFC 6724). what, address:
 * for the error text. Blocks if the host is a name that is not in the cache. Return: 0;
 * -EHOSTUNREACH. */
int address_resolve(const char *what, const char *address, const char *host,
		    struct address_list *out);

/* own: this side's address of a connection with peer. */
bool address_is_same_host(const struct sockaddr *peer, const struct sockaddr *own);
/* Parse "host:port" with a numeric host. Return: 0; -EINVAL. */
int address_parse(const char *address, struct sockaddr_storage *out);
/* Whether "host:port" with a numeric host is on this host; works without a connection. */
bool address_is_here(const char *address);

/* lookup.c */
int lookup_home_init(struct plx_fabric_lcore *home);
/* Thread: main, when no lcore runs. Drops pending look-ups without a callback. Accepts zeroes. */
void lookup_home_fini(struct plx_fabric_lcore *home);
/* The result for a name, at most one second old. Return: whether there is one. Thread: any. */
bool lookup_known(const char *host, struct address_list *list_out);

#endif
