/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners that answer a connector with anything, or nothing: the attempt fails in time, with the
 * reason, and the rest of the process continues. */
#include "tcp_service.h"

static struct side dialer;
static int listener;
static struct sockaddr_storage address; /* of the listener */
static uint8_t receive_buf[64];

static void open_listener(void)
{
	struct sockaddr_in *name = (struct sockaddr_in *)&address;
	socklen_t bytes = sizeof(address);

	*name = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)name, sizeof(*name)), 0);
	assert_int_equal(listen(listener, 64), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
}

static int setup(void **state)
{
	service_setup(state);
	side_open(&dialer, service_info("1", 0));
	open_listener();
	return 0;
}

static int teardown(void **state)
{
	close(listener);
	side_close(&dialer);
	return service_teardown(state);
}

static struct fid_ep *dial(void)
{
	struct fid_ep *ep = service_ep(&dialer, dialer.info, NULL);

	assert_fi_works(fi_recv(ep, receive_buf, sizeof(receive_buf), NULL, FI_ADDR_UNSPEC, NULL));
	assert_int_equal(fi_connect(ep, &address, "who", 3), 0);
	return ep;
}

static int accept_raw(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Also drives the connector's queue. Return: bytes, or an error. */
static ssize_t read_event(uint32_t *number_out)
{
	union cm_event event;
	struct fi_cq_data_entry completion;
	struct fi_cq_err_entry error = {0};

	if (fi_cq_read(dialer.rx_cq, &completion, 1) == -FI_EAVAIL)
		fi_cq_readerr(dialer.rx_cq, &error, 0);
	return fi_eq_read(dialer.eq, number_out, &event, sizeof(event), 0);
}

/* Return: the event number; 0: the attempt failed. */
static uint32_t next_event(void)
{
	uint32_t number = 0;
	ssize_t got;

	service_until((got = read_event(&number)) != -FI_EAGAIN);
	assert_true(got > 0 || got == -FI_EAVAIL);
	return got == -FI_EAVAIL ? 0 : number;
}

static void close_ep(struct fid_ep *ep)
{
	assert_int_equal(fi_close(&ep->fid), 0);
	service_expect_echo();
}

/* The attempt fails for that reason, with that private data. */
static void expect_failure(struct fid_ep *ep, int err, const void *data, size_t length)
{
	uint8_t room[PROV_CM_DATA_MAX];
	struct fi_eq_err_entry error = {.err_data = room, .err_data_size = sizeof(room)};

	assert_int_equal(next_event(), 0);
	assert_true(fi_eq_readerr(dialer.eq, &error, 0) > 0);
	assert_ptr_equal(error.fid, &ep->fid);
	assert_int_equal(error.err, err);
	assert_int_equal(error.err_data_size, length);
	if (length)
		assert_memory_equal(error.err_data, data, length);
	close_ep(ep);
}

/* The listener answers with these bytes and closes the connection. */
static struct fid_ep *answer(const void *bytes, size_t length, bool resets)
{
	struct fid_ep *ep = dial();
	int fd = accept_raw();
	uint8_t hello[WIRE_HELLO_MOST];
	uint32_t number;

	while (!raw_receive(fd, hello, sizeof(hello)))
		assert_int_equal(read_event(&number), -FI_EAGAIN);
	if (length)
		raw_send(fd, bytes, length);
	if (resets)
		raw_reset(fd);
	else
		close(fd);
	return ep;
}

static void expect_refused_by(const void *bytes, size_t length)
{
	expect_failure(answer(bytes, length, false), FI_ECONNREFUSED, NULL, 0);
}

/* An answer of that kind, with private data. */
static struct raw_bytes hello_of(enum wire_hello_kind kind, const char *data)
{
	struct raw_bytes bytes = {0};

	raw_add_hello(&bytes, kind, data, strlen(data));
	return bytes;
}

/* It may connect, and must close. Return: whether it was connected. */
static bool was_connected(struct fid_ep *ep)
{
	struct fi_eq_err_entry error = {0};
	bool was = next_event() == FI_CONNECTED;

	if (was)
		assert_int_equal(next_event(), FI_SHUTDOWN);
	else
		assert_true(fi_eq_readerr(dialer.eq, &error, 0) > 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	return was;
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

/* Refusals ------------------------------------------------------------------------------------- */

TEST(an_answer_of_another_protocol_version_or_kind_counts_as_a_refusal)
{
	static const uint8_t libfabric[16] = {3};
	struct raw_bytes accept = hello_of(WIRE_ACCEPT, ""),
			 request = hello_of(WIRE_CONNECT, "data");
	uint8_t rubbish[1000];

	memset(rubbish, 0x5a, sizeof(rubbish));
	expect_refused_by(rubbish, sizeof(rubbish));
	expect_refused_by(rubbish, 1);
	expect_refused_by("HTTP/1.1 400 Bad Request\r\n\r\n", 28);
	expect_refused_by("\x15\x03\x01\x00\x02\x02\x46", 7);
	expect_refused_by(libfabric, sizeof(libfabric));
	expect_refused_by("", 0);
	expect_refused_by(request.bytes, request.length);
	accept.bytes[8] = WIRE_VERSION + 1;
	expect_refused_by(accept.bytes, accept.length);
	accept.bytes[8] = 0;
	expect_refused_by(accept.bytes, 9);
}

/* A listener without room answers before it has read anything. Bytes after it are ignored. */
TEST(a_refusal_may_arrive_before_the_request_leaves)
{
	struct raw_bytes bytes = hello_of(WIRE_REJECT, "come again");

	raw_add(&bytes, "more", 4);
	for (int resets = 0; resets < 2; resets++) {
		struct fid_ep *ep = dial();
		int fd = accept_raw();

		raw_send(fd, bytes.bytes, bytes.length);
		if (resets)
			raw_reset(fd);
		else
			close(fd);
		expect_failure(ep, FI_ECONNREFUSED, "come again", 10);
	}
}

TEST(a_refusal_with_too_much_data_has_none)
{
	struct raw_bytes bytes = {0};
	uint8_t data[WIRE_HELLO_MOST] = {0};
	uint16_t lengths[] = {PROV_CM_DATA_MAX + 1, UINT16_MAX};

	raw_add_hello(&bytes, WIRE_REJECT, data, PROV_CM_DATA_MAX);
	raw_add(&bytes, data, sizeof(data));
	for (size_t i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		memcpy(bytes.bytes + 10, &lengths[i], 2);
		expect_refused_by(bytes.bytes, bytes.length);
	}
}

TEST(a_partial_answer_counts_as_a_refusal)
{
	struct raw_bytes bytes = hello_of(WIRE_ACCEPT, "hello");

	for (size_t length = 0; length < bytes.length; length++) {
		expect_refused_by(bytes.bytes, length);
		expect_failure(answer(bytes.bytes, length, true), FI_ECONNREFUSED, NULL, 0);
	}
}

TEST(any_flipped_bit_of_an_answer_does_no_harm)
{
	struct raw_bytes bytes = hello_of(WIRE_ACCEPT, "hello");

	for (size_t bit = 0; bit < bytes.length * 8; bit++) {
		struct raw_bytes spoilt = bytes;
		size_t offset = bit / 8;

		spoilt.bytes[offset] ^= (uint8_t)(1u << bit % 8);
		/* Features and data may have any value; a shorter length leaves bytes for a frame.
		 */
		assert_int_equal(was_connected(answer(spoilt.bytes, spoilt.length, false)),
				 offset >= 12 || (offset == 10 && (bit % 8 == 0 || bit % 8 == 2)));
	}
	service_expect_echo();
}

/* Silence -------------------------------------------------------------------------------------- */

TEST(a_connect_to_a_silent_listener_times_out)
{
	uint32_t before = tcp_params.connect_ms;
	struct raw_bytes bytes = hello_of(WIRE_ACCEPT, "hello");
	struct fid_ep *ep;
	int fd;

	tcp_params.connect_ms = 20;
	expect_failure(dial(), FI_ETIMEDOUT, NULL, 0);
	close(accept_raw());
	ep = dial();
	fd = accept_raw();
	raw_send(fd, bytes.bytes, bytes.length - 1);
	expect_failure(ep, FI_ETIMEDOUT, NULL, 0);
	assert_true(raw_has_ended(fd));
	close(fd);
	tcp_params.connect_ms = before;
}

/* Connected ------------------------------------------------------------------------------------ */

/* At once, or byte by byte. */
TEST(frames_right_after_the_answer_are_received)
{
	struct raw_bytes bytes = hello_of(WIRE_ACCEPT, "");
	uint32_t number;

	raw_add_message(&bytes, "at once");
	for (size_t part = 1; part <= bytes.length; part += bytes.length - 1) {
		struct fi_cq_data_entry completion = {0};
		struct fi_eq_cm_entry entry;
		struct fid_ep *ep = dial();
		int fd = accept_raw();

		for (size_t at = 0; at < bytes.length; at += part) {
			assert_int_not_equal(fi_cq_read(dialer.rx_cq, NULL, 0), -FI_EAVAIL);
			raw_send(fd, bytes.bytes + at, part);
		}
		service_until(fi_eq_read(dialer.eq, &number, &entry, sizeof(entry), 0) ==
			      sizeof(entry));
		assert_int_equal(number, FI_CONNECTED);
		service_until(fi_cq_read(dialer.rx_cq, &completion, 1) == 1);
		assert_int_equal(completion.len, 7);
		assert_memory_equal(receive_buf, "at once", 7);
		close_ep(ep);
		close(fd);
	}
}

TEST(garbage_right_after_the_answer_ends_the_connection)
{
	struct raw_bytes bytes = hello_of(WIRE_ACCEPT, "");
	struct fid_ep *ep = dial();
	int fd = accept_raw();

	raw_add(&bytes, "rubbish, and more of it", 23);
	raw_send(fd, bytes.bytes, bytes.length);
	assert_true(was_connected(ep));
	assert_true(raw_has_ended(fd));
	assert_int_equal(side_breaches(&dialer, TCP_BREACH_FRAME), 1);
	close(fd);
	service_expect_echo();
}

PLX_TEST_MAIN()
