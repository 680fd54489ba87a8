/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints, and the requests that come in on them. */
#ifndef SHM_PEP_H
#define SHM_PEP_H

#include "../../prov/prov.h"
#include "shm_wire.h"

#define SHM_BACKLOG 1024 /* of a passive endpoint: requests in the kernel, and unanswered ones */

struct shm_request {
	struct prov_request base;
	struct shm_offer offer;
};

#endif
