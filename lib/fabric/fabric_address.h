/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: their texts, what a host name stands for, and which host one is. */
#ifndef PLX_FABRIC_ADDRESS_H
#define PLX_FABRIC_ADDRESS_H

#include "plx_address.h"
#include "sockaddr.h"

/* The parts of "host:port". Both outputs have room for PLX_ADDRESS_MAX. Return: 0; -EINVAL. */
int address_split(const char *what, const char *address, char *host_out, char *port_out);

#define ADDRESSES_MAX 8 /* of a name, that are tried or listened on */

struct address_list {
	unsigned count;
	char hosts[ADDRESSES_MAX][64]; /* numeric; an IPv6 one may have a zone */
};

bool address_is_number(const char *host);
/* Ask the resolver, which may block. None: why is written. */
void address_ask(const char *host, struct address_list *out, char *why, size_t size);
/* What a host stands for; blocks where it is a name that was not looked up. Return: 0;
 * -EHOSTUNREACH. */
int address_resolve(const char *what, const char *address, const char *host,
		    struct address_list *out);

/* own: of this host, on a connection with peer. */
bool address_is_same_host(const struct sockaddr *peer, const struct sockaddr *own);
/* Of "host:port" with a number as its host. Return: 0; -EINVAL. */
int address_parse(const char *address, struct sockaddr_storage *out);
/* Whether "host:port" is of this host: with a number as its host, without a connection. */
bool address_is_here(const char *address);

#endif
