/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry of libplx_tcp-fi.so, which libfabric loads out of FI_PROVIDER_PATH. */
#include "tcp.h"

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

/* libfabric holds its lock. */
struct fi_provider *fi_prov_ini(void)
{
	prov_begin(&tcp_kind, true);
	return &tcp_prov;
}
