/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry of libplx_tcp-fi.so, which libfabric loads out of FI_PROVIDER_PATH. */
#include "tcp.h"

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

/* libfabric holds its lock: of its calls, only those about parameters and the log may be made. */
struct fi_provider *fi_prov_ini(void)
{
	tcp_begin_loading();
	return &tcp_prov;
}
