/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control within one host. BBR sends by a timer, also where there is no network: a
 * stream of 1 MiB to a process of the same host had 0.6 times the rate that it has with Reno. So on
 * hosts whose default is BBR, a connection within the host has Reno. A socket that was connected
 * with BBR goes on to be paced whatever it is given later, so a listener has Reno too, and what it
 * accepts from elsewhere returns to BBR. */
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
