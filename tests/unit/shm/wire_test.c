/* SPDX-License-Identifier: BSD-3-Clause */
/* Handshake messages: valid and malicious ones. And who sent them: users without a number, and a
 * process other than the one that connected. */
#include "count.h"
#include "shm.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

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
static uint8_t data[PROV_CM_DATA_MAX];
static uint32_t length;
static enum wire_kind kind;
static int descriptors, mappings;

static int setup(void **state)
{
	struct sockaddr_in *address = (struct sockaddr_in *)&half.address;

	shm_params.has_group = false;
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
	if (ends[1] >= 0)
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

TEST(private_data_arrives)
{
	static const size_t lengths[] = {1, 255, PROV_CM_DATA_MAX};
	uint8_t sent[PROV_CM_DATA_MAX];

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (uint8_t)(i * 7);
	for (size_t i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		pass(WIRE_ACCEPT, &half, sent, lengths[i]);
		offer_release(&offer);
	}
	assert_int_equal(wire_send(ends[0], WIRE_ACCEPT, &half, sent, PROV_CM_DATA_MAX + 1),
			 -FI_EINVAL);
}

TEST(a_refusal_carries_only_its_data)
{
	pass(WIRE_REJECT, NULL, "no", 2);
	assert_null(offer.segment.control);
	assert_null(offer.bell);
}

TEST(an_ipv6_address_arrives)
{
	struct sockaddr_in6 *address = (struct sockaddr_in6 *)&half.address;

	*address = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = htons(1), .sin6_addr = in6addr_loopback};
	pass(WIRE_CONNECT, &half, "", 0);
	assert_memory_equal(&offer.address, address, sizeof(*address));
	offer_release(&offer);
	memset(&half.address, 0, sizeof(half.address));
}

TEST(an_empty_socket_returns_eagain)
{
	assert_int_equal(receive(), -FI_EAGAIN);
}

TEST(a_disconnect_is_reported)
{
	shutdown(ends[0], SHUT_RDWR);
	assert_int_equal(receive(), -FI_ENOTCONN);
	assert_int_equal(wire_send(ends[1], WIRE_REJECT, NULL, NULL, 0), -FI_ENOTCONN);
}

TEST(a_full_socket_returns_eagain)
{
	int rc;

	do {
		rc = wire_send(ends[0], WIRE_REJECT, NULL, data, sizeof(data));
	} while (rc == 0);
	assert_int_equal(rc, -FI_EAGAIN);
}

/* Malicious messages ------------------------------------------------------------------------ */

static uint8_t good[MESSAGE_BYTES + PROV_CM_DATA_MAX];

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

TEST(the_unmodified_message_is_valid)
{
	send_good_as(make_good(), 2);
	assert_int_equal(receive(), 0);
	offer_release(&offer);
}

static void spoil(size_t at, uint64_t value, size_t width)
{
	size_t bytes = make_good();

	memcpy(good + at, &value, width);
	send_good_as(bytes, 2);
	expect(FI_EINVAL);
}

TEST(an_invalid_field_is_refused)
{
	spoil(AT_MAGIC, 0, 4);
	spoil(AT_VERSION, 0, 2);
	spoil(AT_VERSION, 1, 2);
	spoil(AT_VERSION, 3, 2);
	spoil(AT_KIND, 0, 2);
	spoil(AT_KIND, 4, 2);
	spoil(AT_KIND, 0xffff, 2);
	spoil(AT_DATA_BYTES, 3, 4);
	spoil(AT_DATA_BYTES, 5, 4);
	spoil(AT_DATA_BYTES, UINT32_MAX, 4);
	spoil(AT_RING_BYTES, 0, 4);
	spoil(AT_RING_BYTES, 2 * RING, 4);
	spoil(AT_RING_BYTES, RING + 1, 4);
	spoil(AT_RING_BYTES, UINT32_MAX, 4);
	spoil(AT_BELL_BIT, BELL_BITS, 4);
	spoil(AT_BELL_BIT, UINT32_MAX, 4);
	spoil(AT_ADDRESS_BYTES, 0, 4);
	spoil(AT_ADDRESS_BYTES, sizeof(struct sockaddr_in6), 4);
	spoil(AT_ADDRESS_BYTES, UINT32_MAX, 4);
	spoil(AT_ADDRESS, AF_UNIX, 2);
	spoil(AT_ADDRESS, AF_INET6, 2);
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

TEST(a_refusal_with_descriptors_is_refused)
{
	size_t bytes = make_good();

	good[AT_KIND] = WIRE_REJECT;
	send_good_as(bytes, 2);
	expect(FI_EINVAL);
}

/* It looks like the end of the connection. */
TEST(an_empty_message_with_descriptors_leaves_none)
{
	send_good_as(0, 2);
	expect(FI_ENOTCONN);
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
	expect_fds_refused(half.segment_fd, half.segment_fd);
	expect_fds_refused(half.segment_fd, ends[0]);
	close(unsealed);
	close(pipes[0]);
	close(pipes[1]);
}

TEST(unread_descriptors_are_closed_with_the_socket)
{
	send_good_as(make_good(), 2);
	close(ends[1]); /* teardown counts */
	ends[1] = -1;
}

/* Another user ------------------------------------------------------------------------------ */

static struct sockaddr_un name;
static socklen_t name_bytes;
static uint64_t probe = 0x0123456789abcdef; /* at the same address in a child */

static int listen_here(void)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	name = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* A free name. */
	assert_int_equal(bind(listener, (const struct sockaddr *)&name, sizeof(sa_family_t)), 0);
	name_bytes = sizeof(name);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &name_bytes), 0);
	assert_int_equal(listen(listener, 1), 0);
	return listener;
}

