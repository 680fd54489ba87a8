/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints: a listening socket, and the requests that came in on it until they are
 * answered. There are at most `backlog` of those; the next ones wait in the kernel, for as long. */
#include "shm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define ACCEPTED_MAX 16 /* connections in one go */
#define PORT_TRIES   64
#define SILENT_TICKS 5 /* seconds that a request may take to send its first message */

static struct shm_pep *pep_of(struct fid *fid)
{
	return (struct shm_pep *)fid;
}

/* Timer ------------------------------------------------------------------------------------ */

static void set_timer(struct shm_pep *pep, bool on)
{
	struct itimerspec every = {.it_interval.tv_sec = on, .it_value.tv_sec = on};

	if (pep->ticking == on || timerfd_settime(pep->timer.fd, 0, &every, NULL))
		return;
	pep->ticking = on;
}

/* Requests --------------------------------------------------------------------------------- */

/* With the lock held. */
static void resume(struct shm_pep *pep)
{
	if (pep->paused && pep->request_count < pep->backlog)
		pep->paused = eq_watch(pep->eq, &pep->source, EPOLLIN) != 0;
}

/* The same. */
static void pause_listening(struct shm_pep *pep)
{
	eq_unwatch(pep->eq, &pep->source);
	pep->paused = true;
}

void request_take(struct shm_request *request)
{
	struct shm_pep *pep = request->pep;
	struct shm_request **at = &pep->requests;

	pthread_mutex_lock(&pep->lock);
	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
	pep->request_count--;
	resume(pep);
	pthread_mutex_unlock(&pep->lock);
	request->pep = NULL;
}

void request_free(struct shm_request *request)
{
	if (request->pep) {
		eq_unwatch(request->pep->eq, &request->source);
		request_take(request);
	}
	offer_release(&request->offer);
	if (request->source.fd >= 0)
		close(request->source.fd);
	free(request);
}

/* fd is closed in any case. */
static void add_request(struct shm_pep *pep, int fd)
{
	struct shm_request *request = calloc(1, sizeof(*request));

	if (!request) {
		close(fd);
		return;
	}
	request->fid.fclass = FI_CLASS_CONNREQ;
	request->source = (struct shm_source){.kind = SOURCE_REQUEST, .fd = fd};
	request->pep = pep;
	pthread_mutex_lock(&pep->lock);
	request->next = pep->requests;
	pep->requests = request;
	pep->request_count++;
	pthread_mutex_unlock(&pep->lock);
	set_timer(pep, true);
	if (eq_watch(pep->eq, &request->source, EPOLLIN | EPOLLRDHUP))
		request_free(request);
}

/* Return: whether another may be there. */
static bool accept_one(struct shm_pep *pep)
{
	/* Whose address it is is not asked for. */
	/* cppcheck-suppress nullPointer */
	int fd = accept4(pep->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	pid_t pid;

	if (fd >= 0) {
		if (wire_peer_allowed(fd, &pid))
			add_request(pep, fd);
		else
			close(fd);
		return true;
	}
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return false;
	/* Its socket stays readable, so it would be tried for ever. */
	shm_log(FI_LOG_WARN, "accepting a connection: %s; trying again in a second",
		strerror(errno));
	pthread_mutex_lock(&pep->lock);
	pause_listening(pep);
	pthread_mutex_unlock(&pep->lock);
	set_timer(pep, true);
	return false;
}

static bool has_room(struct shm_pep *pep)
{
	bool room;

	pthread_mutex_lock(&pep->lock);
	room = pep->request_count < pep->backlog;
	if (!room)
		pause_listening(pep);
	pthread_mutex_unlock(&pep->lock);
	return room;
}

void pep_incoming(struct shm_pep *pep)
{
	for (int i = 0; i < ACCEPTED_MAX; i++) {
		if (!has_room(pep) || !accept_one(pep))
			break;
	}
}

/* From here on nothing is looked for on its socket, as it may become another thread's. */
static int tell(struct shm_request *request, const void *data, uint32_t length)
{
	struct shm_pep *pep = request->pep;
	struct fi_info *info = shm_info_of_request(
		pep, (const struct sockaddr *)&request->offer.address, &request->fid);
	int rc;

	if (!info)
		return -FI_ENOMEM;
	eq_unwatch(pep->eq, &request->source);
	request->told = true;
	rc = eq_push(pep->eq, FI_CONNREQ, &pep->fid.fid, info, data, length);
	if (rc)
		fi_freeinfo(info);
	return rc;
}

void request_incoming(struct shm_request *request)
{
	uint8_t data[SHM_CM_DATA_MAX];
	enum wire_kind kind;
	uint32_t length;
	int rc = wire_receive(request->source.fd, &kind, &request->offer, data, &length);

	if (rc == -FI_EAGAIN)
		return;
	if (rc || kind != WIRE_CONNECT || tell(request, data, length))
		request_free(request);
}

/* One that said nothing for long, or NULL. */
static struct shm_request *find_late(struct shm_pep *pep)
{
	struct shm_request *request;

	pthread_mutex_lock(&pep->lock);
	for (request = pep->requests; request; request = request->next) {
		if (!request->told && request->ticks > SILENT_TICKS)
			break;
	}
	pthread_mutex_unlock(&pep->lock);
	return request;
}

/* Returns how many have not said anything. */
static uint32_t count_tick(struct shm_pep *pep)
{
	uint32_t silent = 0;

	pthread_mutex_lock(&pep->lock);
	for (struct shm_request *request = pep->requests; request; request = request->next) {
		request->ticks++;
		silent += !request->told;
	}
	resume(pep);
	pthread_mutex_unlock(&pep->lock);
	return silent;
}

/* Only this thread changes and ends requests that were not told of. */
void pep_tick(struct shm_pep *pep)
{
	struct shm_request *late;
	uint64_t expired;
	uint32_t silent;

	if (read(pep->timer.fd, &expired, sizeof(expired)) < 0)
		return;
	silent = count_tick(pep);
	for (; (late = find_late(pep)) != NULL; silent--)
		request_free(late);
	set_timer(pep, silent > 0);
}

/* Listening -------------------------------------------------------------------------------- */

/* Return: a socket that is bound to the name of that address; -errno. */
static int bind_name(const struct sockaddr_storage *address)
{
	struct sockaddr_un names[3];
	socklen_t lengths[3];
	int fd;

	if (shm_address_names((const struct sockaddr *)address, names, lengths) < 1)
		return -FI_EINVAL;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&names[0], lengths[0])) {
		int err = errno;

		close(fd);
		return -err;
	}
	return fd < 0 ? -errno : fd;
}

