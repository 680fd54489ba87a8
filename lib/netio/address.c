/* SPDX-License-Identifier: BSD-3-Clause */
#include "netio_priv.h"

#include <stdio.h>
#include <string.h>

int netio_address(const char *what, const char *host, unsigned port, char out[PLX_ADDRESS_MAX])
{
	bool is_ipv6 = host && strchr(host, ':') && host[0] != '[' && !strstr(host, "://");

	if (!host || !*host)
		return plx_fail(EINVAL, "%s: no host; give an address or a name", what);
	if (port > 65535)
		return plx_fail(EINVAL, "%s %s: port %u; give 0 to 65535", what, host, port);
	if (snprintf(out, PLX_ADDRESS_MAX, is_ipv6 ? "[%s]:%u" : "%s:%u", host, port) >=
	    PLX_ADDRESS_MAX)
		return plx_fail(EINVAL, "%s: a host of %zu characters; at most %d", what,
				strlen(host), PLX_ADDRESS_MAX - 8);
	return plx_address_check(what, out);
}
