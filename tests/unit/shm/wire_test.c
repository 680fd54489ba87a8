/* SPDX-License-Identifier: BSD-3-Clause */
/* Handshake messages: valid and malicious ones. */
#include "count.h"
#include "shm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define RING SEGMENT_RING_BYTES_MIN

/* Offsets of a message's fields. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_KIND = 6,
	AT_DATA_BYTES = 8,
	AT_RING_BYTES = 12,
	AT_BELL_BIT = 16,
	AT_ADDRESS_BYTES = 20,
	AT_ADDRESS = 40,
	MESSAGE_BYTES = 72,
};

static int ends[2]; /* a socket pair: what is sent on the first arrives at the second */
static struct segment segment;
static struct bell *bell;
static struct wire_half half;
static struct shm_offer offer;
static uint8_t data[PROV_CM_DATA_MAX], good[MESSAGE_BYTES + PROV_CM_DATA_MAX];
static uint32_t length;
static enum wire_kind kind;
static int descriptors, mappings;

static int setup(void **state)
{
	struct sockaddr_in *address = (struct sockaddr_in *)&half.address;

	descriptors = count_descriptors();
	mappings = count_mappings();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(segment_create(RING, &segment, &half.segment_fd), 0);
	assert_int_equal(bell_create(&bell, &half.bell_fd), 0);
	half.ring_bytes = RING;
	half.bell_bit = 17;
	half.probe_address = 0x1234;
	half.probe_value = 0x5678;
	address->sin_family = AF_INET;
	address->sin_port = htons(4711);
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return 0;
}

/* Frees everything, then checks that nothing is left. */
static int teardown(void **state)
{
	close(ends[0]);
	close(ends[1]);
	close(half.segment_fd);
	close(half.bell_fd);
	segment_unmap(&segment);
	bell_unmap(bell);
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(count_mappings(), mappings);
	return 0;
}

static int receive(void)
{
	return wire_receive(ends[1], &kind, &offer, data, &length);
}

/* Send a valid message, which arrives. */
static void pass(enum wire_kind sent_kind, const struct wire_half *sent_half, const void *sent,
		 size_t sent_length)
{
	assert_int_equal(wire_send(ends[0], sent_kind, sent_half, sent, sent_length), 0);
	assert_int_equal(receive(), 0);
	assert_int_equal(kind, sent_kind);
	assert_int_equal(length, sent_length);
	assert_memory_equal(data, sent, sent_length);
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

/* Valid messages ---------------------------------------------------------------------------- */

TEST(an_offer_arrives_complete)
{
	pass(WIRE_CONNECT, &half, "", 0);
	assert_int_equal(offer.bell_bit, 17);
	assert_int_equal(offer.peer.probe_address, 0x1234);
	assert_int_equal(offer.peer.probe_value, 0x5678);
	assert_int_equal(offer.peer.pid, getpid());
	assert_true(offer.peer.same_user);
	assert_memory_equal(&offer.address, &half.address, sizeof(half.address));
	assert_int_equal(offer.segment.ring_bytes, RING);
	offer.segment.ring[5] = 9;
	assert_int_equal(segment.ring[5], 9);
	atomic_store(&offer.bell->summary, 1);
	assert_int_equal(atomic_load(&bell->summary), 1);
	offer_release(&offer);
}

TEST(a_refusal_carries_only_its_data)
{
	pass(WIRE_REJECT, NULL, "no", 2);
	assert_null(offer.segment.control);
	assert_null(offer.bell);
	assert_int_equal(wire_send(ends[0], WIRE_REJECT, NULL, good, PROV_CM_DATA_MAX + 1),
			 -FI_EINVAL);
}

/* Malicious messages ------------------------------------------------------------------------ */

/* A valid message, to be corrupted. */
static size_t make_good(void)
{
	ssize_t bytes;

	assert_int_equal(wire_send(ends[0], WIRE_CONNECT, &half, "data", 4), 0);
	bytes = recv(ends[1], good, sizeof(good), 0);
	assert_int_equal(bytes, MESSAGE_BYTES + 4);
	return (size_t)bytes;
}

static void send_raw(const void *message, size_t bytes, const int *fds, size_t count)
{
	union {
		struct cmsghdr header;
		uint8_t room[CMSG_SPACE(8 * sizeof(int))];
	} control = {.room = {0}};
	struct iovec part = {(void *)message, bytes};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (count) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	}
	assert_int_equal(sendmsg(ends[0], &header, 0), bytes);
}

