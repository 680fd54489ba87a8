/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints of every provider: see prov.h. */
#include "prov.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define FULL_PAUSE_NS   (10 * PLX_NS_PER_MS) /* when too many requests are unanswered */
#define FAILED_PAUSE_NS PLX_NS_PER_S         /* when descriptors or memory run out */
#define ACCEPTS_MAX     16                   /* per event of a shared set */
#define PORT_TRIES      16                   /* for a port that the other provider leaves free */

static struct prov_pep *pep_of(struct fid *fid)
{
	return (struct prov_pep *)fid;
}

/* Accepting ---------------------------------------------------------------------------------- */

/* Otherwise pending connections would wake sleeping threads again and again. */
static void pause_accepting(struct prov_pep *pep, uint64_t pause_ns)
{
	if (pep->resume.at_ns ||
	    eq_set_deadline(pep->eq, &pep->resume, queue_now_ns() + pause_ns) != 0)
		return;
	eq_unwatch(pep->eq, &pep->source);
}

static void resume(struct prov_deadline *deadline)
{
	struct prov_pep *pep = plx_container_of(deadline, struct prov_pep, resume);

	if (eq_watch(pep->eq, &pep->source, EPOLLIN) != 0)
		pause_accepting(pep, FAILED_PAUSE_NS);
}

/* Without a free descriptor accept(2) also fails if nothing is pending. */
static bool is_pending(const struct prov_pep *pep)
{
	return poll(&(struct pollfd){.fd = pep->source.fd, .events = POLLIN}, 1, 0) != 0;
}

/* accept(2) also returns errors that are pending on the new socket. The connection that found no
 * descriptor is still pending, so the next call accepts it. */
void prov_pep_cannot_accept(struct prov_pep *pep, int err)
{
	if ((err != EMFILE && err != ENFILE && err != ENOBUFS && err != ENOMEM) || !is_pending(pep))
		return;
	if ((err == EMFILE || err == ENFILE) && prov_request_make_room(pep))
		return;
	prov_log(pep->fabric->prov->libfabric, FI_LOG_WARN,
		 "accepting a connection: %s; trying again in a second", strerror(err));
	if (!pep->failure.is_queued) {
		pep->failure = (struct prov_event){
			.event = (uint32_t)err, .is_error = true, .is_lent = true};
		eq_push(pep->eq, &pep->failure, &pep->fid.fid, NULL, 0);
	}
	pause_accepting(pep, FAILED_PAUSE_NS);
}

/* Whether one more request may be reported. Silent connections have a separate limit, unless their
 * peers are processes of this user, which do not stay silent. */
static bool has_room(struct prov_pep *pep)
{
	bool counts_silent = pep->fabric->prov->same_host && !pep->admit.accepted;
	uint32_t count = counts_silent ? pep->silent_count : 0;

	pthread_mutex_lock(&pep->lock);
	count += pep->told_count;
	pthread_mutex_unlock(&pep->lock);
	return count < pep->backlog;
}

/* One connection at a time. The event queue calls again for the next, up to 16 times per progress,
 * so a flood of connections does not delay a loop turn. A shared set calls once, until it is looked
 * at again. */
static void pep_ready(struct plx_watch *source, uint32_t events)
{
	struct prov_pep *pep = plx_container_of(source, struct prov_pep, source);

	unsigned left = pep->eq->wait.set ? ACCEPTS_MAX : 1;
	uint64_t before;

	do {
		before = pep->accepted;
		if (has_room(pep))
			prov_pep_ops(pep)->incoming(pep);
		else
			pause_accepting(pep, FULL_PAUSE_NS);
	} while (pep->accepted != before && --left);
}

/* Listening ---------------------------------------------------------------------------------- */

static int bind_to(struct prov_pep *pep, const struct sockaddr_storage *wanted)
{
	struct sockaddr_storage address = *wanted;
	int fd;

	if (pep->source.fd >= 0 && memcmp(&address, &pep->address, sizeof(address)) == 0)
		return 0; /* already its own */
	fd = prov_pep_ops(pep)->open(pep, &address);
	if (fd < 0)
		return fd;
	if (pep->source.fd >= 0)
		close(pep->source.fd);
	pep->source.fd = fd;
	pep->address = address;
	return 0;
}

static int start(struct prov_pep *pep)
{
	int rc = eq_prepare_deadlines(pep->eq);

	rc = rc ? rc : prov_pep_ops(pep)->start(pep);
	if (rc)
		return rc;
	if (listen(pep->source.fd, (int)pep->backlog))
		return -errno;
	if (prov_port_is_taken(pep->fabric->prov, (struct sockaddr *)&pep->address, pep->why,
			       sizeof(pep->why)))
		return -FI_EADDRINUSE;
	return eq_watch(pep->eq, &pep->source, EPOLLIN);
}

static void stop(struct prov_pep *pep)
{
	if (pep->source.fd >= 0)
		close(pep->source.fd);
	pep->source.fd = -1;
}

static int pep_listen(struct fid_pep *fid)
{
	struct prov_pep *pep = pep_of(&fid->fid);
	struct sockaddr_storage wanted = pep->address;
	char text[ADDRESS_TEXT_BYTES];
	int rc = 0, tries = 0;

	if (!pep->eq)
		return -FI_ENOEQ;
	if (pep->listening)
		return -FI_EOPBADSTATE;
	do {
		*pep->why = '\0';
		if (pep->source.fd < 0 || tries)
			rc = bind_to(pep, &wanted);
		rc = rc ? rc : start(pep);
	} while (rc == -FI_EADDRINUSE && !address_port((struct sockaddr *)&wanted) &&
		 ++tries < PORT_TRIES);
	pep->listening = rc == 0;
	if (pep->listening)
		return 0;
	if (*pep->why)
		prov_log(pep->fabric->prov->libfabric, FI_LOG_WARN, "%s is in use: %s",
			 address_format((struct sockaddr *)&pep->address, text, sizeof(text)),
			 pep->why);
	stop(pep);
	pep->address = wanted; /* a later call may get another port */
	return rc;
}

