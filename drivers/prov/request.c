/* SPDX-License-Identifier: BSD-3-Clause */
/* Incoming connections of every provider, from accept(2) until fi_accept or fi_reject: see
 * prov.h. The owner of a passive endpoint may decide which connections it takes (plx_admit.h).
 * By default at most handshakes_max of them are silent; one more ends the oldest. */
#include "prov.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PEER_TEXT_BYTES (ADDRESS_TEXT_BYTES + 16)

/* Leaving ------------------------------------------------------------------------------------ */

static void end_silence(struct prov_request *request)
{
	struct prov_pep *pep = request->pep;

	eq_unwatch(pep->eq, &request->source);
	eq_clear_deadline(pep->eq, &request->deadline);
	TAILQ_REMOVE(&pep->silent, request, link);
	pep->silent_count--;
}

void prov_request_take(struct prov_request *request)
{
	struct prov_pep *pep = request->pep;

	pthread_mutex_lock(&pep->lock);
	TAILQ_REMOVE(&pep->told, request, link);
	pep->told_count--;
	prov_pep_unlock(pep);
	request->pep = NULL;
}

/* Its ticket is the last that ends: a connection counts until its descriptor is closed. */
static void end(struct prov_request *request, enum plx_admit_end reason, const char *why)
{
	struct prov_pep *pep = request->pep;
	void *ticket = request->ticket;
	void (*ended)(void *, enum plx_admit_end, const char *) = pep && ticket ? pep->admit.ended
										: NULL;

	if (pep && request->is_told)
		prov_request_take(request);
	else if (pep)
		end_silence(request);
	if (request->ops->leave)
		request->ops->leave(request);
	if (request->source.fd >= 0)
		close(request->source.fd);
	free(request);
	if (ended)
		ended(ticket, reason, why);
}

void prov_request_free(struct prov_request *request)
{
	end(request, PLX_ADMIT_FAILED, NULL);
}

/* Without a table of calls, the provider's log is the only report. */
static void log_end(struct prov_request *request, const char *why)
{
	struct prov_pep *pep = request->pep;
	char peer[PEER_TEXT_BYTES];

	if (!plx_log_allowed(&pep->log_limit, queue_now_ns()))
		return;
	if (pep->fabric->prov->same_host)
		snprintf(peer, sizeof(peer), "a process of user %u", (unsigned)request->user);
	else
		address_format((const struct sockaddr *)&request->peer, peer, sizeof(peer));
	prov_log(pep->fabric->prov->libfabric, FI_LOG_WARN, "the connection from %s is closed: %s",
		 peer, why);
}

void prov_request_end(struct prov_request *request, enum plx_admit_end reason, const char *why)
{
	struct prov_pep *pep = request->pep;

	pep->ended[reason]++;
	if (!pep->admit.accepted)
		log_end(request, why);
	end(request, reason, why);
}

static void evict(void *connection, const void *data, size_t length)
{
	struct prov_request *request = connection;

	if (length)
		request->ops->reject(request, data, length);
	prov_request_end(request, PLX_ADMIT_EVICTED,
			 "it made room: too many connections have said nothing yet");
}

/* Asking ------------------------------------------------------------------------------------- */

/* Wait for events of its socket, or for its deadline. */
static int await(struct prov_request *request, uint64_t wait_ns, uint32_t events)
{
	struct prov_eq *eq = request->pep->eq;
	int rc;

	eq_clear_deadline(eq, &request->deadline);
	rc = eq_set_deadline(eq, &request->deadline, queue_now_ns() + wait_ns);
	return rc ? rc : eq_watch(eq, &request->source, events);
}

