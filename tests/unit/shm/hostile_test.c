/* SPDX-License-Identifier: BSD-3-Clause */
/* Malicious processes that know a listener's or connector's address: they cost others no
 * connection, and leave no trace. */
#include "shm_meet.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

/* A raw socket connected to the listener. */
static int connect_raw(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	socklen_t bytes = cm_socket_name(&name);

	assert_int_equal(connect(fd, (struct sockaddr *)&name, bytes), 0);
	return fd;
}

static void connect_raws(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fds[i] = connect_raw();
	cm_expect_nothing(server.eq);
}

/* A raw socket that listens where a connector looks; the passive endpoint is closed. */
static int listen_raw(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	socklen_t bytes = cm_socket_name(&name);

	close_pep();
	assert_int_equal(bind(fd, (struct sockaddr *)&name, bytes), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* It is not reported, and its socket is closed. */
static void expect_dropped(int fd)
{
	cm_expect_nothing(server.eq);
	assert_true(socket_has_ended(fd));
	assert_int_equal(cm_requests(pep), 0);
	close(fd);
}

#define TEST(name) PLX_TEST_WITH(name, setup_shm, teardown)

/* More connectors than the backlog ------------------------------------------------------------ */

static void set_backlog(int backlog)
{
	assert_int_equal(fi_control(&pep->fid, FI_BACKLOG, &backlog), 0);
}

TEST(connectors_beyond_the_backlog_wait_for_their_turn)
{
	struct fid_ep *eps[12];
	int none = 0;

	assert_int_equal(fi_control(&pep->fid, FI_BACKLOG, &none), -FI_EINVAL);
	set_backlog(2);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		eps[i] = dial("data", 4);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++) {
		while (TAILQ_EMPTY(
			&((struct prov_eq *)server.eq)->events)) { /* a waiting connector retries */
			eq_progress((struct prov_eq *)server.eq);
			eq_progress((struct prov_eq *)client.eq);
		}
		assert_int_equal(cm_wait(server.eq, FI_CONNREQ, &event), 4);
		assert_true(cm_requests(pep) <= 2);
		reject(event.cm.info, NULL, 0);
		assert_int_equal(cm_wait_error(client.eq).err, FI_ECONNREFUSED);
	}
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		close_ep(eps[i]);
}

/* Fill the kernel's queue of a listener, so that the next connectors must wait. */
static void fill_backlog(struct fid_ep **eps, size_t count)
{
	set_backlog(1);
	for (size_t i = 0; i < count; i++)
		eps[i] = dial(NULL, 0);
	assert_non_null(((struct shm_ep *)eps[count - 1])->base.dial);
}

TEST(a_waiting_connector_is_refused_when_the_listener_closes)
{
	struct fid_ep *eps[6];

	fill_backlog(eps, PLX_ARRAY_LEN(eps));
	close_pep();
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		assert_int_equal(cm_wait_error(client.eq).err, FI_ECONNREFUSED);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		close_ep(eps[i]);
}

/* Against a listener -------------------------------------------------------------------------- */

TEST(garbage_and_messages_of_another_kind_are_dropped)
{
	static const char garbage[4096] = "Z";
	int fd = connect_raw();

	assert_int_equal(send(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	expect_dropped(fd);
	fd = connect_raw();
	assert_int_equal(wire_send(fd, WIRE_REJECT, NULL, NULL, 0), 0);
	expect_dropped(fd);
	for (int i = 0; i < 40; i++)
		close(connect_raw());
	for (int i = 0; i < 10; i++)
		cm_expect_nothing(server.eq);
	assert_int_equal(cm_requests(pep), 0);
	meet_once();
}

/* Let all deadlines pass now. */
static void let_time_pass(void)
{
	struct prov_eq *eq = (struct prov_eq *)server.eq;
	struct itimerspec now = {.it_value.tv_nsec = 1};
	struct prov_deadline *deadline;

	TAILQ_FOREACH (deadline, &eq->deadlines, link)
		deadline->at_ns = 1;
	assert_int_equal(timerfd_settime(eq->timer.fd, 0, &now, NULL), 0);
	usleep(1000);
	cm_expect_nothing(server.eq);
}

TEST(a_silent_peer_is_dropped_after_a_timeout)
{
	int fds[3];

	connect_raws(fds, PLX_ARRAY_LEN(fds));
	assert_int_equal(cm_requests(pep), PLX_ARRAY_LEN(fds));
	let_time_pass();
	assert_int_equal(cm_requests(pep), 0);
	for (size_t i = 0; i < PLX_ARRAY_LEN(fds); i++) {
		assert_true(socket_has_ended(fds[i]));
		close(fds[i]);
	}
	meet_once();
}

/* A listener that cannot accept must not spin; it continues as soon as it can. */
TEST(a_listener_without_descriptors_waits_for_some)
{
	const struct prov_pep *listener = (struct prov_pep *)pep;
	int fd = connect_raw(), lowest = dup(fd);
	struct rlimit before, none;

	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(eq_progress((struct prov_eq *)server.eq), 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(cm_wait_error(server.eq).err, EMFILE);
	assert_int_not_equal(listener->resume.at_ns, 0);
	assert_int_equal(eq_arm((struct prov_eq *)server.eq), 0);
	let_time_pass();
	assert_int_equal(listener->resume.at_ns, 0);
	assert_int_equal(cm_requests(pep), 1);
	close(fd);
	meet_once();
}

/* Against a connector ------------------------------------------------------------------------- */

static void expect_failure(struct fid_ep *ep, int err)
{
	struct fi_eq_err_entry error = cm_wait_error(client.eq);

	assert_ptr_equal(error.fid, &ep->fid);
	assert_int_equal(error.err, err);
	cm_expect_nothing(client.eq);
	close_ep(ep);
}

TEST(a_listener_that_disconnects_refuses_the_request)
{
	int fd = listen_raw();
	struct fid_ep *ep = dial(NULL, 0), *second = dial(NULL, 0);

	close(accept4(fd, NULL, NULL, SOCK_CLOEXEC)); /* with the message unread */
	assert_int_equal(cm_wait_error(client.eq).err, FI_ECONNREFUSED);
	close_ep(ep);
	close(fd);
	expect_failure(second, FI_ECONNREFUSED);
}

TEST(an_invalid_answer_ends_the_attempt)
{
	int fd = listen_raw(), peer;
	struct fid_ep *ep = dial(NULL, 0);

	peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(send(peer, "hello", 5, 0), 5);
	expect_failure(ep, FI_EINVAL);
	close(peer);
	close(fd);
}

/* Another user -------------------------------------------------------------------------------- */

static void become_stranger(void)
{
	gid_t group = 65534;

	if (setgroups(1, &group) || setgid(group) || setuid(65534))
		_exit(1);
}

TEST(a_request_of_another_user_is_not_reported)
{
	pid_t stranger;
	int status;

	if (geteuid() != 0)
		skip();
	stranger = fork();
	if (stranger == 0) {
		become_stranger();
		/* The listener hangs up without a message. */
		_exit(recv(connect_raw(), &status, sizeof(status), 0) == 0 ? 0 : 2);
	}
	do {
		cm_expect_nothing(server.eq);
		assert_int_equal(cm_requests(pep), 0);
	} while (waitpid(stranger, &status, WNOHANG) == 0);
	assert_int_equal(status, 0);
}

TEST(a_listener_of_another_user_receives_nothing)
{
	struct fid_ep *ep = side_ep(&client, client.info);
	int ready[2], fd, status;
	pid_t stranger;
	char byte;

	if (geteuid() != 0) {
		close_ep(ep);
		skip();
	}
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	fd = listen_raw();
	stranger = fork();
	if (stranger == 0) {
		become_stranger();
		listen(fd, 8); /* that user's from now on */
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		_exit(recv(fd, &byte, 1, 0) == 0 ? 0 : 2);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(fi_connect(ep, &address, NULL, 0), -FI_EACCES);
	assert_int_equal(waitpid(stranger, &status, 0), stranger);
	assert_int_equal(status, 0);
	close_ep(ep);
	close(ready[0]);
	close(ready[1]);
	close(fd);
}

PLX_TEST_MAIN()
