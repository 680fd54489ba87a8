/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way messages over an endpoint that has met its peer, as fast as it takes them.
 * The count is of received messages: after the last message the client sends a mark with their
 * number, and stops its clock when the server has confirmed all of them. So the time includes one
 * idle round trip, and no message in flight counts as received. Marks differ from messages by
 * size. */
#ifndef RAW_STREAM_H
#define RAW_STREAM_H

#include "raw_endpoint.h"

#define RAW_STREAM_CQ_ENTRIES 256

/* Post the receives of a server or client. Return: 0; -errno. */
int raw_stream_prepare(const struct raw_options *options, struct raw_endpoint *at, uint64_t size);

/* Take messages until the client ends the stream. Return: 0; -errno. */
int raw_stream_receive(struct raw_endpoint *at, uint64_t size);

/* Send warm-up and measured messages, then end the stream. Return: 0; -errno. */
int raw_stream_send(const struct raw_options *options, struct raw_endpoint *at,
		    struct raw_flow *flow);

/* Define serve and stream over one kind of endpoint: raw_msg or raw_rdm. */
#define RAW_STREAM_SIDES(kind)                                                       \
	static int serve(const struct raw_options *options)                          \
	{                                                                            \
		struct kind side = {.at.cq_entries = RAW_STREAM_CQ_ENTRIES};         \
		uint64_t size;                                                       \
		int rc = kind##_listen(options, &side, &size);                       \
                                                                                     \
		rc = rc ? rc : raw_stream_prepare(options, &side.at, size);          \
		rc = rc ? rc : kind##_accept(&side);                                 \
		rc = rc ? rc : raw_stream_receive(&side.at, size);                   \
		kind##_close(&side);                                                 \
		return rc;                                                           \
	}                                                                            \
                                                                                     \
	static int stream(const struct raw_options *options, struct raw_flow *flow)  \
	{                                                                            \
		struct kind side = {.at.cq_entries = RAW_STREAM_CQ_ENTRIES};         \
		int rc = kind##_connect(options, &side);                             \
                                                                                     \
		rc = rc ? rc : raw_stream_prepare(options, &side.at, options->size); \
		rc = rc ? rc : raw_stream_send(options, &side.at, flow);             \
		kind##_close(&side);                                                 \
		return rc;                                                           \
	}

#endif
