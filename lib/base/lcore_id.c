/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_base.h"

__thread uint32_t plx_lcore_id_tls = PLX_LCORE_NONE;

const char *plx_version(void)
{
	return PLX_VERSION;
}
