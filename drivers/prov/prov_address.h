/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of endpoints. */
#ifndef PROV_ADDRESS_H
#define PROV_ADDRESS_H

#include <sockaddr.h>

struct fi_provider;

/* Copy an address; ::ffff:a.b.c.d becomes the IPv4 address. Return: whether the family is
 * supported. */
bool prov_address_plain_copy(const struct sockaddr *address, struct sockaddr_storage *copy_out);
/* Whether it is an address of this host. provider: its log gets the reason if that cannot be
 * determined. */
bool prov_address_is_local(const struct fi_provider *provider, const struct sockaddr *address);
/* The source address, without a port, of traffic to that address. Return: whether there is a
 * route. */
bool prov_address_route(const struct sockaddr_storage *to, struct sockaddr_storage *from_out);
/* Set a port that is free for TCP at this address and differs from the present one. The port is not
 * reserved. Return: 0; -errno no port is free, or the address is not of this host. */
int prov_address_find_port(struct sockaddr_storage *address);

/* For fi_getname and similar calls: -FI_ETOOSMALL, and as much as fits, if it is too long. */
int prov_address_give(const struct sockaddr_storage *address, void *out, size_t *bytes);
/* Check and copy a caller's address. Return: 0; -FI_EINVAL. */
int prov_address_take(const void *address, size_t bytes, struct sockaddr_storage *out);

#endif
