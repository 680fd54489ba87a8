/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of endpoints. */
#ifndef PROV_ADDRESS_H
#define PROV_ADDRESS_H

#include <sockaddr.h>

struct fi_provider;

/* Copy an address; ::ffff:a.b.c.d becomes the IPv4 address that it is. Return: whether the family
 * is one of these. */
bool prov_address_plain_copy(const struct sockaddr *address, struct sockaddr_storage *copy_out);
/* Whether it is an address of this host. provider: whose log says why that is not known. */
bool prov_address_is_local(const struct fi_provider *provider, const struct sockaddr *address);
/* The address, without a port, that what is sent there comes from. Return: whether there is a way.
 */
bool prov_address_route(const struct sockaddr_storage *to, struct sockaddr_storage *from_out);
/* Give it a port, another one than it has, that nobody has for TCP there; it stays free to be
 * taken. Return: 0; -errno there is none, or it is no address of this host. */
int prov_address_find_port(struct sockaddr_storage *address);

/* For fi_getname and its like: -FI_ETOOSMALL and what fits, where it does not. */
int prov_address_give(const struct sockaddr_storage *address, void *out, size_t *bytes);
/* Check an address of a caller, and copy it: -FI_EINVAL. */
int prov_address_take(const void *address, size_t bytes, struct sockaddr_storage *out);

#endif
