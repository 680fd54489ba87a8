/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints: binding to an address, listening, and incoming connections. */
#include "../tcp.h"

#include <errno.h>
#include <stdlib.h>

/* A listener at :: takes IPv4 too, whatever net.ipv6.bindv6only is; one at another IPv6 address
 * takes IPv6 only. */
static int open_at(struct prov_pep *pep, struct sockaddr_storage *address)
{
	struct sockaddr *at = (struct sockaddr *)address;
	int fd = tcp_sys.socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof(*address);
	int err;

	if (fd < 0)
		return -errno;
	tcp_set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (at->sa_family == AF_INET6)
		tcp_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, !address_is_any(at));
	if (bind(fd, at, address_bytes(at)) == 0 && getsockname(fd, at, &bytes) == 0)
		return fd;
	err = errno;
	tcp_sys.close(fd);
	return -err;
}

/* Accepted sockets inherit these; setting buffer sizes later has no effect (tcp(7)). */
static int start(struct prov_pep *pep)
{
	tcp_set_options(pep->source.fd, pep->info);
	((struct tcp_pep *)pep)->left_bbr = congestion_leave_bbr(pep->source.fd);
	return 0;
}

/* Bytes left unread would reset the connection, and the peer might lose the answer. */
static void reject(struct prov_request *request, const void *data, size_t length)
{
	uint8_t unread[WIRE_HELLO_MOST];
	int rc;

	tcp_sys.recv(request->source.fd, unread, sizeof(unread), MSG_DONTWAIT);
	rc = wire_say(request->source.fd, WIRE_REJECT, data, length);
	if (rc)
		tcp_log(FI_LOG_INFO, "a refusal was not sent: %s", strerror(-rc));
}

/* Requests ----------------------------------------------------------------------------------- */

static void request_leave(struct prov_request *base)
{
	if (base->source.fd >= 0)
		tcp_sys.close(base->source.fd);
	base->source.fd = -1;
}

/* It hung up, or what it sent is no request. */
static void refuse(struct tcp_request *request, enum wire_heard heard)
{
	char text[WIRE_TEXT_BYTES];

	if (heard != HEARD_END)
		prov_request_end(&request->base,
				 heard == HEARD_VERSION ? PLX_ADMIT_VERSION : PLX_ADMIT_STRANGER,
				 wire_describe(&request->hello, heard, text));
	else if (request->hello.have)
		prov_request_end(&request->base, PLX_ADMIT_CUT,
				 "it closed before it had said who it is");
	else
		prov_request_end(&request->base, PLX_ADMIT_LEFT, "it closed without a word");
}

static void request_ready(struct prov_request *base)
{
	struct tcp_request *request = (struct tcp_request *)base;
	enum wire_heard heard = wire_hear(base->source.fd, &request->hello);

	if (heard == HEARD_PART)
		return;
	if (heard != HEARD_WHOLE)
		refuse(request, heard);
	else if (wire_hello_kind(&request->hello) == WIRE_CONNECT)
		prov_request_tell(base, wire_hello_data(&request->hello),
				  wire_hello_length(&request->hello));
	else
		refuse(request, HEARD_STRANGER);
}

/* Accepting -------------------------------------------------------------------------------- */

static void incoming(struct prov_pep *pep)
{
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);
	int fd = tcp_sys.accept4(pep->source.fd, (struct sockaddr *)&peer, &bytes,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		prov_pep_cannot_accept(pep, errno);
		return;
	}
	tcp_set_options(fd, pep->info);
	if (((struct tcp_pep *)pep)->left_bbr)
		congestion_return_to_bbr(fd, &peer);
	prov_request_add(pep, fd, (const struct sockaddr *)&peer, 0);
}

/* Opening ------------------------------------------------------------------------------------ */

static void init(struct prov_pep *pep)
{
	pep->handshakes_max = tcp_params.handshakes_max;
	pep->silent_ns = tcp_params.handshake_ms * PLX_NS_PER_MS;
}

const struct prov_pep_ops tcp_pep_ops = {
	.bytes = sizeof(struct tcp_pep),
	.request_bytes = sizeof(struct tcp_request),
	.backlog_max = TCP_BACKLOG,
	.init = init,
	.open = open_at,
	.start = start,
	.incoming = incoming,
	.ready = request_ready,
	.reject = reject,
	.leave = request_leave,
};
