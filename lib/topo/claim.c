/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU claims. bind is the atomic step: it takes the name, even before the socket listens. Listening
 * only lets others ask for the holder's pid.
 *
 * Any user can bind any abstract name, so each CPU has several. A claim skips names held by other
 * users, except root's. Once it holds a name, it checks the later ones for a holder, which may have
 * skipped a name that was in use then. */
#include "base_internal.h"
#include "topo_priv.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAMES 4 /* per CPU */

static struct plx_unix_name make_name(unsigned cpu, unsigned index)
{
	return index ? plx_unix_name("pollux/cpu/%u.%u", cpu, index)
		     : plx_unix_name("pollux/cpu/%u", cpu);
}

/* The pid of the process that listens; 0 if unknown (it does not listen yet, or its backlog is
 * full); -1 nobody listens. */
static pid_t find_holder(const struct plx_unix_name *name)
{
	int fd = plx_unix_socket(name, SOCK_STREAM | SOCK_NONBLOCK, connect);
	struct ucred peer = {.pid = 0};
	socklen_t peer_len = sizeof(peer);

	if (fd < 0)
		return fd == -ECONNREFUSED ? -1 : 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len))
		peer.pid = 0;
	close(fd);
	return peer.pid;
}

enum owner { NOBODY, BELIEVED, OTHER_USER };

/* If the kernel does not report the socket's user, trust the holder. */
static enum owner find_owner(const struct plx_unix_name *name)
{
	uid_t user;
	int rc = plx_unix_owner(&name->address, name->length, &user);

	if (rc == -ESRCH)
		return NOBODY;
	return rc || user == 0 || plx_is_this_user(user) ? BELIEVED : OTHER_USER;
}

static int fail_busy(unsigned cpu, const struct plx_unix_name *name,
		     struct plx_cpu_holder *holder_out)
{
	pid_t pid = holder_out ? find_holder(name) : 0;
	char who[64] = "another poller";

	if (pid > 0)
		snprintf(who, sizeof(who), "a poller of process %d", (int)pid);
	else if (holder_out)
		snprintf(who, sizeof(who), "a poller of an unknown process");
	if (holder_out)
		*holder_out = (struct plx_cpu_holder){.pid = pid > 0 ? pid : 0};
	return plx_fail(EBUSY, "CPU %u: %s has claimed it; take another CPU", cpu, who);
}

static void note_other_user(const struct plx_unix_name *name, struct plx_cpu_holder *holder_out)
{
	pid_t pid;

	if (!holder_out || holder_out->other_user)
		return;
	pid = find_holder(name);
	*holder_out = (struct plx_cpu_holder){.pid = pid > 0 ? pid : 0, .other_user = true};
}

/* Return: a listening socket; -EADDRINUSE the name is taken; -errno. */
static int listen_at(const struct plx_unix_name *name)
{
	int fd = plx_unix_socket(name, SOCK_STREAM, bind), err;

	if (fd < 0 || listen(fd, SOMAXCONN) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int plx_cpu_claim(unsigned cpu, int *claim_out, struct plx_cpu_holder *holder_out)
{
	int fd = -EADDRINUSE;

	if (holder_out)
		*holder_out = (struct plx_cpu_holder){0};
	if (cpu >= PLX_CPU_MAX)
		return plx_fail(EINVAL, "CPU %u is out of range; CPU ids are 0 to %d", cpu,
				PLX_CPU_MAX - 1);
	/* Take the first name that is free, and keep it unless a later one has a holder. */
	for (unsigned index = 0; index < NAMES; index++) {
		struct plx_unix_name name = make_name(cpu, index);
		enum owner owner;

		if (fd >= 0) {
			if (find_holder(&name) < 0)
				continue;
		} else {
			fd = listen_at(&name);
			if (fd >= 0)
				continue;
			if (fd != -EADDRINUSE)
				return plx_fail(-fd, "CPU %u: cannot claim it: %s", cpu,
						strerror(-fd));
		}
		owner = find_owner(&name);
		if (owner == OTHER_USER)
			note_other_user(&name, holder_out);
		if (owner != BELIEVED)
			continue;
		if (fd >= 0)
			close(fd);
		return fail_busy(cpu, &name, holder_out);
	}
	if (fd < 0)
		return plx_fail(EACCES, "CPU %u: other users hold all %d names that claim it", cpu,
				NAMES);
	*claim_out = fd;
	return 0;
}
