/* SPDX-License-Identifier: BSD-3-Clause */
/* A valid session with the service: HELLO, and one frame of each kind that may be sent
 * unprompted. */
#ifndef TCP_TEST_SESSION_H
#define TCP_TEST_SESSION_H

#include "tcp_service.h"

#define SESSION_READ_BYTES 100

struct session {
	struct raw_bytes all;
	size_t hello_bytes;
	size_t frames[5]; /* offsets of the frames; the last one: the end */
	size_t answer_bytes;
};

static inline void session_make(struct session *out)
{
	static const char payload[16] = "sixteen bytes..";
	struct wire_frame with_data = {
		.kind = WIRE_MESSAGE, .length = 5, .flags = WIRE_HAS_DATA, .data = 77};
	struct wire_frame write = {.kind = WIRE_WRITE,
				   .length = sizeof(payload),
				   .flags = WIRE_HAS_DATA,
				   .data = 78,
				   .address = 8,
				   .key = SERVICE_WRITABLE};
	struct wire_frame read = {.kind = WIRE_READ,
				  .length = SESSION_READ_BYTES,
				  .address = 16,
				  .key = SERVICE_READABLE};

	memset(out, 0, sizeof(*out));
	raw_add_hello(&out->all, WIRE_CONNECT, "hello", 5);
	out->hello_bytes = out->frames[0] = out->all.length;
	raw_add_message(&out->all, "first");
	out->frames[1] = out->all.length;
	raw_add_frame(&out->all, &with_data, "again", 5);
	out->frames[2] = out->all.length;
	raw_add_frame(&out->all, &write, payload, sizeof(payload));
	out->frames[3] = out->all.length;
	raw_add_frame(&out->all, &read, NULL, 0);
	out->frames[4] = out->all.length;
	/* The service accepts, echoes both messages, and answers the read. */
	out->answer_bytes = WIRE_HELLO_BYTES + 2 * (WIRE_FRAME_BYTES + 5) + WIRE_FRAME_BYTES +
			    SESSION_READ_BYTES;
}

/* Turn until the whole answer has arrived. */
static inline void session_expect_answer(int fd, const struct session *session)
{
	uint8_t answer[1024];
	size_t have = 0;

	assert_true(session->answer_bytes < sizeof(answer));
	service_until((have += raw_receive(fd, answer + have, sizeof(answer) - have)) >=
		      session->answer_bytes);
	assert_int_equal(have, session->answer_bytes);
	assert_int_equal(answer[9], WIRE_ACCEPT);
	assert_memory_equal(service.writable + 8, "sixteen bytes..", 16);
}

#endif
