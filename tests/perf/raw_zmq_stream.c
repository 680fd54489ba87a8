/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way messages over ZeroMQ's PUSH and PULL on TCP. The server's counts return on a second pair
 * of sockets, for which the client listens on the host that it connects to: both sides are on one
 * host. Each side also has a ZeroMQ thread, on the CPU of --cpu.
 * Messages are sent from the caller's memory, or with --copy as zmq_send does, after which the
 * caller may reuse it; the receiver reads them in place. */
#include "raw_zmq_side.h"

#include <stdlib.h>

#define WINDOW_BYTES (UINT64_C(64) << 20) /* that may queue on each side */
#define DEPTH_LEAST  16
#define DEPTH_MOST   1000 /* ZeroMQ's default */

/* The client's first message. */
struct hello {
	uint64_t size;
	char endpoint[RAW_ZMQ_ENDPOINT]; /* where counts go */
};

struct side {
	struct raw_zmq_side zmq; /* its socket carries the messages */
	void *counts;
	struct raw_flow *flow; /* of the client */
	uint8_t *message;      /* the content of every message */
	uint64_t size;
	bool copy;
};

static int limit_depth(const struct side *side, int option, uint64_t chosen)
{
	uint64_t fit = WINDOW_BYTES / side->size;
	uint64_t depth = fit < DEPTH_LEAST ? DEPTH_LEAST : fit > DEPTH_MOST ? DEPTH_MOST : fit;
	int value = (int)(chosen ? chosen : depth);

	return zmq_setsockopt(side->zmq.socket, option, &value, sizeof(value))
		     ? raw_zmq_failed("cannot limit what waits")
		     : 0;
}

static int open_side(struct side *side, int messages, int counts)
{
	side->zmq.socket = raw_zmq_socket(&side->zmq, messages);
	side->counts = side->zmq.socket ? raw_zmq_socket(&side->zmq, counts) : NULL;
	return side->counts ? 0 : -EIO;
}

static void close_side(struct side *side)
{
	if (side->counts)
		zmq_close(side->counts);
	raw_zmq_close(&side->zmq);
	free(side->message);
}

/* Receiving -------------------------------------------------------------------------------- */

static int meet_client(const struct raw_options *options, struct side *side)
{
	struct hello hello = {0};
	int n = raw_zmq_receive(side->zmq.socket, &hello, sizeof(hello), options->wait_ns,
				"a client");

	if (n < 0)
		return n;
	if (n != sizeof(hello) || !hello.size || hello.size > RAW_SIZE_MAX)
		return plx_fail(EPROTO, "the client asks for messages of %llu B",
				(unsigned long long)hello.size);
	hello.endpoint[sizeof(hello.endpoint) - 1] = '\0';
	side->size = hello.size;
	side->message = raw_message(side->size);
	if (!side->message)
		return -ENOMEM;
	return zmq_connect(side->counts, hello.endpoint) ? raw_zmq_failed(hello.endpoint) : 0;
}

/* Return: 0; 1 for the last one; -errno. */
static int take_mark(struct side *side, zmq_msg_t *msg, uint64_t *got)
{
	struct raw_mark mark = {0};

	if (zmq_msg_size(msg) != raw_mark_bytes(side->size))
		return plx_fail(EPROTO, "a message of %zu B came, not %llu", zmq_msg_size(msg),
				(unsigned long long)side->size);
	memcpy(&mark, zmq_msg_data(msg), zmq_msg_size(msg));
	if (mark.count == RAW_MARK_END)
		return 1;
	mark.count = *got;
	*got = 0;
	return raw_zmq_send(side->counts, &mark, sizeof(mark));
}

static int take(struct side *side, zmq_msg_t *msg, uint64_t *got)
{
	if (plx_unlikely(zmq_msg_size(msg) != side->size))
		return take_mark(side, msg, got);
	if (plx_likely((*got)++))
		return 0;
	return raw_check_message(side->message, zmq_msg_data(msg), side->size, "the first message");
}

static int receive_all(struct side *side)
{
	struct raw_wait wait = {0};
	uint64_t got = 0; /* since the last mark */
	zmq_msg_t msg;
	int rc = 0;

	zmq_msg_init(&msg);
	while (!rc) {
		if (plx_likely(zmq_msg_recv(&msg, side->zmq.socket, 0) >= 0)) {
			wait = (struct raw_wait){0};
			rc = take(side, &msg, &got);
		} else {
			rc = raw_zmq_wait(&wait, RAW_PEER_NS, "a message from the peer");
		}
	}
	zmq_msg_close(&msg);
	return rc < 0 ? rc : 0;
}

