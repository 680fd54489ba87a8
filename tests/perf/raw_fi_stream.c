/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages one way over connected endpoints (FI_EP_MSG) of libfabric: what links of the same
 * provider can carry at most. */
#include "raw_msg.h"
#include "raw_stream.h"

static int serve(const struct raw_options *options)
{
	struct raw_msg msg = {.at.cq_entries = RAW_STREAM_CQ_ENTRIES};
	uint64_t size;
	int rc = raw_msg_listen(options, &msg, &size);

	if (!rc)
		rc = raw_stream_prepare(options, &msg.at, size);
	if (!rc)
		rc = raw_msg_accept(&msg);
	if (!rc)
		rc = raw_stream_receive(&msg.at, size);
	raw_msg_close(&msg);
	return rc;
}

static int stream(const struct raw_options *options, struct raw_flow *flow)
{
	struct raw_msg msg = {.at.cq_entries = RAW_STREAM_CQ_ENTRIES};
	int rc = raw_msg_connect(options, &msg);

	if (!rc)
		rc = raw_stream_prepare(options, &msg.at, options->size);
	if (!rc)
		rc = raw_stream_send(options, &msg.at, flow);
	raw_msg_close(&msg);
	return rc;
}

RAW_STREAM("raw-fi-stream", "tcp", .choose_provider = true);
