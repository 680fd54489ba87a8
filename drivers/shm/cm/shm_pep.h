/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints and their incoming requests. */
#ifndef SHM_PEP_H
#define SHM_PEP_H

#include "../../prov/prov.h"
#include "shm_wire.h"

#define SHM_BACKLOG 1024 /* per passive endpoint: pending in the kernel, and unanswered */

struct shm_request {
	struct prov_request base;
	struct shm_offer offer;
};

#endif
