/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric's sockets survive exec and no call returns them, so they are found by their addresses.
 * Only the caller's own sockets are changed: no other thread closes them meanwhile, so their
 * numbers stay valid. Other descriptors are only inspected. */
#include "sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <sockaddr.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool is_listening_at(int fd, const struct sockaddr *address, socklen_t address_len)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int listens = 0;
	socklen_t listens_len = sizeof(listens);

	if (getsockname(fd, (struct sockaddr *)&name, &len) != 0 || len != address_len ||
	    memcmp(&name, address, len) != 0)
		return false;
	/* A connection that an earlier listener accepted may have the same address. */
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_len) == 0 && listens;
}

/* Setup work: may check every descriptor. Return: the descriptor; -1 not found. */
static int find_listener(const struct sockaddr *address, size_t address_len)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	while (all && found < 0 && (entry = readdir(all))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && is_listening_at(fd, address, (socklen_t)address_len))
			found = fd;
	}
	if (all)
		closedir(all);
	return found;
}

void sockets_close_on_exec_listener(const struct sockaddr *address, size_t address_len)
{
	int fd = find_listener(address, address_len);

	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

bool sockets_give_back_port(const struct sockaddr *address, size_t address_len)
{
	int fd = find_listener(address, address_len);
	int silent = fd < 0 ? -1 : eventfd(0, EFD_CLOEXEC); /* is never readable */
	bool given = silent >= 0 && dup3(silent, fd, O_CLOEXEC) >= 0;

	if (silent >= 0)
		close(silent);
	return given;
}

/* Descriptors known to be accepted connections. Looking for the next one skips them without a
 * system call. The system hands out the lowest free number, so only the process's other descriptors
 * below it remain to be checked. Numbers beyond the map are never skipped.
 * Relaxed throughout: only a descriptor's owner writes its bit, and the kernel's lock separates a
 * close from the next use of the number. */
#define KNOWN_MAX 65536

static _Atomic uint64_t known[KNOWN_MAX / 64];

static int next_unknown(int fd)
{
	while (fd < KNOWN_MAX) {
		uint64_t word = atomic_load_explicit(&known[fd / 64], memory_order_relaxed);
		uint64_t unknown = ~word >> fd % 64;

		if (unknown)
			return fd + __builtin_ctzll(unknown);
		fd = (fd / 64 + 1) * 64;
	}
	return fd;
}

static void remember(int fd)
{
	if (fd < KNOWN_MAX)
		atomic_fetch_or_explicit(&known[fd / 64], UINT64_C(1) << fd % 64,
					 memory_order_relaxed);
}

void sockets_forget(int fd)
{
	if (fd >= 0 && fd < KNOWN_MAX)
		atomic_fetch_and_explicit(&known[fd / 64], ~(UINT64_C(1) << fd % 64),
					  memory_order_relaxed);
}

static bool is_accepted(int fd, uint16_t port, const struct sockaddr *peer, socklen_t peer_len)
{
	struct sockaddr_storage name = {0};
	socklen_t len = sizeof(name);

	if (getpeername(fd, (struct sockaddr *)&name, &len) != 0 || len != peer_len ||
	    memcmp(&name, peer, len) != 0)
		return false;
	len = sizeof(name);
	return getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
	       address_port((struct sockaddr *)&name) == port;
}

int sockets_close_on_exec_accepted(uint16_t port, const struct sockaddr *peer, size_t peer_len,
				   unsigned looks_max)
{
	int fd = -1;

	for (unsigned looks = 0; looks < looks_max; looks++) {
		fd = next_unknown(fd + 1);
		if (is_accepted(fd, port, peer, (socklen_t)peer_len)) {
			fcntl(fd, F_SETFD, FD_CLOEXEC);
			remember(fd);
			return fd;
		}
	}
	return -1;
}
