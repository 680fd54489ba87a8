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

static void reject(struct prov_request *request, const void *data, size_t length)
{
	uint8_t hello[WIRE_HELLO_MOST];
	size_t bytes = wire_write_hello(hello, WIRE_REJECT, data, length);

	if (tcp_sys.send(request->source.fd, hello, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		tcp_log(FI_LOG_INFO, "a refusal was not sent: %s", strerror(errno));
}

/* Requests ----------------------------------------------------------------------------------- */

/* Incoming connections until they are answered. Until its HELLO arrives a peer counts against
 * handshakes_max, for at most handshake_ms. At the limit, the oldest connection of the address that
 * has the most is closed. At most `backlog` connections are reported and unanswered; the next ones
 * wait in the kernel, for as long. */

/* A remote address with connections that have not sent their HELLO, oldest first. */
struct tcp_origin {
	LIST_ENTRY(tcp_origin) link;
	TAILQ_HEAD(tcp_requests, tcp_request) requests;
	struct in6_addr address;
	uint32_t count;
};

static struct tcp_pep *pep_of(const struct tcp_request *request)
{
	return (struct tcp_pep *)request->base.pep;
}

/* Origins ---------------------------------------------------------------------------------- */

/* There are at most handshakes_max. Return: NULL: out of memory. */
static struct tcp_origin *find_origin(struct tcp_pep *pep, const struct in6_addr *host)
{
	struct tcp_origin *origin;

	LIST_FOREACH (origin, &pep->origins, link) {
		if (IN6_ARE_ADDR_EQUAL(&origin->address, host))
			return origin;
	}
	origin = calloc(1, sizeof(*origin));
	if (!origin)
		return NULL;
	origin->address = *host;
	TAILQ_INIT(&origin->requests);
	LIST_INSERT_HEAD(&pep->origins, origin, link);
	return origin;
}

static bool enter_origin(struct tcp_request *request)
{
	struct in6_addr host = address_host((struct sockaddr *)&request->base.peer);
	struct tcp_origin *origin;

	if (pep_of(request)->handshakes_max == PLX_NO_LIMIT)
		return true; /* without eviction no count is needed */
	origin = find_origin(pep_of(request), &host);
	if (!origin)
		return false;
	TAILQ_INSERT_TAIL(&origin->requests, request, origin_link);
	origin->count++;
	request->origin = origin;
	return true;
}

static void leave_origin(struct tcp_request *request)
{
	struct tcp_origin *origin = request->origin;

	TAILQ_REMOVE(&origin->requests, request, origin_link);
	request->origin = NULL;
	if (--origin->count)
		return;
	LIST_REMOVE(origin, link);
	free(origin);
}

static void request_leave(struct prov_request *base)
{
	struct tcp_request *request = (struct tcp_request *)base;

	if (request->origin)
		leave_origin(request);
	if (base->source.fd >= 0)
		tcp_sys.close(base->source.fd);
	base->source.fd = -1;
}

/* Refusals --------------------------------------------------------------------------------- */

static const char *const refusals[TCP_REFUSED_COUNT] = {
	[TCP_REFUSED_SILENT] = "it said nothing for too long",
	[TCP_REFUSED_EVICTED] = "too many have said nothing yet, most of them from its address",
	[TCP_REFUSED_GONE] = "it closed before it had said who it is",
};

static void log_refusal(struct tcp_pep *pep, const struct sockaddr_storage *from, const char *why,
			bool evicted)
{
	char peer[ADDRESS_TEXT_BYTES];

	if (pep->on_refused)
		pep->on_refused((const struct sockaddr *)from, why, evicted, pep->refused_arg);
	else if (plx_log_allowed(&pep->log_limit, queue_now_ns()))
		tcp_log(FI_LOG_WARN, "a connection from %s is closed: %s",
			address_format((const struct sockaddr *)from, peer, sizeof(peer)), why);
}

static void refuse(struct tcp_request *request, enum tcp_refusal why)
{
	char text[WIRE_TEXT_BYTES];

	pep_of(request)->refused[why]++;
	log_refusal(pep_of(request), &request->base.peer,
		    refusals[why] ? refusals[why]
				  : wire_describe(&request->hello,
						  why == TCP_REFUSED_VERSION ? HEARD_VERSION
									     : HEARD_STRANGER,
						  text),
		    why == TCP_REFUSED_EVICTED);
	prov_request_free(&request->base);
}

static void request_late(struct prov_request *request)
{
	refuse((struct tcp_request *)request, TCP_REFUSED_SILENT);
}

/* Evict the oldest connection of the address that has the most. */
static void evict_one(struct tcp_pep *pep)
{
	struct tcp_origin *most = NULL, *origin;

	LIST_FOREACH (origin, &pep->origins, link) {
		if (!most || origin->count >= most->count) /* the oldest of equals */
			most = origin;
	}
	if (most)
		refuse(TAILQ_FIRST(&most->requests), TCP_REFUSED_EVICTED);
}

/* HELLO ------------------------------------------------------------------------------------ */

static void tell(struct tcp_request *request)
{
	if (request->origin)
		leave_origin(request);
	if (prov_request_tell(&request->base, wire_hello_data(&request->hello),
			      wire_hello_length(&request->hello)) != 0)
		prov_request_free(&request->base);
}

static void request_ready(struct prov_source *source)
{
	struct tcp_request *request = plx_container_of(source, struct tcp_request, base.source);
	enum wire_heard heard = wire_hear(source->fd, &request->hello);

	if (heard == HEARD_PART)
		return;
	if (heard == HEARD_WHOLE && wire_hello_kind(&request->hello) == WIRE_CONNECT)
		tell(request);
	else
		refuse(request, heard == HEARD_END       ? TCP_REFUSED_GONE
				: heard == HEARD_VERSION ? TCP_REFUSED_VERSION
							 : TCP_REFUSED_STRANGER);
}

/* Accepting -------------------------------------------------------------------------------- */

static void add_request(struct tcp_pep *pep, int fd, const struct sockaddr_storage *peer)
{
	uint64_t late_ns = tcp_params.handshake_ms * PLX_NS_PER_MS;
	struct tcp_request *request;

	tcp_set_options(fd, pep->base.info);
	request = (struct tcp_request *)prov_request_add(&pep->base, fd, late_ns);
	if (!request) {
		tcp_sys.close(fd);
		return;
	}
	prov_address_plain_copy((const struct sockaddr *)peer, &request->base.peer);
	if (pep->left_bbr)
		congestion_return_to_bbr(fd, &request->base.peer);
	if (!enter_origin(request))
		prov_request_free(&request->base);
	else if (pep->base.silent_count > pep->handshakes_max)
		evict_one(pep);
}

static void incoming(struct prov_pep *pep)
{
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);
	int fd = tcp_sys.accept4(pep->source.fd, (struct sockaddr *)&peer, &bytes,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		add_request((struct tcp_pep *)pep, fd, &peer);
	else
		prov_pep_cannot_accept(pep, errno);
}

/* Opening ------------------------------------------------------------------------------------ */

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
	.incoming = incoming,
	.ready = request_ready,
	.reject = reject,
	.late = request_late,
	.leave = request_leave,
};