/* In a child. */
static int connect_there(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (connect(fd, (const struct sockaddr *)&name, name_bytes))
		_exit(1);
	return fd;
}

/* Never returns: a process of another user that sends a valid message. */
static void be_stranger(gid_t group)
{
	if (setgroups(1, &group) || setgid(65534) || setuid(65534) ||
	    wire_send(connect_there(), WIRE_CONNECT, &half, NULL, 0))
		_exit(1);
	pause();
	_exit(1);
}

/* The result of wire_receive for a message from another user's process. */
static int hear_stranger(gid_t group)
{
	int listener = listen_here(), fd, rc;
	pid_t stranger;

	stranger = fork();
	if (stranger == 0)
		be_stranger(group);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	do {
		rc = wire_receive(fd, &kind, &offer, data, &length);
	} while (rc == -FI_EAGAIN);
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
	close(fd);
	close(listener);
	return rc;
}

TEST(another_user_is_refused)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(hear_stranger(4242), -FI_EACCES);
	shm_params.has_group = true;
	shm_params.group = 4243;
	assert_int_equal(hear_stranger(4242), -FI_EACCES);
}

TEST(a_member_of_the_group_is_admitted)
{
	skip_if_emulated();
	if (geteuid() != 0)
		skip();
	shm_params.has_group = true;
	shm_params.group = 4242;
	assert_int_equal(hear_stranger(4242), 0);
	offer_release(&offer);
	shm_params.group = 65534; /* its primary one */
	assert_int_equal(hear_stranger(4242), 0);
	offer_release(&offer);
}

/* Users without a number ----------------------------------------------------------------------- */

/* In a user namespace without mapped users, this process and another user look alike: 65534. */
static int judge_in_namespace(int listener)
{
	struct shm_peer peer;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0 || unshare(CLONE_NEWUSER))
		return 77;
	return peer_identify(fd, &peer) ? 1 : 0;
}

PLX_TEST(an_unmapped_user_is_not_taken_for_this_user)
{
	int listener = listen_here(), status;
	pid_t stranger, judge;

	if (geteuid() != 0) {
		close(listener);
		skip();
	}
	stranger = fork();
	if (stranger == 0) {
		if (setuid(4242))
			_exit(1);
		connect_there();
		pause();
	}
	judge = fork();
	if (judge == 0)
		_exit(judge_in_namespace(listener));
	assert_int_equal(waitpid(judge, &status, 0), judge);
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
	close(listener);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* no user namespaces here */
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A held process ------------------------------------------------------------------------------- */

static struct shm_peer peer;

/* A child that connects and stays, or leaves the socket to its own child. Returns the
 * connection. */
static int meet_child(int listener, pid_t *child_out, int go[2])
{
	char byte;
	int fd;

	assert_int_equal(pipe(go), 0);
	*child_out = fork();
	if (*child_out == 0) {
		connect_there();
		read(go[0], &byte, 1);
		if (_Fork() == 0) { /* without plx_test.h's handler: it outlives its parent */
			prctl(PR_SET_PDEATHSIG, 0);
			close(go[1]);
			read(go[0], &byte, 1); /* until the test ends */
		}
		_exit(0);
	}
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(peer_identify(fd, &peer));
	assert_int_equal(peer.pid, *child_out);
	assert_true(peer.same_user);
	peer.probe_address = (uintptr_t)&probe;
	peer.probe_value = probe;
	return fd;
}

PLX_TEST(a_held_process_is_not_confused_with_a_child_that_has_its_socket)
{
	int listener = listen_here(), go[2], fd, pidfd;
	struct pollfd hung_up = {.events = POLLRDHUP};
	pid_t child;

	skip_if_emulated();
	shm_params.cma = true;
	fd = meet_child(listener, &child, go);
	assert_true(peer_can_be_read(&peer));
	pidfd = peer_hold(fd, &peer);
	assert_true(pidfd >= 0);
	assert_true(peer_is_running(pidfd));

	/* It ends, and its child has the socket, the memory and the probe. */
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	hung_up.fd = fd;
	assert_int_equal(poll(&hung_up, 1, 0), 0);
	assert_false(peer_is_running(pidfd));
	assert_true(peer_hold(fd, &peer) < 0);
	close(pidfd);
	close(go[0]);
	close(go[1]);
	close(fd);
	close(listener);
}

/* Another process of this user has the pid by now: its memory lacks the probe. */
PLX_TEST(a_process_without_the_probe_is_not_held)
{
	int listener = listen_here(), go[2], fd, before;
	pid_t child;

	skip_if_emulated();
	shm_params.cma = true;
	fd = meet_child(listener, &child, go);
	before = count_descriptors();
	peer.probe_value ^= 1;
	assert_true(peer_hold(fd, &peer) < 0);
	assert_int_equal(count_descriptors(), before);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(go[0]);
	close(go[1]);
	close(fd);
	close(listener);
}

PLX_TEST_MAIN()