static void send_good_as(size_t bytes, size_t fd_count)
{
	const int fds[8] = {half.segment_fd, half.bell_fd, half.bell_fd, half.bell_fd,
			    half.bell_fd,    half.bell_fd, half.bell_fd, half.bell_fd};

	send_raw(good, bytes, fds, fd_count);
}

/* Refused, and everything that came with it is released at once. */
static void expect(int err)
{
	int before = count_descriptors(), mapped = count_mappings();

	assert_int_equal(receive(), -err);
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(count_mappings(), mapped);
	assert_null(offer.segment.control);
	assert_null(offer.bell);
}

TEST(an_invalid_field_is_refused)
{
	static const struct {
		size_t at, width;
		uint64_t value;
	} rows[] = {
		{AT_MAGIC, 4, 0},
		{AT_VERSION, 2, 0},
		{AT_VERSION, 2, 2},
		{AT_VERSION, 2, 4},
		{AT_KIND, 2, 0},
		{AT_KIND, 2, 4},
		{AT_KIND, 2, WIRE_REJECT}, /* which has no descriptors */
		{AT_DATA_BYTES, 4, 3},
		{AT_DATA_BYTES, 4, UINT32_MAX},
		{AT_RING_BYTES, 4, 0},
		{AT_RING_BYTES, 4, 2 * RING},
		{AT_RING_BYTES, 4, UINT32_MAX},
		{AT_BELL_BIT, 4, BELL_BITS},
		{AT_ADDRESS_BYTES, 4, 0},
		{AT_ADDRESS_BYTES, 4, sizeof(struct sockaddr_in6)},
		{AT_ADDRESS_BYTES, 4, UINT32_MAX},
		{AT_ADDRESS, 2, AF_UNIX},
		{AT_ADDRESS, 2, AF_INET6},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		size_t bytes = make_good();

		memcpy(good + rows[i].at, &rows[i].value, rows[i].width);
		send_good_as(bytes, 2);
		expect(FI_EINVAL);
	}
}

TEST(a_message_that_is_too_short_is_refused)
{
	size_t bytes = make_good();

	for (size_t i = 1; i < bytes; i++) {
		send_good_as(i, 2);
		expect(FI_EINVAL);
	}
}

TEST(a_message_that_is_too_long_is_refused)
{
	uint8_t huge[MESSAGE_BYTES + PROV_CM_DATA_MAX + 1] = {0};
	const uint32_t data_bytes = PROV_CM_DATA_MAX + 1;
	const int fds[] = {half.segment_fd, half.bell_fd};

	memcpy(huge, good, make_good());
	memcpy(huge + AT_DATA_BYTES, &data_bytes, sizeof(data_bytes));
	send_raw(huge, sizeof(huge), fds, 2);
	expect(FI_EINVAL);
	send_raw(huge, sizeof(huge) - 1, fds, 2);
	expect(FI_EINVAL);
}

TEST(too_few_or_too_many_descriptors_are_refused)
{
	size_t bytes = make_good();

	skip_if_emulated();
	for (size_t count = 0; count <= 8; count++) {
		if (count == 2)
			continue;
		send_good_as(bytes, count);
		expect(FI_EINVAL);
	}
}

static void expect_fds_refused(int first, int second)
{
	const int fds[] = {first, second};

	send_raw(good, make_good(), fds, 2);
	expect(FI_EINVAL);
}

TEST(descriptors_of_another_type_are_refused)
{
	int unsealed = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int pipes[2];

	assert_int_equal(ftruncate(unsealed, SEGMENT_CONTROL_BYTES + RING), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	expect_fds_refused(unsealed, half.bell_fd);
	expect_fds_refused(pipes[0], half.bell_fd);
	expect_fds_refused(half.bell_fd, half.segment_fd);
	expect_fds_refused(half.segment_fd, pipes[1]); /* the ring is unmapped again */
	expect_fds_refused(half.segment_fd, ends[0]);
	close(unsealed);
	close(pipes[0]);
	close(pipes[1]);
}

PLX_TEST_MAIN()
