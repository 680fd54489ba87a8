/* SPDX-License-Identifier: BSD-3-Clause */
/* A listener and a connector of plx_shm with small rings. */
#ifndef SHM_TEST_MEET_H
#define SHM_TEST_MEET_H

#include "prov/prov_meet.h"
#include "shm.h"

#include <sys/un.h>

static inline int setup_shm(void **state)
{
	shm_params.ring_bytes = SEGMENT_RING_BYTES_MIN;
	shm_params.cma = true;
	return setup(state);
}

/* The name that connectors look up for the listener's address. */
static inline socklen_t cm_socket_name(struct sockaddr_un *name_out)
{
	struct plx_unix_name names[3];

	assert_true(shm_address_names((const struct sockaddr *)&address, names) > 0);
	*name_out = names[0].address;
	return names[0].length;
}

/* How an endpoint asks to be called, and how it was called: read and set in place of its peer -- */

#define BOTH (CALL_BELL | CALL_WAKE)

static inline int setup_pair(void **state)
{
	setup_shm(state);
	meet();
	return 0;
}

static inline uint32_t wish(struct fid_ep *fid)
{
	return atomic_load(&((struct shm_ep *)fid)->reader.segment.control->call);
}

static inline void set_wish(struct fid_ep *fid, uint32_t how)
{
	atomic_store(&((struct shm_ep *)fid)->reader.segment.control->call, how);
}

/* Whether its bit is set; clears it. */
static inline bool take_bell(struct fid_ep *fid)
{
	const struct shm_ep *ep = (struct shm_ep *)fid;
	struct bell *bell = rx_cq_of(ep)->bell;
	uint32_t word = ep->slot / 64;
	uint64_t bit = UINT64_C(1) << ep->slot % 64;

	if (!(atomic_fetch_and(&bell->words[word], ~bit) & bit))
		return false;
	assert_true(atomic_fetch_and(&bell->summary, ~(UINT64_C(1) << word)) >> word & 1);
	return true;
}

/* Calls since the last time: bits of enum shm_call. One call is at most one byte. */
static inline uint32_t take_call(struct fid_ep *fid)
{
	uint32_t how = take_bell(fid) ? CALL_BELL : 0, bytes = 0;
	char byte;

	while (recv(((struct shm_ep *)fid)->base.source.fd, &byte, 1, MSG_DONTWAIT) > 0)
		bytes++;
	assert_in_range(bytes, 0, 1);
	return how | (bytes ? CALL_WAKE : 0);
}

/* A poll that takes no completion. */
static inline void poll_once(struct side *side)
{
	assert_int_equal(fi_cq_read(side->rx_cq, NULL, 0), 0);
}

#endif
