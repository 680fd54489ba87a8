/* SPDX-License-Identifier: BSD-3-Clause */
/* Unsupported calls. fi_getinfo does not offer them; a call returns -FI_ENOSYS. */
#include "prov.h"

#define REFUSED(type)                                                                      \
	{                                                                                  \
		.all = { sizeof(struct type), {[0 ... PROV_CALLS_MAX - 1] = prov_refuse} } \
	}

union prov_calls prov_no_rma = REFUSED(fi_ops_rma);
union prov_calls prov_no_tagged = REFUSED(fi_ops_tagged);
union prov_calls prov_no_atomic = REFUSED(fi_ops_atomic);
union prov_calls prov_no_collective = REFUSED(fi_ops_collective);

/* A sanitizer would report that callers pass it arguments. */
__attribute__((no_sanitize("undefined"))) ssize_t prov_refuse(void)
{
	return -FI_ENOSYS;
}
