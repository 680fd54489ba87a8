/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that violate the protocol of plx_tcp, against a listening service. They cost others no
 * connection, leave nothing allocated, and are counted. */
#include "tcp_service.h"

#define SESSION_READ_BYTES 100

/* A valid session with the service: HELLO, and one frame of each kind that may be sent
 * unprompted. */
static struct session {
	struct raw_bytes all;
	size_t hello_bytes;
	size_t frames[5]; /* offsets of the frames; the last one: the end */
	size_t answer_bytes;
} session;

static void session_make(void)
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

	memset(&session, 0, sizeof(session));
	raw_add_hello(&session.all, WIRE_CONNECT, "hello", 5);
	session.hello_bytes = session.frames[0] = session.all.length;
	raw_add_message(&session.all, "first");
	session.frames[1] = session.all.length;
	raw_add_frame(&session.all, &with_data, "again", 5);
	session.frames[2] = session.all.length;
	raw_add_frame(&session.all, &write, payload, sizeof(payload));
	session.frames[3] = session.all.length;
	raw_add_frame(&session.all, &read, NULL, 0);
	session.frames[4] = session.all.length;
	/* The service accepts, echoes both messages, and answers the read. */
	session.answer_bytes = WIRE_HELLO_BYTES + 2 * (WIRE_FRAME_BYTES + 5) + WIRE_FRAME_BYTES +
			       SESSION_READ_BYTES;
}

/* Turn until the whole answer has arrived. */
static void session_expect_answer(int fd)
{
	uint8_t answer[1024];
	size_t have = 0;

	assert_true(session.answer_bytes < sizeof(answer));
	service_until((have += raw_receive(fd, answer + have, sizeof(answer) - have)) >=
		      session.answer_bytes);
	assert_int_equal(have, session.answer_bytes);
	assert_int_equal(answer[9], WIRE_ACCEPT);
	assert_memory_equal(service.writable + 8, "sixteen bytes..", 16);
}

/* Attacks -------------------------------------------------------------------------------------- */

enum leaving { LEAVES_CLOSED, LEAVES_HALF_CLOSED, LEAVES_RESET };

/* Send bytes, wait until the service has taken them, and leave. */
static void visit(const void *bytes, size_t length, enum leaving leaving)
{
	uint64_t before = service.ended + service_refused();
	int fd = raw_connect(&service.address);

	if (length)
		raw_send(fd, bytes, length);
	for (int i = 0; i < 8; i++)
		service_turn();
	if (leaving == LEAVES_RESET) {
		raw_reset(fd);
	} else if (leaving == LEAVES_HALF_CLOSED) {
		shutdown(fd, SHUT_WR);
		service_until(socket_has_ended(fd));
		close(fd);
	} else {
		close(fd);
	}
	service_until(service.ended + service_refused() > before);
	service_until(service.visitor_count == 1 && service.pep->base.silent_count == 0);
	assert_int_equal(service.ended + service_refused(), before + 1);
}

static bool is_header_refused(uint64_t word)
{
	uint64_t before = service_breaches(TCP_BREACH_FRAME);
	struct raw_bytes bytes = {0};
	bool is_ended;

	/* The service refuses once the first word has arrived. */
	raw_add(&bytes, &word, sizeof(word));
	is_ended = service_ends(bytes.bytes, bytes.length);
	assert_int_equal(service_breaches(TCP_BREACH_FRAME), before + is_ended);
	return is_ended;
}

static int setup(void **state)
{
	session_make();
	return service_setup(state);
}

#define TEST(name) PLX_TEST_WITH(name, setup, service_teardown)

/* A valid session, corrupted ------------------------------------------------------------------- */

TEST(a_valid_session_is_answered)
{
	int fd = raw_connect(&service.address);

	raw_send(fd, session.all.bytes, session.all.length);
	session_expect_answer(fd);
	service_leave(fd);
	assert_int_equal(service_refused(), 0);
}

/* Connections that ended before their HELLO was complete. */
static uint64_t service_left(void)
{
	const uint64_t *ended = service.pep->base.ended;

	return ended[PLX_ADMIT_LEFT] + ended[PLX_ADMIT_CUT];
}

