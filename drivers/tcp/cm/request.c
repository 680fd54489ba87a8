/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: connections that came in on a passive endpoint's socket, until they are answered. Until
 * its HELLO is there a peer is one of at most handshakes_max, for at most handshake_ms: one more,
 * and the oldest of the address that has most of them is closed. Those that were told of, and not
 * answered, are at most `backlog`; the next ones wait in the kernel, for as long. */
#include "../tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* A remote address with connections that have not sent their HELLO, oldest first. */
struct tcp_origin {
	struct prov_list link;
	struct prov_list requests;
	struct in6_addr address;
	uint32_t count;
};

/* Origins ---------------------------------------------------------------------------------- */

/* That of IPv4 in the form of IPv6. */
static struct in6_addr host_of(const struct sockaddr_storage *peer)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)peer;
	struct in6_addr host = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	if (peer->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)peer)->sin6_addr;
	memcpy(&host.s6_addr[12], &four->sin_addr, sizeof(four->sin_addr));
	return host;
}

static struct tcp_origin *origin_of_link(struct prov_list *link)
{
	return plx_container_of(link, struct tcp_origin, link);
}

/* There are no more than handshakes_max. Return: NULL: no memory. */
static struct tcp_origin *find_origin(struct tcp_pep *pep, const struct in6_addr *host)
{
	struct tcp_origin *origin;

	for (struct prov_list *link = pep->origins.next; link != &pep->origins; link = link->next) {
		origin = origin_of_link(link);
		if (IN6_ARE_ADDR_EQUAL(&origin->address, host))
			return origin;
	}
	origin = calloc(1, sizeof(*origin));
	if (!origin)
		return NULL;
	origin->address = *host;
	list_init(&origin->requests);
	list_append(&pep->origins, &origin->link);
	return origin;
}

static bool enter_origin(struct tcp_request *request)
{
	struct in6_addr host = host_of(&request->peer);
	struct tcp_origin *origin = find_origin(request->pep, &host);

	if (!origin)
		return false;
	list_append(&origin->requests, &request->link);
	origin->count++;
	request->pep->silent_count++;
	request->origin = origin;
	return true;
}

static void leave_origin(struct tcp_request *request)
{
	struct tcp_origin *origin = request->origin;

	list_remove(&request->link);
	request->pep->silent_count--;
	request->origin = NULL;
	if (--origin->count)
		return;
	list_remove(&origin->link);
	free(origin);
}

/* The end of a request ---------------------------------------------------------------------- */

static void close_socket(struct tcp_request *request)
{
	if (request->source.fd >= 0)
		tcp_sys.close(request->source.fd);
	request->source.fd = -1;
}

void tcp_request_take(struct tcp_request *request)
{
	struct tcp_pep *pep = request->pep;

	pthread_mutex_lock(&pep->lock);
	list_remove(&request->link);
	pep->told_count--;
	pthread_mutex_unlock(&pep->lock);
	request->pep = NULL;
}

void tcp_request_free(struct tcp_request *request)
{
	if (request->origin) {
		eq_unwatch(request->pep->eq, &request->source);
		eq_clear_deadline(&request->deadline);
		leave_origin(request);
	} else if (request->pep) {
		tcp_request_take(request);
	}
	close_socket(request);
	free(request);
}

static void free_all(struct prov_list *requests)
{
	while (!list_is_empty(requests))
		tcp_request_free(plx_container_of(requests->next, struct tcp_request, link));
}

void tcp_pep_free_requests(struct tcp_pep *pep)
{
	/* An origin goes with its last request. */
	for (struct prov_list *link = pep->origins.next, *next; link != &pep->origins;
	     link = next) {
		struct prov_list *requests = &origin_of_link(link)->requests;

		next = link->next;
		while (requests->next->next != requests)
			tcp_request_free(
				plx_container_of(requests->next, struct tcp_request, link));
		tcp_request_free(plx_container_of(requests->next, struct tcp_request, link));
	}
	free_all(&pep->told);
}

/* Not taken -------------------------------------------------------------------------------- */

static const char *const refusals[TCP_REFUSED_COUNT] = {
	[TCP_REFUSED_SILENT] = "it said nothing for too long",
	[TCP_REFUSED_EVICTED] = "too many connections have not said anything yet, most of them "
				"from its address",
	[TCP_REFUSED_GONE] = "it closed before it had said who it is",
};

static void log_refusal(struct tcp_pep *pep, const struct sockaddr_storage *from, const char *why,
			bool evicted)
{
	char peer[PROV_ADDRESS_MAX];

	if (pep->on_refused)
		pep->on_refused((const struct sockaddr *)from, why, evicted, pep->refused_arg);
	else if (plx_log_allowed(&pep->log_limit, queue_now_ns()))
		tcp_log(FI_LOG_WARN, "a connection from %s is closed: %s",
			prov_address_format(from, peer), why);
}

static void refuse(struct tcp_request *request, enum tcp_refusal why)
{
	char text[WIRE_TEXT_BYTES];

	request->pep->refused[why]++;
	log_refusal(request->pep, &request->peer,
		    refusals[why] ? refusals[why]
				  : wire_describe(&request->hello,
						  why == TCP_REFUSED_VERSION ? HEARD_VERSION
									     : HEARD_STRANGER,
						  text),
		    why == TCP_REFUSED_EVICTED);
	tcp_request_free(request);
}

