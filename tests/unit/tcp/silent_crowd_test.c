/* SPDX-License-Identifier: BSD-3-Clause */
/* A host that opens thousands of silent connections, while another one wants service. */
#include "tcp_service.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define CROWD        10000
#define SPARE        100 /* descriptors for everything else */
#define CLIENTS      20
#define LATENCY_MAX  PLX_NS_PER_S
#define CROWD_NS_MAX (60 * PLX_NS_PER_S) /* for all of it to connect */
/* A pause of 1 ms after every few connections: a service slowed by a sanitizer keeps up, and the
 * kernel's queue never turns a client away. */
#define JOINS_A_MS 5

static void raise_limit(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < CROWD + SPARE)
		skip();
}

/* One more connection. */
static int join(void)
{
	static const struct timespec pause = {.tv_nsec = PLX_NS_PER_MS};
	static int joins;
	struct sockaddr_in from = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	inet_pton(AF_INET, "127.0.0.2", &from.sin_addr);
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof(from)))
		_exit(1);
	if (connect(fd, (struct sockaddr *)&service.address, sizeof(from)) && errno != EINPROGRESS)
		_exit(2);
	if (++joins % JOINS_A_MS == 0)
		nanosleep(&pause, NULL);
	return fd;
}

/* Open all, and reopen any that the service closes, until killed. */
static void attack(int told)
{
	static int fds[CROWD];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < CROWD; i++)
		fds[i] = join();
	if (write(told, "x", 1) != 1)
		_exit(3);
	for (int i = 0;; i = (i + 1) % CROWD) {
		if (!raw_has_ended(fds[i]))
			continue;
		close(fds[i]);
		fds[i] = join();
	}
}

static pid_t start_attack(int *told_out)
{
	int told[2];
	pid_t pid;

	assert_int_equal(pipe2(told, O_CLOEXEC | O_NONBLOCK), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		attack(told[1]);
	close(told[1]);
	*told_out = told[0];
	return pid;
}

/* Return: how long connecting and being served took. */
static uint64_t be_served(void)
{
	uint64_t begin_ns = queue_now_ns();
	struct raw_bytes bytes = {0};
	uint8_t answer[64];
	size_t have = 0;
	int fd = raw_connect_from("127.0.0.1", &service.address);

	raw_add_hello(&bytes, WIRE_CONNECT, NULL, 0);
	raw_add_message(&bytes, "serve me");
	raw_send(fd, bytes.bytes, bytes.length);
	service_until((have += raw_receive(fd, answer + have, sizeof(answer) - have)) ==
		      WIRE_HELLO_BYTES + WIRE_FRAME_BYTES + 8);
	close(fd);
	return queue_now_ns() - begin_ns;
}

SERVICE_TEST(a_client_is_served_despite_a_crowd_of_silent_connections)
{
	uint64_t worst_ns = 0, end_ns = queue_now_ns() + CROWD_NS_MAX;
	int told, status;
	char byte;
	pid_t pid;

	raise_limit();
	pid = start_attack(&told);
	while (read(told, &byte, 1) != 1) {
		assert_true(queue_now_ns() < end_ns);
		service_turn();
	}
	for (int i = 0; i < CLIENTS; i++) {
		uint64_t ns = be_served();

		worst_ns = ns > worst_ns ? ns : worst_ns;
		service_until(service.visitor_count == 1);
		service_expect_echo();
		assert_true(service.pep->base.silent_count <= service.pep->base.handshakes_max);
	}
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0); /* it is still running */
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(told);
	print_message(
		"%llu connections evicted, %llu too late; a client served in at most %llu us\n",
		(unsigned long long)service.pep->base.ended[PLX_ADMIT_EVICTED],
		(unsigned long long)service.pep->base.ended[PLX_ADMIT_SILENT],
		(unsigned long long)worst_ns / PLX_NS_PER_US);
	assert_true(service.pep->base.ended[PLX_ADMIT_EVICTED] >=
		    CROWD - service.pep->base.handshakes_max);
	assert_true(worst_ns < LATENCY_MAX);
	service_expect_calm();
}

PLX_TEST_MAIN()