TEST(a_session_ends_wherever_the_peer_closes)
{
	for (enum leaving leaving = LEAVES_CLOSED; leaving <= LEAVES_RESET; leaving++) {
		uint64_t gone = service_left();

		for (size_t length = 0; length <= session.all.length; length++)
			visit(session.all.bytes, length, leaving);
		/* One that is reset right after its HELLO may be reported or not. */
		if (leaving != LEAVES_RESET)
			assert_int_equal(service_left(), gone + session.hello_bytes);
		service_expect_calm();
	}
	assert_int_equal(service_refused(), service_left());
}

TEST(any_flipped_bit_of_a_session_does_no_harm)
{
	for (size_t bit = 0; bit < session.all.length * 8; bit++) {
		struct session spoilt = session;

		spoilt.all.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		visit(spoilt.all.bytes, spoilt.all.length, LEAVES_CLOSED);
	}
	service_expect_calm();
}

/* Fields -------------------------------------------------------------------------------------- */

TEST(invalid_headers_end_the_connection)
{
	static const uint8_t kinds[] = {0, WIRE_READ_DATA + 1, 127, 128, 255};

	for (size_t i = 0; i < PLX_ARRAY_LEN(kinds); i++)
		assert_true(is_header_refused(wire_word(kinds[i], 0, 0)));
	for (int flags = 2; flags < 256; flags <<= 1)
		assert_true(is_header_refused(wire_word(WIRE_MESSAGE, (uint8_t)flags, 0)));
	assert_true(is_header_refused(wire_word(WIRE_MESSAGE, 255, 0)));
	assert_true(is_header_refused(wire_word(WIRE_READ, WIRE_HAS_DATA, 0)));
	assert_true(is_header_refused(wire_word(WIRE_READ_DATA, WIRE_HAS_DATA, 0)));
	assert_true(is_header_refused(wire_word(WIRE_MESSAGE, 0, WIRE_LENGTH_MAX + 1)));
	assert_true(is_header_refused(wire_word(WIRE_MESSAGE, 0, UINT32_MAX)));
	assert_true(is_header_refused(wire_word(WIRE_MESSAGE, 0, 0) ^ 1ull << 48));
	assert_true(is_header_refused(0));
	assert_true(is_header_refused(UINT64_MAX));
	assert_false(is_header_refused(wire_word(WIRE_MESSAGE, 0, 0)));
	assert_int_equal(service_refused(), 0);
}

TEST(a_missing_hello_times_out_and_is_counted)
{
	uint64_t before = service.pep->base.silent_ns;
	int silent, drip;

	service.pep->base.silent_ns = 20 * PLX_NS_PER_MS;
	silent = raw_connect(&service.address);
	drip = raw_connect(&service.address);
	raw_send(drip, session.all.bytes, session.hello_bytes - 1);
	service_until(service.pep->base.ended[PLX_ADMIT_SILENT] == 2);
	service.pep->base.silent_ns = before;
	service_until(socket_has_ended(silent) && socket_has_ended(drip));
	close(silent);
	service_leave(drip);
}

TEST(a_silent_peer_too_many_evicts_the_oldest)
{
	int fds[4];

	service.pep->base.handshakes_max = 3;
	for (size_t i = 0; i < PLX_ARRAY_LEN(fds); i++) {
		fds[i] = raw_connect(&service.address);
		service_until(service.pep->base.silent_count +
				      service.pep->base.ended[PLX_ADMIT_EVICTED] ==
			      i + 1);
	}
	assert_true(socket_has_ended(fds[0]));
	assert_false(socket_has_ended(fds[1]) || socket_has_ended(fds[2]) ||
		     socket_has_ended(fds[3]));
	for (size_t i = 0; i < PLX_ARRAY_LEN(fds); i++)
		close(fds[i]);
	service_expect_calm();
}

/* Listeners that answer with anything, or nothing ---------------------------------------------- */

static int listener;
static struct sockaddr_storage listener_name;

static int setup_listener(void **state)
{
	struct sockaddr_in *name = (struct sockaddr_in *)&listener_name;
	socklen_t bytes = sizeof(listener_name);

	setup(state);
	*name = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)name, sizeof(*name)), 0);
	assert_int_equal(listen(listener, 64), 0);
	return getsockname(listener, (struct sockaddr *)name, &bytes);
}

static int teardown_listener(void **state)
{
	close(listener);
	return service_teardown(state);
}