static void ask(struct prov_request *request)
{
	struct prov_pep *pep = request->pep;
	const struct plx_admit_request asked = {
		.connection = request,
		.peer = pep->fabric->prov->same_host ? NULL : (struct sockaddr *)&request->peer,
		.user = request->user,
		.ticket = request->ticket,
		.close = evict,
	};
	struct plx_admit_answer answer = {.verdict = PLX_ADMIT_TAKE};
	int rc;

	if (pep->admit.accepted)
		pep->admit.accepted(pep->admit.arg, &asked, &answer);
	else if (pep->silent_count > pep->handshakes_max)
		evict(TAILQ_FIRST(&pep->silent), NULL, 0);
	request->ticket = answer.ticket;
	if (answer.verdict == PLX_ADMIT_REFUSE) {
		request->ops->reject(request, answer.data, answer.data_length);
		prov_request_free(request);
		return;
	}
	request->is_kept = answer.verdict == PLX_ADMIT_KEEP;
	/* What a kept peer sends waits in the kernel. Only its end is of interest. */
	rc = request->is_kept ? await(request, answer.wait_ns, EPOLLRDHUP)
			      : await(request, pep->silent_ns, EPOLLIN | EPOLLRDHUP);
	if (rc)
		prov_request_end(request, PLX_ADMIT_FAILED, strerror(-rc));
}

static void on_deadline(struct prov_deadline *deadline)
{
	struct prov_request *request = plx_container_of(deadline, struct prov_request, deadline);

	if (request->is_kept)
		ask(request);
	else
		prov_request_end(request, PLX_ADMIT_SILENT, "it said nothing for too long");
}

static void on_ready(struct plx_watch *source, uint32_t events)
{
	struct prov_request *request = plx_container_of(source, struct prov_request, source);

	if (request->is_kept)
		prov_request_end(request, PLX_ADMIT_LEFT, "it left while it waited");
	else
		request->ops->ready(request);
}

void prov_request_add(struct prov_pep *pep, int fd, const struct sockaddr *peer, uid_t user)
{
	struct prov_request *request = calloc(1, prov_pep_ops(pep)->request_bytes);

	pep->accepted++;
	if (!request) {
		close(fd);
		return;
	}
	request->fid.fclass = FI_CLASS_CONNREQ;
	request->ops = prov_pep_ops(pep);
	request->source = (struct plx_watch){.fd = fd, .ready = on_ready};
	request->pep = pep;
	request->user = user;
	request->deadline.passed = on_deadline;
	if (peer)
		prov_address_plain_copy(peer, &request->peer);
	TAILQ_INSERT_TAIL(&pep->silent, request, link);
	pep->silent_count++;
	ask(request);
}

bool prov_request_make_room(struct prov_pep *pep)
{
	struct prov_request *victim = pep->admit.accepted ? pep->admit.no_descriptor(pep->admit.arg)
							  : TAILQ_FIRST(&pep->silent);

	if (victim)
		evict(victim, NULL, 0);
	return victim;
}

/* Reporting ---------------------------------------------------------------------------------- */

void prov_request_tell(struct prov_request *request, const void *data, uint32_t length)
{
	struct prov_pep *pep = request->pep;
	struct fi_info *info = prov_info_of_request(
		pep->info, &pep->address, (struct sockaddr *)&request->peer, &request->fid);

	if (!info || eq_push_request(pep->eq, &pep->fid.fid, info, data, length) != 0) {
		fi_freeinfo(info);
		prov_request_end(request, PLX_ADMIT_FAILED, "out of memory");
		return;
	}
	end_silence(request);
	request->is_told = true;
	pthread_mutex_lock(&pep->lock);
	TAILQ_INSERT_TAIL(&pep->told, request, link);
	pep->told_count++;
	pthread_mutex_unlock(&pep->lock);
	if (request->ticket)
		pep->admit.opened(request->ticket);
}

int prov_request_reject(fid_t handle, const void *data, size_t length)
{
	struct prov_request *request = (struct prov_request *)handle;

	if (length > PROV_CM_DATA_MAX)
		return -FI_EINVAL;
	/* If the rejection is not delivered, closing the socket tells the peer. */
	request->ops->reject(request, data, length);
	prov_request_free(request);
	return 0;
}

void *prov_request_ticket(const struct fi_info *info)
{
	struct prov_request *request = (struct prov_request *)info->handle;
	void *ticket = request->ticket;

	request->ticket = NULL;
	return ticket;
}
