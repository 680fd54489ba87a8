/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips over a ZeroMQ PAIR socket on TCP, blocking, as most programs use it. ZeroMQ's thread
 * moves the bytes, so spinning on the socket would only take that thread's CPU. */
#include "raw_zmq_side.h"

#include <stdlib.h>

/* An empty message ends it: the socket reconnects automatically and does not report lost peers. */
static int echo(const struct raw_options *options, struct raw_zmq_side *side)
{
	uint8_t *buffer = raw_buffer(RAW_SIZE_MAX);
	uint64_t limit_ns = options->wait_ns;
	int n;

	if (!buffer)
		return -ENOMEM;
	do {
		n = raw_zmq_receive(side->socket, buffer, RAW_SIZE_MAX, limit_ns,
				    "a message from the client");
		limit_ns = RAW_PEER_NS;
		if (n > 0) {
			int rc = raw_zmq_send(side->socket, buffer, (size_t)n);
			n = rc ? rc : n;
		}
	} while (n > 0);
	free(buffer);
	return n;
}

static int serve(const struct raw_options *options)
{
	struct raw_zmq_side side = {0};
	int rc = raw_zmq_open(options, ZMQ_PAIR, &side);

	if (!rc) {
		raw_zmq_say_listening(side.socket);
		rc = echo(options, &side);
	}
	raw_zmq_close(&side);
	return rc;
}

static int trips(void *socket, const uint8_t *message, uint8_t *answer, size_t size,
		 struct raw_run *run)
{
	bool more;

	do {
		uint64_t sent = plx_tsc();
		int rc = raw_zmq_send(socket, message, size);
		if (plx_unlikely(rc))
			return rc;
		int n = raw_zmq_receive(socket, answer, size, RAW_PEER_NS,
					"an answer from the server");
		uint64_t seen = plx_tsc_after_loads();
		if (plx_unlikely(n != (int)size))
			return n < 0 ? n : plx_fail(EPROTO, "an answer of %d B came", n);
		more = raw_run_add(run, sent, seen);
	} while (more);
	return raw_check_message(message, answer, size, "the last answer");
}

static int ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	uint8_t *answer = raw_buffer(options->size);
	struct raw_zmq_side side = {0};
	int rc = answer ? raw_zmq_open(options, ZMQ_PAIR, &side) : -ENOMEM;

	rc = rc ? rc : trips(side.socket, message, answer, options->size, run);
	rc = rc ? rc : raw_zmq_send(side.socket, message, 0);
	raw_zmq_close(&side);
	free(answer);
	return rc;
}

const struct raw_program raw_program = {
	.provider = "zmq", .idle = "block", .serve = serve, .ping = ping};
