/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection, seen from either side: connecting, accepting, starting, shutting down, closing. The
 * connecting socket connects, sends a HELLO and receives one, all within one deadline. */
#include "../tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* An endpoint that connects. */
struct tcp_dial {
	struct prov_dial base;
	bool is_sent; /* our HELLO */
	struct wire_hello answer;
};

static struct tcp_dial *dial_of(const struct tcp_ep *ep)
{
	return (struct tcp_dial *)ep->base.dial;
}

static void dial_end(struct tcp_ep *ep)
{
	if (ep->base.dial)
		eq_unwatch(ep->base.eq, &ep->base.source);
	prov_dial_end(&ep->base);
}

/* Options of sockets ----------------------------------------------------------------------- */

/* If the kernel rejects an option, connecting continues without it. */
void tcp_set_option(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

/* DSCP is above the two ECN bits. An IPv6 socket may connect by IPv4. */
static void set_class(int fd, const struct fi_info *info)
{
	uint32_t tclass = info->tx_attr ? info->tx_attr->tclass : FI_TC_UNSPEC;
	int dscp = tclass & FI_TC_DSCP ? fi_tc_dscp_get(tclass) : (int)tcp_params.dscp;

	if (!dscp)
		return;
	tcp_set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, dscp << 2);
	tcp_set_option(fd, IPPROTO_IP, IP_TOS, dscp << 2);
}

void tcp_set_options(int fd, const struct fi_info *info)
{
	tcp_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (tcp_params.send_bytes)
		tcp_set_option(fd, SOL_SOCKET, SO_SNDBUF, (int)tcp_params.send_bytes);
	if (tcp_params.receive_bytes)
		tcp_set_option(fd, SOL_SOCKET, SO_RCVBUF, (int)tcp_params.receive_bytes);
	if (tcp_params.user_timeout_ms)
		tcp_set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)tcp_params.user_timeout_ms);
	if (tcp_params.busy_poll_us)
		tcp_set_option(fd, SOL_SOCKET, SO_BUSY_POLL, (int)tcp_params.busy_poll_us);
	set_class(fd, info);
}

/* Seconds: a host that answers nothing is lost after 25 s. */
#define PROBE_AFTER 10
#define PROBE_EVERY 5
#define PROBE_COUNT 3

/* The kernel sends no probes while data waits for an acknowledgement or a window: then
 * TCP_USER_TIMEOUT ends the connection. It also replaces PROBE_COUNT. */
void tcp_set_keepalive(int fd, uint32_t unanswered_ms)
{
	tcp_set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, PROBE_AFTER);
	tcp_set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_EVERY);
	tcp_set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBE_COUNT);
	tcp_set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	if (unanswered_ms && !tcp_params.user_timeout_ms)
		tcp_set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)unanswered_ms);
}

/* Congestion control within one host. BBR paces by a timer even without a network: a stream of 1
 * MiB messages to a process of the same host ran at 0.6 times its rate with Reno. So on hosts that
 * default to BBR, connections within the host use Reno. A socket that connected with BBR stays
 * paced whatever is set later. So listeners use Reno too, and connections accepted from other hosts
 * return to BBR. */

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

/* Both sides ------------------------------------------------------------------------------- */

void tcp_ep_disconnect(struct prov_ep *base)
{
	struct tcp_ep *ep = (struct tcp_ep *)base;

	dial_end(ep);
	poll_end(ep);
	if (base->source.fd < 0)
		return;
	/* A forked child may still hold the socket. */
	tcp_sys.shutdown(base->source.fd, SHUT_RDWR);
	tcp_sys.close(base->source.fd);
	base->source.fd = -1;
}

/* Both sides have sent a HELLO. The kernel knows this side's address. Return: 0: it is
 * EP_CONNECTED; -errno. */
static int begin(struct tcp_ep *ep)
{
	struct sockaddr_storage local;
	socklen_t length = sizeof(local);
	int rc = poll_begin(ep);

	if (rc)
		return rc;
	if (getsockname(ep->base.source.fd, (struct sockaddr *)&local, &length) == 0)
		prov_address_plain_copy((struct sockaddr *)&local, &ep->base.local);
	ep->base.state = EP_CONNECTED;
	return 0;
}

int tcp_ep_accept(struct prov_ep *base, const void *data, size_t length)
{
	int rc = wire_say(base->source.fd, WIRE_ACCEPT, data, length);

	return rc ? -FI_ECONNABORTED : begin((struct tcp_ep *)base);
}

void tcp_ep_shutdown(struct prov_ep *base)
{
	struct tcp_ep *ep = (struct tcp_ep *)base;

	tcp_ep_send_rest(ep);
	/* Not SHUT_RD too: what the peer still sends would reset the connection. */
	tcp_sys.shutdown(base->source.fd, SHUT_WR);
	tcp_ep_finish(ep);
}

/* The answer ------------------------------------------------------------------------------- */

static void too_late(struct prov_deadline *deadline)
{
	struct prov_dial *dial = plx_container_of(deadline, struct prov_dial, deadline);

	prov_ep_fail(dial->ep, FI_ETIMEDOUT, NULL, 0);
}

