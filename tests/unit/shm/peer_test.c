/* SPDX-License-Identifier: BSD-3-Clause */
/* Identifying the peer: users without a number, and a process other than the one that connected. */
#include "count.h"
#include "shm.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

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

PLX_TEST(a_user_without_a_number_is_not_taken_for_this_one)
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
		if (fork() == 0) {
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

PLX_TEST(a_process_is_held_and_not_a_child_that_has_its_socket)
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
PLX_TEST(who_does_not_have_the_probe_is_not_held)
{
	int listener = listen_here(), go[2], fd, descriptors;
	pid_t child;

	skip_if_emulated();
	shm_params.cma = true;
	fd = meet_child(listener, &child, go);
	descriptors = count_descriptors();
	peer.probe_value ^= 1;
	assert_true(peer_hold(fd, &peer) < 0);
	assert_int_equal(count_descriptors(), descriptors);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(go[0]);
	close(go[1]);
	close(fd);
	close(listener);
}

PLX_TEST_MAIN()
