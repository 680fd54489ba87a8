/* SPDX-License-Identifier: BSD-3-Clause */
/* Entry point of libplx_shm-fi.so or libplx_tcp-fi.so, which libfabric loads from FI_PROVIDER_PATH.
 * MODULE_KIND: the name of its struct prov; see meson.build. */
#include "prov.h"

extern const struct prov MODULE_KIND;

PLX_EXPORT struct fi_provider *fi_prov_ini(void);

/* libfabric holds its lock here. */
struct fi_provider *fi_prov_ini(void)
{
	prov_begin(&MODULE_KIND, true);
	return MODULE_KIND.libfabric;
}