static void accepted(struct tcp_ep *ep)
{
	struct wire_hello answer = dial_of(ep)->answer;
	int rc;

	dial_end(ep);
	rc = begin(ep);
	if (rc) {
		prov_ep_fail(&ep->base, -rc, NULL, 0);
		return;
	}
	prov_ep_tell(&ep->base, FI_CONNECTED, wire_hello_data(&answer), wire_hello_length(&answer));
}

/* Without data if it connected to itself, or to another connecting socket. */
static void refused(struct tcp_ep *ep)
{
	const struct wire_hello *answer = &dial_of(ep)->answer;
	bool has_data = wire_hello_kind(answer) == WIRE_REJECT;

	prov_ep_fail(&ep->base, FI_ECONNREFUSED, wire_hello_data(answer),
		     has_data ? wire_hello_length(answer) : 0);
}

/* The listener speaks another protocol. */
static void stranger(struct tcp_ep *ep, enum wire_heard heard)
{
	char peer[ADDRESS_TEXT_BYTES], what[WIRE_TEXT_BYTES];

	tcp_log(FI_LOG_WARN, "no connection to %s: %s",
		address_format((const struct sockaddr *)&ep->base.peer, peer, sizeof(peer)),
		wire_describe(&dial_of(ep)->answer, heard, what));
	ep->why = ep->said = strdup(what);
	prov_ep_fail(&ep->base, FI_ECONNREFUSED, NULL, 0);
}

static void answered(struct tcp_ep *ep)
{
	enum wire_heard heard = wire_hear(ep->base.source.fd, &dial_of(ep)->answer);

	switch (heard) {
	case HEARD_PART:
		break;
	case HEARD_WHOLE:
		if (wire_hello_kind(&dial_of(ep)->answer) == WIRE_ACCEPT)
			accepted(ep);
		else
			refused(ep);
		break;
	case HEARD_END: /* hanging up without an answer is a rejection too */
		ep->why = "it closed the connection without an answer: does it speak plx_tcp's "
			  "protocol?";
		prov_ep_fail(&ep->base, FI_ECONNREFUSED, NULL, 0);
		break;
	default:
		stranger(ep, heard);
	}
}

/* A listener that closed after the kernel had accepted also rejects. */
static int error_of(int err)
{
	return err == ECONNRESET || err == EPIPE ? FI_ECONNREFUSED : err;
}

/* A listener without room rejects before it reads a HELLO. Its answer may arrive with a reset. */
static void fail_to_begin(struct tcp_ep *ep, int err)
{
	struct wire_hello *answer = &dial_of(ep)->answer;

	if (wire_hear(ep->base.source.fd, answer) == HEARD_WHOLE &&
	    wire_hello_kind(answer) == WIRE_REJECT)
		refused(ep);
	else
		prov_ep_fail(&ep->base, error_of(err), NULL, 0);
}

/* The socket has connected or failed. */
static void connected(struct tcp_ep *ep)
{
	const struct prov_dial *dial = ep->base.dial;
	socklen_t length = sizeof(int);
	int err = 0;

	if (getsockopt(ep->base.source.fd, SOL_SOCKET, SO_ERROR, &err, &length))
		err = errno;
	err = err ? err : -wire_say(ep->base.source.fd, WIRE_CONNECT, dial->data, dial->length);
	if (err) {
		fail_to_begin(ep, err);
		return;
	}
	dial_of(ep)->is_sent = true;
	if (eq_watch(ep->base.eq, &ep->base.source, EPOLLIN | EPOLLRDHUP) != 0)
		prov_ep_fail(&ep->base, errno, NULL, 0);
}

static void dial_ready(struct plx_watch *source, uint32_t events)
{
	struct tcp_ep *ep = plx_container_of(source, struct tcp_ep, base.source);

	if (dial_of(ep)->is_sent)
		answered(ep);
	else
		connected(ep);
}

/* Connecting ------------------------------------------------------------------------------- */

/* Bind to the requested source address, if any. */
static int bind_local(int fd, const struct sockaddr_storage *local)
{
	const struct sockaddr *address = (const struct sockaddr *)local;

	if (!local->ss_family || (address_is_any(address) && !address_port(address)))
		return 0;
	tcp_set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	return bind(fd, address, address_bytes(address)) ? -errno : 0;
}

static int dial(struct tcp_ep *ep)
{
	const struct sockaddr *peer = (const struct sockaddr *)&ep->base.peer;
	int fd = tcp_sys.socket(peer->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	ep->base.source = (struct plx_watch){.fd = fd, .ready = dial_ready};
	tcp_set_options(fd, ep->base.info);
	if (congestion_leave_bbr(fd))
		congestion_return_to_bbr(fd, &ep->base.peer);
	rc = bind_local(fd, &ep->base.local);
	if (rc)
		return rc;
	if (tcp_sys.connect(fd, peer, address_bytes(peer)) && errno != EINPROGRESS)
		return -errno;
	return eq_watch(ep->base.eq, &ep->base.source, EPOLLOUT);
}

int tcp_ep_connect(struct prov_ep *base, const void *data, size_t length)
{
	uint64_t end_ns = queue_now_ns() + tcp_params.connect_ms * PLX_NS_PER_MS;
	int rc = prov_dial_begin(base, sizeof(struct tcp_dial), too_late, data, length);

	rc = rc ? rc : eq_set_deadline(base->eq, &base->dial->deadline, end_ns);
	return rc ? rc : dial((struct tcp_ep *)base);
}
