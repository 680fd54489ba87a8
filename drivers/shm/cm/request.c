/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: connections that came in on a passive endpoint's socket, until they are answered. */
#include "../shm.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define SILENT_NS (5 * PLX_NS_PER_S) /* that one may take to send its first message */

void shm_request_leave(struct prov_request *request)
{
	offer_release(&((struct shm_request *)request)->offer);
}

void shm_request_ready(struct prov_source *source)
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

void shm_pep_incoming(struct prov_pep *pep)
{
	/* Whose address it is is not asked for. */
	/* cppcheck-suppress nullPointer */
	int fd = accept4(pep->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct shm_peer peer;

	if (fd < 0)
		prov_pep_cannot_accept(pep, errno);
	else if (!peer_identify(fd, &peer) || !prov_request_add(pep, fd, SILENT_NS))
		close(fd);
}
