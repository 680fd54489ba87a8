/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry of libplx_shm-fi.so, which libfabric loads out of FI_PROVIDER_PATH. */
#include "shm.h"

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

/* libfabric holds its lock. */
struct fi_provider *fi_prov_ini(void)
{
	prov_begin(&shm_kind, true);
	return &shm_prov;
}
