/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way messages over libfabric's shared-memory provider (FI_EP_RDM), as a reference. */
#include "raw_rdm.h"
#include "raw_stream.h"

RAW_STREAM_SIDES(raw_rdm)
RAW_STREAM("raw-fi-shm-stream", "shm", .address_is_a_name = true);
