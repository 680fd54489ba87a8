/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of lib/fabric for the libraries above it; not installed. */
#ifndef FABRIC_INTERNAL_H
#define FABRIC_INTERNAL_H

#include <stdint.h>

/** Check that the receive buffers of one link are not too many bytes in all.
 * Thread: any. Return: 0; -EINVAL. */
int link_check_window(uint32_t buf_bytes, uint32_t buf_count);

#endif
