/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages one way over connected endpoints (FI_EP_MSG) of libfabric: what links of the same
 * provider can carry at most. */
#include "raw_msg.h"
#include "raw_stream.h"

RAW_STREAM_SIDES(raw_msg)
RAW_STREAM("raw-fi-stream", "tcp", .choose_provider = true);