/* A port that nobody has for TCP, so that it can be told to others as if it was of that. */
static int find_port(struct sockaddr_storage *address)
{
	struct sockaddr_storage found = *address;
	socklen_t bytes = shm_address_bytes((struct sockaddr *)&found);
	int fd = socket(found.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&found, bytes) ||
	    getsockname(fd, (struct sockaddr *)&found, &bytes))
		rc = -errno;
	close(fd);
	if (rc == 0)
		shm_address_set_port((struct sockaddr *)address,
				     shm_address_port((struct sockaddr *)&found));
	return rc;
}

static int bind_free_port(struct sockaddr_storage *address)
{
	int fd = -FI_EADDRINUSE;

	for (int i = 0; i < PORT_TRIES && fd == -FI_EADDRINUSE; i++) {
		int rc = find_port(address);

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
	if (!shm_address_is_local((struct sockaddr *)&address))
		return -FI_EADDRNOTAVAIL;
	if (shm_address_port((struct sockaddr *)&address))
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
	if (pep->source.fd < 0)
		rc = bind_to(pep, &pep->address);
	rc = rc ? rc : start(pep);
	pep->listening = rc == 0;
	return rc;
}

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *data, size_t length)
{
	struct shm_request *request = (struct shm_request *)handle;

	if (!handle || handle->fclass != FI_CLASS_CONNREQ || length > SHM_CM_DATA_MAX)
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
	int rc = address_take(addr, bytes, &address);

	if (pep->listening)
		return -FI_EOPBADSTATE;
	return rc ? rc : bind_to(pep, &address);
}

static int pep_getname(fid_t fid, void *addr, size_t *bytes)
{
	return address_give(&pep_of(fid)->address, addr, bytes);
}

/* Options, opening, closing ---------------------------------------------------------------- */

static int pep_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct shm_pep *pep = pep_of(fid);
	struct shm_eq *eq = (struct shm_eq *)bound;

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
	pthread_mutex_lock(&pep->lock);
	resume(pep);
	pthread_mutex_unlock(&pep->lock);
	return 0;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	return command == FI_BACKLOG ? set_backlog(pep_of(fid), *(int *)arg) : -FI_ENOSYS;
}

static int pep_getopt(fid_t fid, int level, int name, void *value, size_t *bytes)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (*bytes < sizeof(size_t)) {
		*bytes = sizeof(size_t);
		return -FI_ETOOSMALL;
	}
	*(size_t *)value = SHM_CM_DATA_MAX;
	*bytes = sizeof(size_t);
	return 0;
}

static int pep_setopt(fid_t fid, int level, int name, const void *value, size_t bytes)
{
	return -FI_ENOPROTOOPT;
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
	.ops_open = shm_no_ops_open,
};

static struct fi_ops_ep pep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = pep_cancel,
	.getopt = pep_getopt,
	.setopt = pep_setopt,
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
		return address_take(info->src_addr, info->src_addrlen, out);
	memset(out, 0, sizeof(*out)); /* the wildcard of both families is all 0 */
	out->ss_family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	return 0;
}

int shm_pep_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_pep **pep_out,
		 void *context)
{
	struct shm_fabric *fabric = (struct shm_fabric *)fabric_fid;
	struct sockaddr_storage address;
	struct shm_pep *pep;
	int rc = info ? choose_address(info, &address) : -FI_EINVAL;

	if (rc)
		return rc;
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	pthread_mutex_init(&pep->lock, NULL);
	pep->source = (struct shm_source){.kind = SOURCE_PEP, .fd = -1};
	pep->timer = (struct shm_source){.kind = SOURCE_PEP_TIMER, .fd = -1};
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