/* The queue length must be set before listening, and the client's size arrives later: --size gives
 * it for large messages. */
static int serve(const struct raw_options *options)
{
	struct side side = {.size = options->size};
	int rc = open_side(&side, ZMQ_PULL, ZMQ_PUSH);

	rc = rc ? rc : limit_depth(&side, ZMQ_RCVHWM, options->posted);
	rc = rc ? rc : raw_zmq_meet(options, side.zmq.socket);
	if (!rc) {
		raw_zmq_say_listening(side.zmq.socket);
		rc = meet_client(options, &side);
	}
	rc = rc ? rc : receive_all(&side);
	close_side(&side);
	return rc;
}

/* Sending ---------------------------------------------------------------------------------- */

static int meet_server(const struct raw_options *options, struct side *side)
{
	struct hello hello = {.size = options->size};

	raw_zmq_endpoint(options, "*", hello.endpoint);
	if (zmq_bind(side->counts, hello.endpoint))
		return raw_zmq_failed("cannot listen for counts");
	raw_zmq_where(side->counts, hello.endpoint);
	int rc = raw_zmq_meet(options, side->zmq.socket);
	return rc ? rc : raw_zmq_send(side->zmq.socket, &hello, sizeof(hello));
}

/* Return: 0; -ENOMEM. */
static int make(const struct side *side, zmq_msg_t *msg_out)
{
	int rc = side->copy ? zmq_msg_init_size(msg_out, side->size)
			    : zmq_msg_init_data(msg_out, side->message, side->size, NULL, NULL);

	if (plx_unlikely(rc != 0))
		return plx_fail(ENOMEM, "out of memory for a message");
	if (side->copy)
		memcpy(zmq_msg_data(msg_out), side->message, side->size);
	return 0;
}

static int send_one(struct side *side)
{
	zmq_msg_t msg;

	if (plx_unlikely(make(side, &msg) != 0))
		return -ENOMEM;
	if (plx_likely(zmq_msg_send(&msg, side->zmq.socket, ZMQ_DONTWAIT) >= 0))
		return 0;
	side->flow->again++;
	if (zmq_errno() == EAGAIN && zmq_msg_send(&msg, side->zmq.socket, 0) >= 0)
		return 0;
	int rc = zmq_errno() == EAGAIN ? plx_fail(ETIMEDOUT, "the peer takes no more messages")
				       : raw_zmq_failed("cannot send");
	zmq_msg_close(&msg);
	return rc;
}

static int send_some(void *side, uint64_t count)
{
	int rc = 0;

	for (uint64_t i = 0; i < count && plx_likely(!rc); i++)
		rc = send_one(side);
	/* Relaxed: see raw_run_add. */
	if (!rc && atomic_load_explicit(&raw_stop, memory_order_relaxed))
		return plx_fail(EINTR, "stopped while sending");
	return rc;
}

static int send_mark(struct side *side, uint64_t count)
{
	struct raw_mark mark = {.count = count};

	return raw_zmq_send(side->zmq.socket, &mark, raw_mark_bytes(side->size));
}

/* Until the server has all of them. */
static int settle(void *arg, uint64_t count)
{
	struct side *side = arg;
	struct raw_mark mark = {0};
	int rc = send_mark(side, count);

	if (rc)
		return rc;
	rc = raw_zmq_receive(side->counts, &mark, sizeof(mark), RAW_PEER_NS, "the server's count");
	if (rc < 0)
		return rc;
	return mark.count == count
		     ? 0
		     : plx_fail(EBADMSG, "the server got %llu messages of %llu",
				(unsigned long long)mark.count, (unsigned long long)count);
}

static int stream(const struct raw_options *options, struct raw_flow *flow)
{
	struct side side = {
		.flow = flow,
		.size = options->size,
		.message = raw_message(options->size),
		.copy = options->copy,
	};
	int rc = side.message ? open_side(&side, ZMQ_PUSH, ZMQ_PULL) : -ENOMEM;

	rc = rc ? rc : limit_depth(&side, ZMQ_SNDHWM, options->window);
	rc = rc ? rc : meet_server(options, &side);
	rc = rc ? rc : raw_flow_send(options, flow, send_some, settle, &side);
	rc = rc ? rc : send_mark(&side, RAW_MARK_END);
	close_side(&side);
	return rc;
}

const struct raw_program raw_program = {
	.provider = "zmq",
	.idle = "block",
	.choices = "copy window posted",
	.serve = serve,
	.stream = stream,
};
