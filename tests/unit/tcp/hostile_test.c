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
		service_until(raw_has_ended(fd));
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

/* first: bytes of the first part; then of each. */
static void arrive_in_parts(size_t first, size_t then)
{
	int fd = raw_connect(&service.address);
	size_t part = first;

	memset(service.writable, 0, sizeof(service.writable));
	for (size_t at = 0; at < session.all.length; at += part, part = then) {
		part = part < session.all.length - at ? part : session.all.length - at;
		raw_send(fd, session.all.bytes + at, part);
		for (int turn = 0; turn < 20; turn++)
			service_turn();
	}
	session_expect_answer(fd);
	close(fd);
	service_until(service.visitor_count == 1);
}

TEST(a_session_may_arrive_in_parts)
{
	for (size_t first = 1; first < session.all.length; first++)
		arrive_in_parts(first, session.all.length);
	arrive_in_parts(1, 1);
	service_expect_calm();
}

/* The byte's offset determines the error. */
static void flip(size_t bit)
{
	struct session spoilt = session;
	uint64_t strangers = service.pep->base.ended[PLX_ADMIT_STRANGER];
	uint64_t versions = service.pep->base.ended[PLX_ADMIT_VERSION];
	size_t offset = bit / 8;

	spoilt.all.bytes[offset] ^= (uint8_t)(1u << bit % 8);
	visit(spoilt.all.bytes, spoilt.all.length, LEAVES_CLOSED);
	strangers = service.pep->base.ended[PLX_ADMIT_STRANGER] - strangers;
	versions = service.pep->base.ended[PLX_ADMIT_VERSION] - versions;
	assert_int_equal(versions, offset == 8);
	/* The magic; the kind; a length beyond the limit. */
	assert_int_equal(strangers, offset < 8 || offset == 9 || offset == 11);
}

TEST(any_flipped_bit_of_a_session_does_no_harm)
{
	for (size_t bit = 0; bit < session.all.length * 8; bit++)
		flip(bit);
	service_expect_calm();
}

/* Fields -------------------------------------------------------------------------------------- */

/* Private data has at most 256 bytes. */
TEST(an_invalid_hello_counts_as_another_protocol)
{
	static const struct {
		size_t at, width;
		uint16_t value;
	} rows[] = {
		{9, 1, 0},       {9, 1, WIRE_ACCEPT}, {9, 1, WIRE_REJECT}, {9, 1, WIRE_REJECT + 1},
		{9, 1, 127},     {9, 1, 255},         {10, 2, 257},        {10, 2, 0x7fff},
		{10, 2, 0x8000}, {10, 2, 0xffff},
	};
	uint8_t data[WIRE_HELLO_MOST] = {0};
	struct raw_bytes bytes = {0};

	raw_add_hello(&bytes, WIRE_CONNECT, data, PROV_CM_DATA_MAX);
	visit(bytes.bytes, bytes.length, LEAVES_CLOSED);
	assert_int_equal(service_refused(), 0);
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct raw_bytes spoilt = bytes;

		memcpy(spoilt.bytes + rows[i].at, &rows[i].value, rows[i].width);
		visit(spoilt.bytes, spoilt.length, LEAVES_CLOSED);
		assert_int_equal(service.pep->base.ended[PLX_ADMIT_STRANGER], i + 1);
	}
	service_expect_calm();
}

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

/* Any bytes ----------------------------------------------------------------------------------- */

static uint64_t seed;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* After a valid start of that many bytes. */
static void visit_with_random(size_t begin)
{
	struct raw_bytes bytes = {0};
	size_t count = 1 + next_random() % 300;

	raw_add(&bytes, session.all.bytes, begin);
	for (size_t i = 0; i < count; i++) {
		uint8_t byte = (uint8_t)next_random();

		raw_add(&bytes, &byte, 1);
	}
	visit(bytes.bytes, bytes.length, (enum leaving)(next_random() % 3));
}

TEST(random_bytes_do_no_harm_in_any_state)
{
	static const size_t inside[] = {0, 3, 8, 9, 10, 12, 16, 18};

	seed = 0x9e3779b97f4a7c15;
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < PLX_ARRAY_LEN(inside); i++)
			visit_with_random(inside[i]);
		for (size_t i = 0; i < PLX_ARRAY_LEN(session.frames); i++) {
			visit_with_random(session.frames[i]);
			visit_with_random(session.frames[i] - 1);
		}
	}
	service_expect_calm();
}

/* Many ---------------------------------------------------------------------------------------- */

TEST(a_storm_of_resets_leaks_nothing)
{
	for (int round = 0; round < 20; round++) {
		uint64_t before = service.accepted + service_refused();
		int fds[SERVICE_ENDPOINTS - 1];
		size_t length = (size_t)round * session.all.length / 20;

		for (size_t i = 0; i < PLX_ARRAY_LEN(fds); i++) {
			fds[i] = raw_connect(&service.address);
			if (length)
				raw_send(fds[i], session.all.bytes, length);
			if (i % 3 == 0)
				service_turn();
		}
		for (size_t i = 0; i < PLX_ARRAY_LEN(fds); i++)
			raw_reset(fds[i]);
		/* Some of them have already disconnected when they are accepted. */
		service_until(service.accepted + service_refused() == before + PLX_ARRAY_LEN(fds));
		service_expect_calm();
	}
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
	service_until(raw_has_ended(silent) && raw_has_ended(drip));
	close(silent);
	service_leave(drip);
}

TEST(a_silent_peer_too_many_evicts_the_oldest)
{
	int alone, crowd[4];

	service.pep->base.handshakes_max = 3;
	for (size_t i = 0; i < PLX_ARRAY_LEN(crowd); i++) {
		crowd[i] = raw_connect_from("127.0.0.2", &service.address);
		service_until(service.pep->base.silent_count +
				      service.pep->base.ended[PLX_ADMIT_EVICTED] ==
			      i + 1);
	}
	alone = raw_connect_from("127.0.0.3", &service.address);
	service_until(service.pep->base.ended[PLX_ADMIT_EVICTED] == 2);
	assert_true(raw_has_ended(crowd[0]) && raw_has_ended(crowd[1]));
	assert_false(raw_has_ended(crowd[2]) || raw_has_ended(crowd[3]) || raw_has_ended(alone));
	raw_send(alone, session.all.bytes, session.all.length);
	session_expect_answer(alone);
	close(alone);
	for (size_t i = 0; i < PLX_ARRAY_LEN(crowd); i++)
		close(crowd[i]);
	service_expect_calm();
}

PLX_TEST_MAIN()
