/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between versions of libfabric. Version 2 keeps the values below in its ABI for
 * programs that ask for an older API, but removed or deprecated their names. */
#ifndef DRIVERS_COMPAT_H
#define DRIVERS_COMPAT_H

#include <stdint.h>

/* FI_PROV_SPECIFIC: a protocol or a wait object that only one provider defines. */
#define COMPAT_PROV_SPECIFIC (UINT32_C(1) << 31)

/* FI_MR_BASIC and FI_MR_SCALABLE: memory registration of API 1.4 and older. */
#define COMPAT_MR_BASIC    (1 << 0)
#define COMPAT_MR_SCALABLE (1 << 1)

/* FI_ORDER_NONE and FI_ORDER_STRICT: the orders of completions. */
#define COMPAT_ORDER_NONE   UINT64_C(0)
#define COMPAT_ORDER_STRICT UINT64_C(0x1FF)

#endif