static void too_late(struct prov_deadline *deadline)
{
	refuse(plx_container_of(deadline, struct tcp_request, deadline), TCP_REFUSED_SILENT);
}

/* The oldest of the address that has most. */
static void evict_one(struct tcp_pep *pep)
{
	struct tcp_origin *most = NULL;

	for (struct prov_list *link = pep->origins.next; link != &pep->origins; link = link->next) {
		struct tcp_origin *origin = origin_of_link(link);

		if (!most || origin->count > most->count)
			most = origin;
	}
	if (most)
		refuse(plx_container_of(most->requests.next, struct tcp_request, link),
		       TCP_REFUSED_EVICTED);
}

/* HELLO ------------------------------------------------------------------------------------ */

/* From here on nothing is looked for on its socket, as it may become another thread's. */
static void tell(struct tcp_request *request)
{
	struct tcp_pep *pep = request->pep;
	struct fi_info *info = prov_info_of_request(
		pep->info, &pep->address, (struct sockaddr *)&request->peer, &request->fid);

	if (!info || eq_push_request(pep->eq, &pep->fid.fid, info, wire_hello_data(&request->hello),
				     wire_hello_length(&request->hello)) != 0) {
		tcp_log(FI_LOG_WARN, "a connection is refused: out of memory");
		fi_freeinfo(info);
		tcp_request_free(request);
		return;
	}
	eq_unwatch(pep->eq, &request->source);
	eq_clear_deadline(&request->deadline);
	leave_origin(request);
	pthread_mutex_lock(&pep->lock);
	list_append(&pep->told, &request->link);
	pep->told_count++;
	pthread_mutex_unlock(&pep->lock);
}

static void request_incoming(struct prov_source *source)
{
	struct tcp_request *request = plx_container_of(source, struct tcp_request, source);

	switch (wire_hear(request->source.fd, &request->hello)) {
	case HEARD_PART:
		break;
	case HEARD_WHOLE:
		if (wire_hello_kind(&request->hello) == WIRE_CONNECT)
			tell(request);
		else
			refuse(request, TCP_REFUSED_STRANGER);
		break;
	case HEARD_END:
		refuse(request, TCP_REFUSED_GONE);
		break;
	case HEARD_STRANGER:
		refuse(request, TCP_REFUSED_STRANGER);
		break;
	case HEARD_VERSION:
		refuse(request, TCP_REFUSED_VERSION);
		break;
	}
}

/* Accepting -------------------------------------------------------------------------------- */

static void add_request(struct tcp_pep *pep, int fd, const struct sockaddr_storage *peer)
{
	struct tcp_request *request = calloc(1, sizeof(*request));
	uint64_t end_ns = queue_now_ns() + tcp_params.handshake_ms * PLX_NS_PER_MS;

	if (!request) {
		tcp_sys.close(fd);
		return;
	}
	tcp_set_options(fd, pep->info);
	request->fid.fclass = FI_CLASS_CONNREQ;
	request->source = (struct prov_source){.fd = fd, .ready = request_incoming};
	request->deadline.passed = too_late;
	request->pep = pep;
	prov_address_plain_copy((const struct sockaddr *)peer, &request->peer);
	if (!enter_origin(request)) {
		tcp_sys.close(fd);
		free(request);
		return;
	}
	if (eq_set_deadline(pep->eq, &request->deadline, end_ns) != 0 ||
	    eq_watch(pep->eq, &request->source, EPOLLIN | EPOLLRDHUP) != 0) {
		tcp_request_free(request);
		return;
	}
	if (pep->silent_count > pep->handshakes_max)
		evict_one(pep);
}

/* What waits to be accepted keeps the socket readable, so it would be tried for ever. */
static void fail_to_accept(struct tcp_pep *pep, int err)
{
	tcp_log(FI_LOG_WARN, "accepting a connection: %s; trying again in a second", strerror(err));
	if (!pep->failure.is_queued)
		eq_push_error(pep->eq, &pep->failure, &pep->fid.fid, err, NULL, 0);
	tcp_pep_pause(pep);
}

static bool has_room(struct tcp_pep *pep)
{
	bool room;

	pthread_mutex_lock(&pep->lock);
	room = pep->told_count < pep->backlog;
	pthread_mutex_unlock(&pep->lock);
	return room;
}

/* One at a time: the queue comes back for the next ones, 16 in one progress, so that a crowd at the
 * listener costs each turn of a loop half a millisecond at most. */
void tcp_pep_incoming(struct prov_source *source)
{
	struct tcp_pep *pep = plx_container_of(source, struct tcp_pep, source);
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);
	int fd;

	if (!has_room(pep)) {
		tcp_pep_pause(pep);
		return;
	}
	fd = tcp_sys.accept4(pep->source.fd, (struct sockaddr *)&peer, &bytes,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
	/* What is pending on the new socket is passed on by accept(2), too. */
	if (fd >= 0)
		add_request(pep, fd, &peer);
	else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		fail_to_accept(pep, errno);
}
