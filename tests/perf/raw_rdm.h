/* SPDX-License-Identifier: BSD-3-Clause */
/* Two endpoints of libfabric's own shared-memory provider (FI_EP_RDM), which know each other by
 * names. The client says hello with its name and the size of its messages; the provider tells of no
 * peer that goes, so how it ends is for the programs to say.
 *
 * Every endpoint is closed on every way out: one that is not leaves 16 MiB in /dev/shm. */
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
	struct raw_hello hello; /* of the client, or room for the server's answer */
	struct fi_context hello_context;
};

/* Open one of that name, say where, and wait for a client. Receives can be posted then, before the
 * client is told to begin. Return: 0; -errno. */
int raw_rdm_listen(const struct raw_options *options, struct raw_rdm *rdm, uint64_t *size_out);
int raw_rdm_accept(struct raw_rdm *rdm);

/* Say hello to the server of that name, and wait for its answer. Return: 0; -errno. */
int raw_rdm_connect(const struct raw_options *options, struct raw_rdm *rdm);

void raw_rdm_close(struct raw_rdm *rdm);

/* Spin until a message is there. Return: 0; -errno. */
int raw_rdm_receive(struct raw_rdm *rdm, uint64_t limit_ns, const char *what,
		    struct fi_cq_msg_entry *entry);

/* The slow part of raw_rdm_transmit. */
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
