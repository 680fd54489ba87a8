/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips over a ZeroMQ PAIR socket on tcp, blocking as its users do: what people have today.
 * Its own thread moves the bytes, so spinning on the socket would only take that thread's CPU. */
#include "raw_common.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define LOOK_MS 100 /* a receive comes back this often, to look whether to stop */

struct side {
	void *context;
	void *socket;
	char endpoint[320];
};

static int failed(int err, const char *what)
{
	return plx_fail(err < ZMQ_HAUSNUMERO ? err : EIO, "%s: %s", what, zmq_strerror(err));
}

static int open_side(const struct raw_options *options, struct side *side)
{
	int look_ms = LOOK_MS, linger_ms = 1000, limit_ms = (int)(RAW_PEER_NS / PLX_NS_PER_MS);
	bool six = strchr(options->host, ':');

	snprintf(side->endpoint, sizeof(side->endpoint), "tcp://%s%s%s:%s", six ? "[" : "",
		 options->host, six ? "]" : "", options->port);
	side->context = zmq_ctx_new();
	side->socket = side->context ? zmq_socket(side->context, ZMQ_PAIR) : NULL;
	if (!side->socket)
		return failed(zmq_errno(), "cannot open a socket");
	zmq_setsockopt(side->socket, ZMQ_RCVTIMEO, &look_ms, sizeof(look_ms));
	zmq_setsockopt(side->socket, ZMQ_SNDTIMEO, &limit_ms, sizeof(limit_ms));
	zmq_setsockopt(side->socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
	raw_catch_signals();
	int rc = options->listen ? zmq_bind(side->socket, side->endpoint)
				 : zmq_connect(side->socket, side->endpoint);
	return rc ? failed(zmq_errno(), options->address) : 0;
}

static void close_side(struct side *side)
{
	if (side->socket)
		zmq_close(side->socket);
	if (side->context)
		zmq_ctx_term(side->context);
}

/* Returns the size of the message; -errno. */
static int receive(struct side *side, uint8_t *buffer, size_t size, uint64_t limit_ns,
		   const char *what)
{
	/* Each empty look takes LOOK_MS: look at the clock every time. */
	struct raw_wait wait = {.spins = RAW_SPINS_CHECK - 1};
	int rc = 0;

	do {
		int n = zmq_recv(side->socket, buffer, size, 0);
		if (plx_likely(n >= 0))
			return n <= (int)size
				     ? n
				     : plx_fail(EPROTO, "a message of %d B came, not %zu", n, size);
		if (zmq_errno() != EAGAIN && zmq_errno() != EINTR)
			return failed(zmq_errno(), "cannot receive");
		wait.spins = RAW_SPINS_CHECK - 1;
		rc = raw_wait_over(&wait, limit_ns, what);
	} while (!rc);
	return rc;
}

static int transmit(struct side *side, const uint8_t *buffer, size_t size)
{
	if (plx_likely(zmq_send(side->socket, buffer, size, 0) >= 0))
		return 0;
	return failed(zmq_errno() == EAGAIN ? ETIMEDOUT : zmq_errno(), "cannot send");
}

/* A message of no bytes ends it: the socket reconnects by itself and tells of no peer that goes. */
static int echo(const struct raw_options *options, struct side *side)
{
	uint8_t *buffer = raw_buffer(RAW_SIZE_MAX);
	uint64_t limit_ns = options->wait_ns;
	int n;

	if (!buffer)
		return -ENOMEM;
	do {
		n = receive(side, buffer, RAW_SIZE_MAX, limit_ns, "a message from the client");
		limit_ns = RAW_PEER_NS;
		if (n > 0) {
			int rc = transmit(side, buffer, (size_t)n);
			n = rc ? rc : n;
		}
	} while (n > 0);
	free(buffer);
	return n;
}

static int serve(const struct raw_options *options)
{
	struct side side = {0};
	int rc = open_side(options, &side);

	if (!rc) {
		char where[320] = "";
		size_t length = sizeof(where);

		zmq_getsockopt(side.socket, ZMQ_LAST_ENDPOINT, where, &length);
		raw_say_listening(strncmp(where, "tcp://", 6) ? where : where + 6, "");
		rc = echo(options, &side);
	}
	close_side(&side);
	return rc;
}

static int trips(struct side *side, const uint8_t *message, uint8_t *answer, size_t size,
		 struct raw_run *run)
{
	bool more;

	do {
		uint64_t sent = plx_tsc();
		int rc = transmit(side, message, size);
		if (plx_unlikely(rc))
			return rc;
		int n = receive(side, answer, size, RAW_PEER_NS, "an answer from the server");
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
	struct side side = {0};
	int rc = answer ? open_side(options, &side) : -ENOMEM;

	if (!rc)
		rc = trips(&side, message, answer, options->size, run);
	if (!rc)
		rc = transmit(&side, message, 0);
	close_side(&side);
	free(answer);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct raw_program program = {
		.name = "raw-zmq",
		.provider = "zmq",
		.idle = "block",
		.address = "HOST:PORT",
		.serve = serve,
		.ping = ping,
	};

	return raw_main(argc, argv, &program);
}
