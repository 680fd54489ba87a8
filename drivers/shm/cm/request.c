/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: connections that came in on a passive endpoint's socket, until they are answered. */
#include "../shm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTED_MAX 16                 /* connections in one go */
#define SILENT_NS    (5 * PLX_NS_PER_S) /* that one may take to send its first message */

void shm_request_leave(struct prov_request *request)
{
	offer_release(&((struct shm_request *)request)->offer);
}

static void request_incoming(struct prov_source *source)
{
	struct shm_request *request = plx_container_of(source, struct shm_request, base.source);
	uint8_t data[PROV_CM_DATA_MAX];
	enum wire_kind kind;
	uint32_t length;
	int rc = wire_receive(source->fd, &kind, &request->offer, data, &length);

	if (rc == -FI_EAGAIN)
		return;
	request->base.peer = request->offer.address;
	if (rc || kind != WIRE_CONNECT || prov_request_tell(&request->base, data, length) != 0)
		prov_request_free(&request->base);
}

static void add_request(struct prov_pep *pep, int fd)
{
	struct shm_request *request = calloc(1, sizeof(*request));

	if (!request)
		close(fd);
	else if (prov_request_init(&request->base, pep, fd, request_incoming, SILENT_NS) != 0)
		prov_request_free(&request->base);
}

/* Return: whether another may be there. */
static bool accept_one(struct prov_pep *pep)
{
	/* Whose address it is is not asked for. */
	/* cppcheck-suppress nullPointer */
	int fd = accept4(pep->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct shm_peer peer;

	if (fd < 0) {
		prov_pep_cannot_accept(pep, errno);
		return false;
	}
	if (peer_identify(fd, &peer))
		add_request(pep, fd);
	else
		close(fd);
	return true;
}

void shm_pep_incoming(struct prov_pep *pep)
{
	for (int i = 0; i < ACCEPTED_MAX && prov_pep_has_room(pep); i++) {
		if (!accept_one(pep))
			break;
	}
}
