/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_zmq_side.h"

#define LOOK_MS   100 /* receives return this often, to check for a stop */
#define LINGER_MS 1000

static int failed(int err, const char *what)
{
	return plx_fail(err < ZMQ_HAUSNUMERO ? err : EIO, "%s: %s", what, zmq_strerror(err));
}

int raw_zmq_failed(const char *what)
{
	return failed(zmq_errno(), what);
}

void *raw_zmq_socket(struct raw_zmq_side *side, int type)
{
	int look_ms = LOOK_MS, linger_ms = LINGER_MS, six = 1; /* IPv6 too */
	int limit_ms = (int)(RAW_PEER_NS / PLX_NS_PER_MS);

	if (!side->context)
		side->context = zmq_ctx_new();
	void *socket = side->context ? zmq_socket(side->context, type) : NULL;
	if (!socket) {
		raw_zmq_failed("cannot open a socket");
		return NULL;
	}
	zmq_setsockopt(socket, ZMQ_RCVTIMEO, &look_ms, sizeof(look_ms));
	zmq_setsockopt(socket, ZMQ_SNDTIMEO, &limit_ms, sizeof(limit_ms));
	zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
	zmq_setsockopt(socket, ZMQ_IPV6, &six, sizeof(six));
	return socket;
}

void raw_zmq_endpoint(const struct raw_options *options, const char *port,
		      char endpoint[RAW_ZMQ_ENDPOINT])
{
	bool six = strchr(options->host, ':');

	snprintf(endpoint, RAW_ZMQ_ENDPOINT, "tcp://%s%s%s:%s", six ? "[" : "", options->host,
		 six ? "]" : "", port);
}

void raw_zmq_where(void *socket, char endpoint[RAW_ZMQ_ENDPOINT])
{
	size_t length = RAW_ZMQ_ENDPOINT;

	endpoint[0] = '\0';
	zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length);
}

void raw_zmq_say_listening(void *socket)
{
	char where[RAW_ZMQ_ENDPOINT];

	raw_zmq_where(socket, where);
	plx_app_say("listening on %s", strncmp(where, "tcp://", 6) ? where : where + 6);
}

int raw_zmq_meet(const struct raw_options *options, void *socket)
{
	char endpoint[RAW_ZMQ_ENDPOINT];

	raw_zmq_endpoint(options, options->port, endpoint);
	raw_catch_signals();
	int rc = options->listen ? zmq_bind(socket, endpoint) : zmq_connect(socket, endpoint);
	return rc ? raw_zmq_failed(options->address) : 0;
}

int raw_zmq_open(const struct raw_options *options, int type, struct raw_zmq_side *side)
{
	side->socket = raw_zmq_socket(side, type);
	return side->socket ? raw_zmq_meet(options, side->socket) : -EIO;
}

void raw_zmq_close(struct raw_zmq_side *side)
{
	if (side->socket)
		zmq_close(side->socket);
	if (side->context)
		zmq_ctx_term(side->context);
}

int raw_zmq_wait(struct raw_wait *wait, uint64_t limit_ns, const char *what)
{
	if (zmq_errno() != EAGAIN && zmq_errno() != EINTR)
		return raw_zmq_failed("cannot receive");
	/* Each empty poll takes LOOK_MS, so read the clock every time. */
	return raw_wait_check(wait, limit_ns, what);
}

int raw_zmq_receive(void *socket, void *buffer, size_t size, uint64_t limit_ns, const char *what)
{
	struct raw_wait wait = {0};
	int rc = 0;

	do {
		int n = zmq_recv(socket, buffer, size, 0);
		if (plx_likely(n >= 0))
			return n <= (int)size
				     ? n
				     : plx_fail(EPROTO, "a message of %d B came, not %zu", n, size);
		rc = raw_zmq_wait(&wait, limit_ns, what);
	} while (!rc);
	return rc;
}

int raw_zmq_send(void *socket, const void *buffer, size_t size)
{
	if (plx_likely(zmq_send(socket, buffer, size, 0) >= 0))
		return 0;
	return failed(zmq_errno() == EAGAIN ? ETIMEDOUT : zmq_errno(), "cannot send");
}