/* An endpoint that takes a request may be closed, and the request with it: so the handle is only
 * compared. */
static int pep_reject(struct fid_pep *fid, fid_t handle, const void *data, size_t length)
{
	struct prov_pep *pep = pep_of(&fid->fid);
	struct prov_request *each;

	pthread_mutex_lock(&pep->lock);
	TAILQ_FOREACH (each, &pep->told, link) {
		if (&each->fid == handle)
			break;
	}
	pthread_mutex_unlock(&pep->lock);
	return each ? prov_request_reject(handle, data, length) : -FI_EINVAL;
}

static int pep_setname(fid_t fid, void *addr, size_t bytes)
{
	struct prov_pep *pep = pep_of(fid);
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
	struct prov_pep *pep = pep_of(fid);
	struct prov_eq *eq = (struct prov_eq *)bound;

	if (bound->fclass != FI_CLASS_EQ || pep->eq || eq->fabric != pep->fabric)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	pep->eq = eq;
	eq->refs++;
	return 0;
}

static int set_backlog(struct prov_pep *pep, int backlog)
{
	uint32_t most = prov_pep_ops(pep)->backlog_max;

	if (backlog < 1)
		return -FI_EINVAL;
	pep->backlog = (uint32_t)backlog < most ? (uint32_t)backlog : most;
	return pep->listening && listen(pep->source.fd, (int)pep->backlog) ? -errno : 0;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	return command == FI_BACKLOG ? set_backlog(pep_of(fid), *(int *)arg) : -FI_ENOSYS;
}

void prov_pep_unlock(struct prov_pep *pep)
{
	bool is_last = pep->is_closed && !pep->told_count;

	pthread_mutex_unlock(&pep->lock);
	if (!is_last)
		return;
	pthread_mutex_destroy(&pep->lock);
	fi_freeinfo(pep->info);
	free(pep);
}

/* Requests that were read belong to the application, and need the lock for as long. */
static int pep_close(struct fid *fid)
{
	struct prov_pep *pep = pep_of(fid);

	if (pep->eq) {
		eq_unwatch(pep->eq, &pep->source);
		eq_clear_deadline(pep->eq, &pep->resume);
		while (!TAILQ_EMPTY(&pep->silent))
			prov_request_free(TAILQ_FIRST(&pep->silent));
		eq_forget(pep->eq, fid);
		pep->eq->refs--;
	}
	stop(pep);
	fabric_unref(pep->fabric);
	pthread_mutex_lock(&pep->lock);
	pep->is_closed = true;
	prov_pep_unlock(pep);
	return 0;
}

static struct fi_ops pep_fid_ops = PROV_FID_OPS(pep_close, pep_bind, pep_control);

static struct fi_ops_ep pep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = PROV_REFUSED,
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

/* Return: 0; -FI_EINVAL; -FI_ENOMEM. */
static int init(struct prov_pep *pep, struct prov_fabric *fabric, const struct fi_info *info,
		void *context)
{
	/* The wildcard of both families is all zeros. */
	pep->address.ss_family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	if (info->src_addr &&
	    prov_address_take(info->src_addr, info->src_addrlen, &pep->address) != 0)
		return -FI_EINVAL;
	pep->info = fi_dupinfo(info);
	if (!pep->info)
		return -FI_ENOMEM;
	fid_init(&pep->fid.fid, FI_CLASS_PEP, context, &pep_fid_ops);
	pep->fid.ops = &pep_ops;
	pep->fid.cm = &pep_cm_ops;
	pep->source = (struct plx_watch){.fd = -1, .ready = pep_ready};
	pep->resume.passed = resume;
	TAILQ_INIT(&pep->silent);
	TAILQ_INIT(&pep->told);
	pthread_mutex_init(&pep->lock, NULL);
	pep->fabric = fabric;
	fabric_ref(fabric);
	pep->backlog = prov_pep_ops(pep)->backlog_max;
	pep->handshakes_max = PROV_HANDSHAKES_MAX;
	pep->silent_ns = PROV_SILENT_NS;
	if (prov_pep_ops(pep)->init)
		prov_pep_ops(pep)->init(pep);
	return 0;
}

const char *prov_pep_why(const struct fid_pep *fid)
{
	const struct prov_pep *pep = (const struct prov_pep *)fid;

	return *pep->why ? pep->why : NULL;
}

void prov_pep_admit(struct fid_pep *fid, const struct plx_admit_calls *calls)
{
	pep_of(&fid->fid)->admit = *calls;
}

int prov_pep_open(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **pep_out,
		  void *context)
{
	struct prov_fabric *fabric = (struct prov_fabric *)fid;
	struct prov_pep *pep;
	int rc;

	if (!info)
		return -FI_EINVAL;
	pep = calloc(1, fabric->prov->pep_ops->bytes);
	if (!pep)
		return -FI_ENOMEM;
	rc = init(pep, fabric, info, context);
	if (rc) {
		free(pep);
		return rc;
	}
	*pep_out = &pep->fid;
	return 0;
}
