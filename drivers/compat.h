/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between versions of libfabric. Version 2 keeps the values and functions below in its
 * ABI for programs that ask for an older API, but removed or deprecated their names. */
#ifndef DRIVERS_COMPAT_H
#define DRIVERS_COMPAT_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

/* FI_PROV_SPECIFIC: a protocol or a wait object that only one provider defines. */
#define COMPAT_PROV_SPECIFIC (UINT32_C(1) << 31)

/* FI_MR_BASIC and FI_MR_SCALABLE: memory registration of API 1.4 and older. */
#define COMPAT_MR_BASIC    (1 << 0)
#define COMPAT_MR_SCALABLE (1 << 1)

/* FI_ORDER_NONE and FI_ORDER_STRICT: the orders of completions. */
#define COMPAT_ORDER_NONE   UINT64_C(0)
#define COMPAT_ORDER_STRICT UINT64_C(0x1FF)

/* fi_wait_open and fi_wait: wait sets, which only the provider net (before 1.18) needs here. */
static inline int compat_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
				   struct fid_wait **wait_out)
{
	return fabric->ops->wait_open(fabric, attr, wait_out);
}

static inline int compat_wait(struct fid_wait *wait, int timeout_ms)
{
	return wait->ops->wait(wait, timeout_ms);
}

#endif
