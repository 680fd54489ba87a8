/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages one way over libfabric's own shared-memory provider (FI_EP_RDM), as a reference. */
#include "raw_rdm.h"
#include "raw_stream.h"

static int serve(const struct raw_options *options)
{
	struct raw_rdm rdm = {.at.cq_entries = RAW_STREAM_CQ_ENTRIES};
	uint64_t size;
	int rc = raw_rdm_listen(options, &rdm, &size);

	if (!rc)
		rc = raw_stream_prepare(options, &rdm.at, size);
	if (!rc)
		rc = raw_rdm_accept(&rdm);
	if (!rc)
		rc = raw_stream_receive(&rdm.at, size);
	raw_rdm_close(&rdm);
	return rc;
}

static int stream(const struct raw_options *options, struct raw_flow *flow)
{
	struct raw_rdm rdm = {.at.cq_entries = RAW_STREAM_CQ_ENTRIES};
	int rc = raw_rdm_connect(options, &rdm);

	if (!rc)
		rc = raw_stream_prepare(options, &rdm.at, options->size);
	if (!rc)
		rc = raw_stream_send(options, &rdm.at, flow);
	raw_rdm_close(&rdm);
	return rc;
}

RAW_STREAM("raw-fi-shm-stream", "shm", .address_is_a_name = true);
