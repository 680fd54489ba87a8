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

#endif
