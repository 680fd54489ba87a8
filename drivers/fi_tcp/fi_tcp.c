/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric's own TCP providers, for comparison on trusted networks only: `tcp`, and `net`, the
 * rewrite that replaced it under the name `tcp` in libfabric 1.18. Any client can stall them with
 * 32 bytes and end the process with one header. Both speak the same wire format, which differs from
 * that of plx_tcp. Figures and facts: doc/design/links.md. */
#include "../compat.h"
#include "plx_fabric_driver.h"

#include <dirent.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <sockaddr.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

extern const struct plx_fabric_driver plx_driver_fi_tcp;

static const char *fi_tcp_provider(const char *asked, bool exact, uint32_t version)
{
	if (!exact)
		return strcmp(asked, "fi:tcp") == 0 ? "tcp" : NULL; /* the driver itself */
	if (strcmp(asked, "tcp") == 0)
		return "tcp";
	return strcmp(asked, "net") == 0 && FI_VERSION_LT(version, FI_VERSION(1, 18)) ? "net"
										      : NULL;
}

/* CQs that are only polled have a descriptor too. With more than a few links, tcp polls such a CQ
 * in a fifth of the time that it needs with FI_WAIT_NONE, which polls every socket. */
static int fi_tcp_open_queues(struct plx_fabric_fids *fids, const struct fi_info *info)
{
	struct fi_wait_attr wait_attr = {.wait_obj = FI_WAIT_FD};
	struct fi_cq_attr cq_attr = {
		.size = fids->cq_entries,
		.format = fids->cq_format,
		.wait_obj = FI_WAIT_SET,
	};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_SET};
	int rc;

	/* fi_trywait of net 1.17 never clears its descriptor: after the first completion an epoll
	 * on its CQ always returns at once. A wait set over CQ and EQ works, and polls as fast. */
	if (strcmp(info->fabric_attr->prov_name, "net") != 0)
		return plx_fabric_open_queues(fids, info);
	rc = compat_wait_open(fids->fabric, &wait_attr, &fids->wait);
	if (rc)
		return rc;
	cq_attr.wait_set = eq_attr.wait_set = fids->wait;
	rc = fi_cq_open(fids->domain, &cq_attr, &fids->cq, NULL);
	rc = rc ? rc : fi_eq_open(fids->fabric, &eq_attr, &fids->eq, NULL);
	return rc ? rc : fi_control(&fids->wait->fid, FI_GETWAIT, &fids->wait_fd);
}

static int fi_tcp_arm(struct plx_fabric_fids *fids)
{
	if (fids->wait)
		return compat_wait(fids->wait, 0) == -FI_ETIMEDOUT ? 0 : -FI_EAGAIN;
	return plx_fabric_arm_queues(fids);
}

/* Sockets -------------------------------------------------------------------------------------- */

/* libfabric's sockets survive exec and no call returns them, so they are found by their addresses.
 * Only the caller's own sockets are changed: no other thread closes them meanwhile, so their
 * numbers stay valid. Other descriptors are only inspected. */

static bool is_listening_at(int fd, const struct sockaddr_storage *address, size_t address_len)
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
static int find_listener(struct fid_pep *pep)
{
	struct sockaddr_storage address;
	size_t length = sizeof(address);
	DIR *all = fi_getname(&pep->fid, &address, &length) ? NULL : opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	while (all && found < 0 && (entry = readdir(all))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && is_listening_at(fd, &address, length))
			found = fd;
	}
	if (all)
		closedir(all);
	return found;
}

static void fi_tcp_listens(struct fid_pep *pep)
{
	int fd = find_listener(pep);

	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Both providers keep using a closed passive endpoint, without counting the reference, while they
 * wait for the rest of the request on an accepted connection. A peer that takes longer than the
 * grace period defeats this. So the port is given back at once, by putting another descriptor in
 * the place of the socket, which its owner closes later without noticing. */
static bool fi_tcp_outlives_close(struct fid_pep *pep)
{
	int fd = find_listener(pep);
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

/* Call before closing the descriptor. Accepts -1. */
static void forget(int fd)
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

/* Make the caller's connection from that peer to that local port close-on-exec. Checks at most
 * looks_max descriptors, one system call each, and skips known accepted connections. Return: the
 * descriptor, to forget before it is closed; -1 not found: it lies past looks_max descriptors and
 * stays inheritable, or the peer has already reset it. */
static int close_on_exec_accepted(uint16_t port, const struct sockaddr *peer, size_t peer_len,
				  unsigned looks_max)
{
	int fd = -1;

	for (unsigned looks = 0; looks < looks_max; looks++) {
		fd = next_unknown(fd + 1);
		if (is_accepted(fd, port, peer, (socklen_t)peer_len)) {
			fcntl(fd, F_SETFD, FD_CLOEXEC);
			if (fd < KNOWN_MAX)
				atomic_fetch_or_explicit(&known[fd / 64], UINT64_C(1) << fd % 64,
							 memory_order_relaxed);
			return fd;
		}
	}
	return -1;
}

/* Descriptors checked for one accepted connection: less than a millisecond in the worst case. */
#define ACCEPT_LOOKS_MAX 4096

static int fi_tcp_requested(struct fid_pep *pep, const struct fi_info *request)
{
	struct sockaddr_storage name;
	size_t length = sizeof(name);

	if (fi_getname(&pep->fid, &name, &length) != 0)
		return -1;
	return close_on_exec_accepted(address_port((struct sockaddr *)&name), request->dest_addr,
				      request->dest_addrlen, ACCEPT_LOOKS_MAX);
}

const struct plx_fabric_driver plx_driver_fi_tcp = {
	.name = "fi:tcp",
	.summary = "TCP by libfabric's own provider, on trusted networks only, for comparison",
	.provider = fi_tcp_provider,
	.open_queues = fi_tcp_open_queues,
	.arm = fi_tcp_arm,
	.listens = fi_tcp_listens,
	.requested = fi_tcp_requested,
	.closing = forget,
	.outlives_close = fi_tcp_outlives_close,
	.direct = true,
	.tx_size = 256, /* both are the providers' defaults; they enforce only the second */
	.rx_size = 256,
	.cq_entries = 1024, /* beyond it they spill into a list and never overrun */
	.signal_every = 32, /* with the local window, at most 1024 frames queue for a silent peer */
	.eq_every_turns = 256,
	.eq_pending_turns = 16, /* reading the EQ sends the answer of an accept */
};
