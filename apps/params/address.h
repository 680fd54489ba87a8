/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADDRESS_H
#define ADDRESS_H

#include "plx_fabric.h"

#include <string.h>

/** The host of "host:port", or "[::1]" of "[::1]:port", which was checked. */
static inline void address_split(const char *address, char host[PLX_ADDRESS_MAX])
{
	size_t length = (size_t)(strrchr(address, ':') - address);

	if (length >= PLX_ADDRESS_MAX)
		length = PLX_ADDRESS_MAX - 1;
	memcpy(host, address, length);
	host[length] = '\0';
}

#endif
