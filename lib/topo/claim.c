/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU claims. bind is the atomic step: from then on the name is taken, whether or not the socket
 * listens already; listening only lets others ask who the holder is. */
#include "topo_priv.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t make_address(unsigned cpu, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* sun_path[0] stays 0: an abstract name, which is exactly as long as it is given. */
	int n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "pollux/cpu/%u",
			 cpu);

	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Who listens there; 0 where it cannot be told: it is about to listen, or its backlog is full. */
static pid_t find_holder(const struct sockaddr_un *address, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred peer = {.pid = 0};
	socklen_t peer_len = sizeof(peer);

	if (fd < 0)
		return 0;
	if (connect(fd, (const struct sockaddr *)address, len) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len))
		peer.pid = 0;
	close(fd);
	return peer.pid;
}

static int fail_busy(unsigned cpu, const struct sockaddr_un *address, socklen_t len,
		     pid_t *holder_out)
{
	if (!holder_out)
		return plx_fail(EBUSY, "CPU %u: another poller has claimed it; take another CPU",
				cpu);
	*holder_out = find_holder(address, len);
	if (!*holder_out)
		return plx_fail(EBUSY,
				"CPU %u: a poller of an unknown process has claimed it; take "
				"another CPU",
				cpu);
	return plx_fail(EBUSY, "CPU %u: a poller of process %d has claimed it; take another CPU",
			cpu, (int)*holder_out);
}

int plx_cpu_claim(unsigned cpu, int *claim_out, pid_t *holder_out)
{
	struct sockaddr_un address;
	socklen_t len = make_address(cpu, &address);

	if (cpu >= PLX_CPU_MAX)
		return plx_fail(EINVAL, "CPU %u is out of range; CPU ids are 0 to %d", cpu,
				PLX_CPU_MAX - 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return plx_fail(errno, "CPU %u: no socket to claim it with: %s", cpu,
				strerror(errno));
	if (bind(fd, (const struct sockaddr *)&address, len) == 0 && listen(fd, SOMAXCONN) == 0) {
		*claim_out = fd;
		return 0;
	}
	int err = errno;

	close(fd);
	if (err == EADDRINUSE)
		return fail_busy(cpu, &address, len, holder_out);
	return plx_fail(err, "CPU %u: cannot claim it: %s", cpu, strerror(err));
}
