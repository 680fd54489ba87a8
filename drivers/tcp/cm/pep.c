/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints: how they are made, bound to an address, and listen. What comes in then is
 * request.c's. */
#include "../tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define PAUSE_NS PLX_NS_PER_S

static struct tcp_pep *pep_of(struct fid *fid)
{
	return (struct tcp_pep *)fid;
}

/* Listening -------------------------------------------------------------------------------- */

static void set(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

/* A listener at :: takes IPv4 too, whatever net.ipv6.bindv6only says; one at an address of IPv6
 * takes that alone. */
static int open_socket(const struct sockaddr_storage *address)
{
	const struct sockaddr *at = (const struct sockaddr *)address;
	int fd = tcp_sys.socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (at->sa_family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !prov_address_is_any(at));
	if (bind(fd, at, prov_address_bytes(at)) == 0)
		return fd;
	err = errno;
	tcp_sys.close(fd);
	return -err;
}

/* Take an address; the kernel finds a port where it has none. */
static int bind_to(struct tcp_pep *pep, const struct sockaddr_storage *wanted)
{
	struct sockaddr_storage address = *wanted;
	socklen_t bytes = sizeof(address);
	int fd;

	if (pep->source.fd >= 0 && memcmp(&address, &pep->address, sizeof(address)) == 0)
		return 0; /* its own already */
	fd = open_socket(&address);
	if (fd < 0)
		return fd;
	if (getsockname(fd, (struct sockaddr *)&address, &bytes)) {
		int err = errno;

		tcp_sys.close(fd);
		return -err;
	}
	if (pep->source.fd >= 0)
		tcp_sys.close(pep->source.fd);
	pep->source.fd = fd;
	pep->address = address;
	return 0;
}

/* Buffers are inherited by what is accepted, and have to be set before that (tcp(7)). */
static int start(struct tcp_pep *pep)
{
	tcp_set_options(pep->source.fd, pep->info);
	if (listen(pep->source.fd, (int)pep->backlog))
		return -errno;
	return eq_watch(pep->eq, &pep->source, EPOLLIN);
}

static int pep_listen(struct fid_pep *fid)
{
	struct tcp_pep *pep = pep_of(&fid->fid);
	int rc = 0;

	if (!pep->eq)
		return -FI_ENOEQ;
	if (pep->listening)
		return -FI_EOPBADSTATE;
	if (pep->source.fd < 0)
		rc = bind_to(pep, &pep->address);
	rc = rc ? rc : eq_prepare_deadlines(pep->eq);
	rc = rc ? rc : start(pep);
	pep->listening = rc == 0;
	return rc;
}

static void resume(struct prov_deadline *deadline)
{
	struct tcp_pep *pep = plx_container_of(deadline, struct tcp_pep, resume);

	pep->is_paused = eq_watch(pep->eq, &pep->source, EPOLLIN) != 0;
	if (pep->is_paused)
		tcp_pep_pause(pep);
}

/* What waits to be accepted would wake whoever sleeps again and again. */
void tcp_pep_pause(struct tcp_pep *pep)
{
	if (pep->resume.at_ns ||
	    eq_set_deadline(pep->eq, &pep->resume, queue_now_ns() + PAUSE_NS) != 0)
		return;
	eq_unwatch(pep->eq, &pep->source);
	pep->is_paused = true;
}

/* Answering -------------------------------------------------------------------------------- */

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *data, size_t length)
{
	struct tcp_request *request = (struct tcp_request *)handle;
	uint8_t hello[WIRE_HELLO_MOST];
	size_t bytes;

	if (!handle || handle->fclass != FI_CLASS_CONNREQ || length > PROV_CM_DATA_MAX)
		return -FI_EINVAL;
	if (request->pep != pep_of(&fid->fid)) /* an endpoint's: to close that one refuses it */
		return -FI_EINVAL;
	/* Where that does not reach it, the end of the socket does. */
	bytes = wire_write_hello(hello, WIRE_REJECT, data, length);
	if (tcp_sys.send(request->source.fd, hello, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		tcp_log(FI_LOG_INFO, "a refusal was not sent: %s", strerror(errno));
	tcp_request_free(request);
	return 0;
}

static int pep_setname(fid_t fid, void *addr, size_t bytes)
{
	struct tcp_pep *pep = pep_of(fid);
	struct sockaddr_storage address;
	int rc = prov_address_take(addr, bytes, &address);

	if (pep->listening)
		return -FI_EOPBADSTATE;
	return rc ? rc : bind_to(pep, &address);
}

static int pep_getname(fid_t fid, void *addr, size_t *bytes)
{
	return prov_address_give(&pep_of(fid)->address, addr, bytes);
}

/* Options, opening, closing ---------------------------------------------------------------- */

static int pep_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct tcp_pep *pep = pep_of(fid);
	struct prov_eq *eq = (struct prov_eq *)bound;

	if (bound->fclass != FI_CLASS_EQ || pep->eq || eq->fabric != pep->fabric)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	pep->eq = eq;
	eq->refs++;
	return 0;
}

static int set_backlog(struct tcp_pep *pep, int backlog)
{
	if (backlog < 1)
		return -FI_EINVAL;
	pep->backlog = backlog < TCP_BACKLOG ? (uint32_t)backlog : TCP_BACKLOG;
	if (pep->listening && listen(pep->source.fd, (int)pep->backlog))
		return -errno;
	return 0;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	return command == FI_BACKLOG ? set_backlog(pep_of(fid), *(int *)arg) : -FI_ENOSYS;
}

/* fi_cancel takes any object, and this one has nothing under way. */
static ssize_t pep_cancel(fid_t fid, void *context)
{
	return -FI_ENOSYS;
}

static void pep_free(struct tcp_pep *pep)
{
	if (pep->source.fd >= 0)
		tcp_sys.close(pep->source.fd);
	pthread_mutex_destroy(&pep->lock);
	fi_freeinfo(pep->info);
	free(pep);
}

static int pep_close(struct fid *fid)
{
	struct tcp_pep *pep = pep_of(fid);

	if (pep->eq) {
		eq_unwatch(pep->eq, &pep->source);
		eq_clear_deadline(&pep->resume);
		tcp_pep_free_requests(pep);
		eq_forget(pep->eq, fid);
		pep->eq->refs--;
	}
	fabric_unref(pep->fabric);
	pep_free(pep);
	return 0;
}

static struct fi_ops pep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = pep_close,
	.bind = pep_bind,
	.control = pep_control,
	.ops_open = prov_no_ops_open,
};