/* Return: the listener's end. */
static int dial(struct fid_ep **ep_out)
{
	*ep_out = service_ep(&service.client, service.client.info, NULL);
	assert_int_equal(fi_connect(*ep_out, &listener_name, "who", 3), 0);
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

/* The attempt fails, and the honest client continues. */
static void expect_error(struct fid_ep *ep, int err, size_t data_bytes)
{
	struct fi_eq_err_entry error = {0};
	union cm_event event;
	uint32_t number;
	ssize_t got;

	service_until((got = fi_eq_read(service.client.eq, &number, &event, sizeof(event), 0)) !=
		      -FI_EAGAIN);
	assert_int_equal(got, -FI_EAVAIL);
	assert_true(fi_eq_readerr(service.client.eq, &error, 0) > 0);
	assert_ptr_equal(error.fid, &ep->fid);
	assert_int_equal(error.err, err);
	assert_int_equal(error.err_data_size, data_bytes);
	assert_int_equal(fi_close(&ep->fid), 0);
	service_expect_echo();
}

/* The listener answers with these bytes, and closes the connection unless the attempt must time
 * out. */
static void expect_failure(const void *bytes, size_t length, int err)
{
	uint8_t hello[WIRE_HELLO_MOST];
	struct fid_ep *ep;
	int fd = dial(&ep);

	while (!raw_receive(fd, hello, sizeof(hello)))
		eq_progress((struct prov_eq *)service.client.eq);
	if (length)
		raw_send(fd, bytes, length);
	if (err != FI_ETIMEDOUT)
		shutdown(fd, SHUT_WR);
	expect_error(ep, err, 0);
	close(fd);
}

#define LISTENER_TEST(name) PLX_TEST_WITH(name, setup_listener, teardown_listener)

LISTENER_TEST(an_answer_of_another_protocol_version_or_kind_counts_as_a_refusal)
{
	static const uint8_t libfabric[16] = {3}, rubbish[1000] = "Z";
	struct raw_bytes accept = {0}, request = {0}, too_long = {0};
	uint16_t most = UINT16_MAX;

	expect_failure(rubbish, sizeof(rubbish), FI_ECONNREFUSED);
	expect_failure("HTTP/1.1 400 Bad Request\r\n\r\n", 28, FI_ECONNREFUSED);
	expect_failure(libfabric, sizeof(libfabric), FI_ECONNREFUSED);
	raw_add_hello(&request, WIRE_CONNECT, "data", 4);
	expect_failure(request.bytes, request.length, FI_ECONNREFUSED);
	raw_add_hello(&too_long, WIRE_REJECT, "data", 4);
	memcpy(too_long.bytes + 10, &most, 2);
	expect_failure(too_long.bytes, too_long.length, FI_ECONNREFUSED);
	raw_add_hello(&accept, WIRE_ACCEPT, "", 0);
	accept.bytes[8] = WIRE_VERSION + 1;
	expect_failure(accept.bytes, accept.length, FI_ECONNREFUSED);
}

/* A listener without room answers before it has read anything. Bytes after it are ignored. */
LISTENER_TEST(a_refusal_may_arrive_before_the_request_leaves)
{
	struct raw_bytes bytes = {0};
	struct fid_ep *ep;
	int fd = dial(&ep);

	raw_add_hello(&bytes, WIRE_REJECT, "come again", 10);
	raw_add(&bytes, "more", 4);
	raw_send(fd, bytes.bytes, bytes.length);
	raw_reset(fd);
	expect_error(ep, FI_ECONNREFUSED, 10);
}

LISTENER_TEST(a_partial_answer_counts_as_a_refusal_or_times_out)
{
	uint32_t before = tcp_params.connect_ms;
	struct raw_bytes bytes = {0};

	raw_add_hello(&bytes, WIRE_ACCEPT, "hello", 5);
	for (size_t length = 0; length < bytes.length; length++)
		expect_failure(bytes.bytes, length, FI_ECONNREFUSED);
	tcp_params.connect_ms = 200;
	expect_failure(bytes.bytes, 0, FI_ETIMEDOUT);
	expect_failure(bytes.bytes, bytes.length - 1, FI_ETIMEDOUT);
	tcp_params.connect_ms = before;
}

PLX_TEST_MAIN()
