/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages one way over an endpoint that has met its peer, as fast as it takes them.
 *
 * What counts is what was received: behind the last message the client sends a mark with their
 * number, and stops its clock when the server has answered that it got them all. So the time has
 * one way to the other side and back in it that carries nothing, and nothing that was on its way is
 * counted as there. Marks differ from messages by their size. */
#ifndef RAW_STREAM_H
#define RAW_STREAM_H

#include "raw_endpoint.h"

#define RAW_STREAM_CQ_ENTRIES 256

/* Post the receives of a server or a client. Return: 0; -errno. */
int raw_stream_prepare(const struct raw_options *options, struct raw_endpoint *at, uint64_t size);

/* Take messages until the client ends it. Return: 0; -errno. */
int raw_stream_receive(struct raw_endpoint *at, uint64_t size);

/* Send warm-up and measured messages, and end it. Return: 0; -errno. */
int raw_stream_send(const struct raw_options *options, struct raw_endpoint *at,
		    struct raw_flow *flow);

/* Define serve and stream over one kind of endpoints: raw_msg or raw_rdm. */
#define RAW_STREAM_SIDES(kind)                                                      \
	static int serve(const struct raw_options *options)                         \
	{                                                                           \
		struct kind side = {.at.cq_entries = RAW_STREAM_CQ_ENTRIES};        \
		uint64_t size;                                                      \
		int rc = kind##_listen(options, &side, &size);                      \
                                                                                    \
		if (!rc)                                                            \
			rc = raw_stream_prepare(options, &side.at, size);           \
		if (!rc)                                                            \
			rc = kind##_accept(&side);                                  \
		if (!rc)                                                            \
			rc = raw_stream_receive(&side.at, size);                    \
		kind##_close(&side);                                                \
		return rc;                                                          \
	}                                                                           \
                                                                                    \
	static int stream(const struct raw_options *options, struct raw_flow *flow) \
	{                                                                           \
		struct kind side = {.at.cq_entries = RAW_STREAM_CQ_ENTRIES};        \
		int rc = kind##_connect(options, &side);                            \
                                                                                    \
		if (!rc)                                                            \
			rc = raw_stream_prepare(options, &side.at, options->size);  \
		if (!rc)                                                            \
			rc = raw_stream_send(options, &side.at, flow);              \
		kind##_close(&side);                                                \
		return rc;                                                          \
	}

#endif