static struct fi_ops_ep pep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = pep_cancel,
	.getopt = prov_getopt,
	.setopt = prov_setopt,
};

static struct fi_ops_cm pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pep_setname,
	.getname = pep_getname,
	.listen = pep_listen,
	.reject = pep_reject,
};

static int choose_address(const struct fi_info *info, struct sockaddr_storage *out)
{
	if (info->src_addr)
		return prov_address_take(info->src_addr, info->src_addrlen, out);
	memset(out, 0, sizeof(*out)); /* the wildcard of both families is all 0 */
	out->ss_family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	return 0;
}

int tcp_pep_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_pep **pep_out,
		 void *context)
{
	struct prov_fabric *fabric = (struct prov_fabric *)fabric_fid;
	struct sockaddr_storage address;
	struct tcp_pep *pep;
	int rc = info ? choose_address(info, &address) : -FI_EINVAL;

	if (rc)
		return rc;
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	pthread_mutex_init(&pep->lock, NULL);
	pep->source = (struct prov_source){.fd = -1, .ready = tcp_pep_incoming};
	pep->resume.passed = resume;
	list_init(&pep->origins);
	list_init(&pep->told);
	pep->info = fi_dupinfo(info);
	if (!pep->info) {
		pep_free(pep);
		return -FI_ENOMEM;
	}
	pep->fid.fid.fclass = FI_CLASS_PEP;
	pep->fid.fid.context = context;
	pep->fid.fid.ops = &pep_fid_ops;
	pep->fid.ops = &pep_ops;
	pep->fid.cm = &pep_cm_ops;
	pep->address = address;
	pep->backlog = TCP_BACKLOG;
	pep->handshakes_max = tcp_params.handshakes_max;
	pep->fabric = fabric;
	fabric_ref(fabric);
	*pep_out = &pep->fid;
	return 0;
}
