/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of sockets: those of IPv4 and IPv6, with a port. */
#ifndef PLX_SOCKADDR_H
#define PLX_SOCKADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* 0: the family is another one. */
socklen_t address_bytes(const struct sockaddr *address);
uint16_t address_port(const struct sockaddr *address);
void address_set_port(struct sockaddr *address, uint16_t port);
/* Whether it is the wildcard of its family. */
bool address_is_any(const struct sockaddr *address);

/* The host as IPv6 writes it, so that it is one and the same to a listener for IPv4 and to one for
 * both; all addresses of other families are one host, "::". */
struct in6_addr address_host(const struct sockaddr *address);

#define ADDRESS_TEXT_BYTES 80
/* "10.0.0.1:4000", "[fe80::1%eth0]:4000"; NULL: "unknown". An IPv4 peer of a socket for both is
 * written as what it is. Return: out. */
const char *address_format(const struct sockaddr *address, char *out, size_t size);

#endif
