/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_local.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FDS 3 /* handed over: memory, the client's eventfd, the server's */

union control {
	struct cmsghdr header;
	uint8_t room[CMSG_SPACE(FDS * sizeof(int))];
};

static const struct raw_local nothing = {
	.socket = -1, .memory = -1, .own_event = -1, .peer_event = -1};

/* An abstract name, which vanishes with its socket. */
static int make_name(const struct raw_options *options, struct sockaddr_un *name,
		     socklen_t *bytes_out)
{
	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	int length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "plx-raw/%s",
			      options->host);

	if (length >= (int)sizeof(name->sun_path) - 1)
		return plx_fail(EINVAL, "%.40s...: the name is too long", options->host);
	*bytes_out = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	return 0;
}

static int map(struct raw_local *local)
{
	void *shared = mmap(NULL, RAW_LOCAL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    local->memory, 0);

	if (shared == MAP_FAILED)
		return plx_fail(errno, "cannot map the shared memory: %s", strerror(errno));
	local->shared = shared;
	return 0;
}

void raw_local_close(struct raw_local *local)
{
	const int fds[] = {local->socket, local->memory, local->own_event, local->peer_event};

	if (local->shared)
		munmap(local->shared, RAW_LOCAL_BYTES);
	for (unsigned i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*local = nothing;
}

static int make_shared(struct raw_local *local)
{
	local->memory = memfd_create("plx-raw", MFD_CLOEXEC);
	local->own_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	local->peer_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (local->memory < 0 || local->own_event < 0 || local->peer_event < 0 ||
	    ftruncate(local->memory, (off_t)RAW_LOCAL_BYTES))
		return plx_fail(errno, "cannot make what is shared: %s", strerror(errno));
	int rc = map(local);
	if (!rc)
		memset(local->shared, 0, RAW_LOCAL_BYTES);
	return rc;
}

static int hand_over(const struct raw_local *local)
{
	const int fds[FDS] = {local->memory, local->peer_event, local->own_event};
	union control control = {0};
	struct iovec byte = {"", 1};
	struct msghdr message = {
		.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(header), fds, sizeof(fds));
	if (sendmsg(local->socket, &message, MSG_NOSIGNAL) != 1)
		return plx_fail(errno, "cannot hand over what is shared: %s", strerror(errno));
	return 0;
}

int raw_local_listen(const struct raw_options *options, struct raw_local *local)
{
	struct sockaddr_un name;
	socklen_t bytes = 0;

	*local = nothing;
	int rc = make_name(options, &name, &bytes);
	if (rc)
		return rc;
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&name, bytes) || listen(listener, 1))
		rc = plx_fail(errno, "cannot listen as %s: %s", options->address, strerror(errno));
	raw_catch_signals();
	rc = rc ? rc : make_shared(local);
	if (!rc) {
		raw_say_listening(options->host, "");
		local->socket = raw_accept(options, listener);
		rc = local->socket < 0 ? local->socket : 0;
	}
	rc = rc ? rc : hand_over(local);
	if (listener >= 0)
		close(listener);
	return rc;
}

static int take_over(struct raw_local *local)
{
	union control control = {0};
	struct iovec byte = {&(uint8_t){0}, 1};
	struct msghdr message = {
		.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fds[FDS];

	if (recvmsg(local->socket, &message, MSG_CMSG_CLOEXEC) != 1)
		return plx_fail(EPIPE, "the server is gone");
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_len != CMSG_LEN(sizeof(fds)))
		return plx_fail(EPROTO, "the server handed over nothing to share");
	memcpy(fds, CMSG_DATA(header), sizeof(fds));
	local->memory = fds[0];
	local->own_event = fds[1];
	local->peer_event = fds[2];
	return map(local);
}

int raw_local_connect(const struct raw_options *options, struct raw_local *local)
{
	struct timeval patience = {.tv_sec = RAW_PEER_NS / PLX_NS_PER_S};
	struct sockaddr_un name;
	socklen_t bytes = 0;

	*local = nothing;
	int rc = make_name(options, &name, &bytes);
	if (rc)
		return rc;
	raw_catch_signals();
	local->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (local->socket < 0 ||
	    setsockopt(local->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    connect(local->socket, (struct sockaddr *)&name, bytes))
		return plx_fail(errno, "cannot connect to %s: %s", options->address,
				strerror(errno));
	return take_over(local);
}
