/* SPDX-License-Identifier: BSD-3-Clause */
/* Two endpoints of libfabric's shared-memory provider (FI_EP_RDM), which know each other by name.
 * The client's hello carries its name and the size of its messages. The provider does not report
 * lost peers, so the programs define how a run ends.
 * Every endpoint is closed on every path: one that is not leaves 16 MiB in /dev/shm. */
#ifndef RAW_RDM_H
#define RAW_RDM_H

#include "raw_endpoint.h"

#define RAW_NAME_BYTES 128

struct raw_hello {
	uint64_t size;
	char name[RAW_NAME_BYTES];
};

struct raw_rdm {
	struct raw_endpoint at;
	struct fid_av *av;
	struct raw_hello hello; /* the client's, or room for the server's answer */
	struct fi_context hello_context;
};

/* Open an endpoint with that name, print it, and wait for a client. Post receives then, before the
 * client starts sending. Return: 0; -errno. */
int raw_rdm_listen(const struct raw_options *options, struct raw_rdm *rdm, uint64_t *size_out);
int raw_rdm_accept(struct raw_rdm *rdm);

/* Send a hello to the server with that name, and wait for its answer. Return: 0; -errno. */
int raw_rdm_connect(const struct raw_options *options, struct raw_rdm *rdm);

void raw_rdm_close(struct raw_rdm *rdm);

/* Spin until a message arrives. Return: 0; -errno. */
int raw_rdm_receive(struct raw_rdm *rdm, uint64_t limit_ns, const char *what,
		    struct fi_cq_msg_entry *entry);

/* The slow path of raw_rdm_transmit. */
int raw_rdm_transmit_slowly(struct raw_rdm *rdm, const void *message, size_t size, bool inject);

static inline ssize_t raw_rdm_try(struct raw_rdm *rdm, const void *message, size_t size,
				  bool inject)
{
	return inject ? fi_inject(rdm->at.ep, message, size, rdm->at.peer)
		      : fi_send(rdm->at.ep, message, size, NULL, rdm->at.peer, NULL);
}

/* Send one message. Return: 0; -errno. */
static inline int raw_rdm_transmit(struct raw_rdm *rdm, const void *message, size_t size,
				   bool inject)
{
	ssize_t rc = raw_rdm_try(rdm, message, size, inject);

	if (plx_likely(rc == 0))
		return 0;
	return rc == -FI_EAGAIN || rc == -FI_ENOENT
		     ? raw_rdm_transmit_slowly(rdm, message, size, inject)
		     : raw_failed(rc, "cannot send");
}

#endif
