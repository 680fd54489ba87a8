/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints: how they are made, bound to an address, and listen. What comes in then is
 * request.c's. */
#include "../shm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define PORT_TRIES 64

static struct shm_pep *pep_of(struct fid *fid)
{
	return (struct shm_pep *)fid;
}

/* Listening -------------------------------------------------------------------------------- */

static int bind_to_name(const struct sockaddr_un *name, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd >= 0 && bind(fd, (const struct sockaddr *)name, length) == 0)
		return fd;
	err = errno;
	if (fd >= 0)
		close(fd);
	return -err;
}

static bool is_there(const struct sockaddr_un *name, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool there = fd < 0 || connect(fd, (const struct sockaddr *)name, length) == 0 ||
		     errno != ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return there;
}

/* Whoever passed over names that other users had may have a later one than is free by now. */
static bool is_held_later(const struct sockaddr_un *name, socklen_t length, unsigned index)
{
	struct sockaddr_un standin;

	while (++index < SHM_NAME_STANDINS) {
		socklen_t bytes = shm_address_standin(name, length, index, &standin);

		if (is_there(&standin, bytes) && !shm_name_is_foreign(&standin, bytes))
			return true;
	}
	return false;
}

/* Return: a socket that is bound to the name of that address, or to one that stands for it; -errno.
 */
static int bind_name(const struct sockaddr_storage *address)
{
	struct sockaddr_un names[3], standin;
	socklen_t lengths[3];
	int fd = -FI_EADDRINUSE;

	if (shm_address_names((const struct sockaddr *)address, names, lengths) < 1)
		return -FI_EINVAL;
	for (unsigned i = 0; i < SHM_NAME_STANDINS && fd == -FI_EADDRINUSE; i++) {
		socklen_t bytes = shm_address_standin(&names[0], lengths[0], i, &standin);

		fd = bind_to_name(&standin, bytes);
		if (fd >= 0 && is_held_later(&names[0], lengths[0], i)) {
			close(fd);
			return -FI_EADDRINUSE;
		}
		if (fd == -FI_EADDRINUSE && !shm_name_is_foreign(&standin, bytes))
			return fd;
	}
	return fd;
}

static int bind_free_port(struct sockaddr_storage *address)
{
	int fd = -FI_EADDRINUSE;

	for (int i = 0; i < PORT_TRIES && fd == -FI_EADDRINUSE; i++) {
		int rc = prov_address_find_port(address);

		fd = rc ? rc : bind_name(address);
	}
	return fd;
}

/* Take an address; a port is found where it has none. */
static int bind_to(struct shm_pep *pep, const struct sockaddr_storage *wanted)
{
	struct sockaddr_storage address = *wanted;
	int fd;

	if (pep->source.fd >= 0 && memcmp(&address, &pep->address, sizeof(address)) == 0)
		return 0; /* its own already */
	if (!prov_address_is_local(&shm_prov, (struct sockaddr *)&address))
		return -FI_EADDRNOTAVAIL;
	if (prov_address_port((struct sockaddr *)&address))
		fd = bind_name(&address);
	else
		fd = bind_free_port(&address);
	if (fd < 0)
		return fd;
	if (pep->source.fd >= 0)
		close(pep->source.fd);
	pep->source.fd = fd;
	pep->address = address;
	return 0;
}

static int start(struct shm_pep *pep)
{
	if (pep->timer.fd < 0)
		pep->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (pep->timer.fd < 0 || listen(pep->source.fd, (int)pep->backlog))
		return -errno;

	int rc = eq_watch(pep->eq, &pep->timer, EPOLLIN);
	return rc ? rc : eq_watch(pep->eq, &pep->source, EPOLLIN);
}

static int pep_listen(struct fid_pep *fid)
{
	struct shm_pep *pep = pep_of(&fid->fid);
	int rc = 0;

	if (!pep->eq)
		return -FI_ENOEQ;
	if (pep->listening)
		return -FI_EOPBADSTATE;
	if (!segment_try()) /* who finds nobody here goes by another provider at once */
		return -FI_EOPNOTSUPP;
	if (pep->source.fd < 0)
		rc = bind_to(pep, &pep->address);
	rc = rc ? rc : start(pep);
	pep->listening = rc == 0;
	return rc;
}

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *data, size_t length)
{
	struct shm_request *request = (struct shm_request *)handle;

	if (!handle || handle->fclass != FI_CLASS_CONNREQ || length > PROV_CM_DATA_MAX)
		return -FI_EINVAL;
	if (request->pep != pep_of(&fid->fid)) /* an endpoint's: to close that one refuses it */
		return -FI_EINVAL;
	/* Where that does not reach it, the end of the socket does. */
	wire_send(request->source.fd, WIRE_REJECT, NULL, data, length);
	request_free(request);
	return 0;
}

static int pep_setname(fid_t fid, void *addr, size_t bytes)
{
	struct shm_pep *pep = pep_of(fid);
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
	struct shm_pep *pep = pep_of(fid);
	struct prov_eq *eq = (struct prov_eq *)bound;

	if (bound->fclass != FI_CLASS_EQ || pep->eq || eq->fabric != pep->fabric)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	pep->eq = eq;
	eq->refs++;
	return 0;
}

static int set_backlog(struct shm_pep *pep, int backlog)
{
	if (backlog < 1)
		return -FI_EINVAL;
	pep->backlog = backlog < SHM_BACKLOG ? (uint32_t)backlog : SHM_BACKLOG;
	if (!pep->listening)
		return 0;
	if (listen(pep->source.fd, (int)pep->backlog))
		return -errno;
	pep_resume(pep);
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

static void pep_free(struct shm_pep *pep)
{
	if (pep->source.fd >= 0)
		close(pep->source.fd);
	if (pep->timer.fd >= 0)
		close(pep->timer.fd);
	pthread_mutex_destroy(&pep->lock);
	fi_freeinfo(pep->info);
	free(pep);
}

static int pep_close(struct fid *fid)
{
	struct shm_pep *pep = pep_of(fid);

	if (pep->eq) {
		eq_unwatch(pep->eq, &pep->source);
		eq_unwatch(pep->eq, &pep->timer);
		pep->paused = false;
		for (struct shm_request *request = pep->requests, *next; request; request = next) {
			next = request->next;
			request_free(request);
		}
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

int shm_pep_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_pep **pep_out,
		 void *context)
{
	struct prov_fabric *fabric = (struct prov_fabric *)fabric_fid;
	struct sockaddr_storage address;
	struct shm_pep *pep;
	int rc = info ? choose_address(info, &address) : -FI_EINVAL;

	if (rc)
		return rc;
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	pthread_mutex_init(&pep->lock, NULL);
	pep->source = (struct prov_source){.fd = -1, .ready = pep_incoming};
	pep->timer = (struct prov_source){.fd = -1, .ready = pep_tick};
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
	pep->backlog = SHM_BACKLOG;
	pep->fabric = fabric;
	fabric_ref(fabric);
	*pep_out = &pep->fid;
	return 0;
}
