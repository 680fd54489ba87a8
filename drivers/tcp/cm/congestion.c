/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control within one host. BBR paces by a timer even without a network: a stream of 1
 * MiB messages to a process of the same host ran at 0.6 times its rate with Reno. So on hosts that
 * default to BBR, connections within the host use Reno. A socket that connected with BBR stays
 * paced whatever is set later. So listeners use Reno too, and connections accepted from other hosts
 * return to BBR. */
#include "../tcp.h"

#include <netinet/tcp.h>

#define NAME_BYTES 16 /* TCP_CA_NAME_MAX of the kernel */

static bool set(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

bool congestion_leave_bbr(int fd)
{
	char name[NAME_BYTES + 1] = "";
	socklen_t length = NAME_BYTES;

	return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0 &&
	       strcmp(name, "bbr") == 0 && set(fd, "reno");
}

void congestion_return_to_bbr(int fd, const struct sockaddr_storage *peer)
{
	if (!prov_address_is_local(&tcp_prov, (const struct sockaddr *)peer))
		set(fd, "bbr");
}
