/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way messages over connected libfabric endpoints (FI_EP_MSG): the upper bound for links of the
 * same provider. */
#include "raw_msg.h"
#include "raw_stream.h"

RAW_STREAM_SIDES(raw_msg)
RAW_STREAM("raw-fi-stream", "tcp", .choose_provider = true);
