/* SPDX-License-Identifier: BSD-3-Clause */
/* Who sent a handshake message: another user, one without a number, or a process other than the one
 * that connected. */
#include "count.h"
#include "shm.h"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* A listening socket with a free name, which children connect to. */
static int listener;
static struct sockaddr_un name;
static socklen_t name_bytes;

static int setup(void **state)
{
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	name = (struct sockaddr_un){.sun_family = AF_UNIX};
	assert_int_equal(bind(listener, (const struct sockaddr *)&name, sizeof(sa_family_t)), 0);
	name_bytes = sizeof(name);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &name_bytes), 0);
	shm_params.has_group = false;
	shm_params.cma = true;
	return listen(listener, 1);
}

static int teardown(void **state)
{
	return close(listener);
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

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

/* Another user --------------------------------------------------------------------------------- */

/* A process of that user, which sends a valid message and waits. */
static pid_t start_stranger(uid_t user, gid_t group)
{
	pid_t stranger = fork();

	if (stranger)
		return stranger;
	if (setgroups(1, &group) || setgid(65534) || setuid(user) ||
	    wire_send(connect_there(), WIRE_REJECT, NULL, NULL, 0))
		_exit(1);
	pause();
	_exit(1);
}

static void expect_of_stranger(gid_t group, int expected)
{
	pid_t stranger = start_stranger(65534, group);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), rc;
	uint8_t data[PROV_CM_DATA_MAX];
	struct shm_offer offer;
	enum wire_kind kind;
	uint32_t length;

	assert_true(fd >= 0);
	do {
		rc = wire_receive(fd, &kind, &offer, data, &length);
	} while (rc == -FI_EAGAIN);
	assert_int_equal(rc, expected);
	end_child(stranger);
	close(fd);
}

TEST(another_user_is_refused_unless_it_is_a_member_of_the_group)
{
	skip_if_emulated();
	if (geteuid() != 0)
		skip();
	expect_of_stranger(4242, -FI_EACCES);
	shm_params.has_group = true;
	shm_params.group = 4243;
	expect_of_stranger(4242, -FI_EACCES);
	shm_params.group = 4242;
	expect_of_stranger(4242, 0);
	shm_params.group = 65534; /* its primary one */
	expect_of_stranger(4242, 0);
}

/* In a user namespace without mapped users, this process and another user look alike: 65534. */
static int judge_in_namespace(void)
{
	struct shm_peer peer;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0 || unshare(CLONE_NEWUSER))
		return 77;
	return peer_identify(fd, &peer) ? 1 : 0;
}

TEST(an_unmapped_user_is_not_taken_for_this_user)
{
	pid_t stranger, judge;
	int status;

	if (geteuid() != 0)
		skip();
	stranger = start_stranger(4242, 4242);
	judge = fork();
	if (judge == 0)
		_exit(judge_in_namespace());
	assert_int_equal(waitpid(judge, &status, 0), judge);
	end_child(stranger);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* no user namespaces here */
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A held process ------------------------------------------------------------------------------- */

static uint64_t probe = 0x0123456789abcdef; /* at the same address in a child */
static struct shm_peer peer;

/* A child that connects and stays, or leaves the socket to its own child. Returns the
 * connection. */
static int meet_child(pid_t *child_out, int go[2])
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

static ssize_t read_word(uint64_t *word_out)
{
	static uint64_t theirs = 17;
	struct iovec to[2] = {{word_out, sizeof(*word_out)}}, from[2] = {{&theirs, sizeof(theirs)}};

	return peer_read(&peer, to, 1, from, 1);
}

TEST(a_process_is_not_confused_with_a_child_that_has_its_socket)
{
	struct pollfd hung_up = {.events = POLLRDHUP};
	uint64_t word = 0;
	int go[2], fd;
	pid_t child;

	skip_if_emulated();
	fd = meet_child(&child, go);
	assert_true(peer_can_be_read(&peer));
	assert_int_equal(read_word(&word), sizeof(word));
	assert_int_equal(word, 17);

	/* It ends, and its child has the socket, the memory and the probe. */
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	hung_up.fd = fd;
	assert_int_equal(poll(&hung_up, 1, 0), 0);
	assert_int_equal(read_word(&word), -ESRCH);
	close(go[0]);
	close(go[1]);
	close(fd);
}

TEST(memory_without_the_probe_is_not_the_peers)
{
	uint64_t word = 0;
	int go[2], fd;
	pid_t child;

	skip_if_emulated();
	fd = meet_child(&child, go);
	peer.probe_value++;
	assert_false(peer_can_be_read(&peer));
	assert_int_equal(read_word(&word), -ESRCH);
	peer.probe_address = 1;
	assert_true(read_word(&word) < 0);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(go[0]);
	close(go[1]);
	close(fd);
}

PLX_TEST_MAIN()
