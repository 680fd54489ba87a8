/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: connections that came in on a passive endpoint's socket, until they are answered. There
 * are at most `backlog` of them; the next ones wait in the kernel, for as long. */
#include "../shm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define ACCEPTED_MAX 16 /* connections in one go */
#define SILENT_TICKS 5  /* seconds that a request may take to send its first message */

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

void pep_resume(struct shm_pep *pep)
{
	pthread_mutex_lock(&pep->lock);
	resume(pep);
	pthread_mutex_unlock(&pep->lock);
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
	request->source = (struct prov_source){.fd = fd, .ready = request_incoming};
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

/* What waits to be accepted keeps the socket readable, so it would be tried for ever. */
static void fail_to_accept(struct shm_pep *pep, int err)
{
	shm_log(FI_LOG_WARN, "accepting a connection: %s; trying again in a second", strerror(err));
	if (!pep->failure.is_queued)
		eq_push_error(pep->eq, &pep->failure, &pep->fid.fid, err, NULL, 0);
	pthread_mutex_lock(&pep->lock);
	pause_listening(pep);
	pthread_mutex_unlock(&pep->lock);
	set_timer(pep, true);
}

/* Return: whether another may be there. */
static bool accept_one(struct shm_pep *pep)
{
	/* Whose address it is is not asked for. */
	/* cppcheck-suppress nullPointer */
	int fd = accept4(pep->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct shm_peer peer;

	if (fd >= 0) {
		if (peer_identify(fd, &peer))
			add_request(pep, fd);
		else
			close(fd);
		return true;
	}
	if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		fail_to_accept(pep, errno);
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
	if (!room)
		set_timer(pep, true); /* resume may fail where a request is taken */
	return room;
}

void pep_incoming(struct prov_source *source)
{
	struct shm_pep *pep = plx_container_of(source, struct shm_pep, source);

	for (int i = 0; i < ACCEPTED_MAX; i++) {
		if (!has_room(pep) || !accept_one(pep))
			break;
	}
}

/* From here on nothing is looked for on its socket, as it may become another thread's. */
static int tell(struct shm_request *request, const void *data, uint32_t length)
{
	struct shm_pep *pep = request->pep;
	struct fi_info *info = prov_info_of_request(
		pep->info, &pep->address, (const struct sockaddr *)&request->offer.address,
		&request->fid);
	int rc = info ? eq_push_request(pep->eq, &pep->fid.fid, info, data, length) : -FI_ENOMEM;

	if (rc) {
		shm_log(FI_LOG_WARN, "a connection of process %d is refused: out of memory",
			(int)request->offer.peer.pid);
		fi_freeinfo(info);
		return rc;
	}
	eq_unwatch(pep->eq, &request->source);
	request->told = true;
	return 0;
}

void request_incoming(struct prov_source *source)
{
	struct shm_request *request = plx_container_of(source, struct shm_request, source);
	uint8_t data[PROV_CM_DATA_MAX];
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
static uint32_t count_tick(struct shm_pep *pep, bool *paused_out)
{
	uint32_t silent = 0;

	pthread_mutex_lock(&pep->lock);
	for (struct shm_request *request = pep->requests; request; request = request->next) {
		request->ticks++;
		silent += !request->told;
	}
	resume(pep);
	*paused_out = pep->paused;
	pthread_mutex_unlock(&pep->lock);
	return silent;
}

/* Only this thread changes and ends requests that were not told of. */
void pep_tick(struct prov_source *timer)
{
	struct shm_pep *pep = plx_container_of(timer, struct shm_pep, timer);
	struct shm_request *late;
	uint64_t expired;
	uint32_t silent;
	bool paused;

	if (read(pep->timer.fd, &expired, sizeof(expired)) < 0)
		return;
	silent = count_tick(pep, &paused);
	for (; (late = find_late(pep)) != NULL; silent--)
		request_free(late);
	set_timer(pep, silent > 0 || paused);
}
