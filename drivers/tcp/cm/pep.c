/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints: how they are bound to an address, and refuse. What comes in is request.c's. */
#include "../tcp.h"

#include <errno.h>

/* A listener at :: takes IPv4 too, whatever net.ipv6.bindv6only says; one at an address of IPv6
 * takes that alone. */
static int bind_socket(const struct sockaddr_storage *address)
{
	const struct sockaddr *at = (const struct sockaddr *)address;
	int fd = tcp_sys.socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	tcp_set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (at->sa_family == AF_INET6)
		tcp_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, !address_is_any(at));
	if (bind(fd, at, address_bytes(at)) == 0)
		return fd;
	err = errno;
	tcp_sys.close(fd);
	return -err;
}

static int open_at(struct prov_pep *pep, struct sockaddr_storage *address)
{
	socklen_t bytes = sizeof(*address);
	int fd = bind_socket(address);
	int err;

	if (fd < 0 || getsockname(fd, (struct sockaddr *)address, &bytes) == 0)
		return fd;
	err = errno;
	tcp_sys.close(fd);
	return -err;
}

/* What is accepted inherits these; for buffers it would be too late then (tcp(7)). */
static int start(struct prov_pep *pep)
{
	tcp_set_options(pep->source.fd, pep->info);
	((struct tcp_pep *)pep)->left_bbr = congestion_leave_bbr(pep->source.fd);
	return 0;
}

static void reject(struct prov_request *request, const void *data, size_t length)
{
	uint8_t hello[WIRE_HELLO_MOST];
	size_t bytes = wire_write_hello(hello, WIRE_REJECT, data, length);

	if (tcp_sys.send(request->source.fd, hello, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		tcp_log(FI_LOG_INFO, "a refusal was not sent: %s", strerror(errno));
}

static void init(struct prov_pep *base)
{
	struct tcp_pep *pep = (struct tcp_pep *)base;

	pep->handshakes_max = tcp_params.handshakes_max;
	LIST_INIT(&pep->origins);
}

const struct prov_pep_ops tcp_pep_ops = {
	.bytes = sizeof(struct tcp_pep),
	.request_bytes = sizeof(struct tcp_request),
	.backlog_max = TCP_BACKLOG,
	.evicts = true,
	.init = init,
	.open = open_at,
	.start = start,
	.incoming = tcp_pep_incoming,
	.ready = tcp_request_ready,
	.reject = reject,
	.late = tcp_request_late,
	.leave = tcp_request_leave,
};
