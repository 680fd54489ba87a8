/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that a child program inherits: none of libfabric's, and all of the application's that
 * it wants. */
#include "count.h"
#include "fabric_link.h"
#include "fabric_listen.h"
#include "fixture.h"

#include "../../../drivers/fi_tcp/fi_tcp.c" /* a private copy, for its search */

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FD_MAX  2048
#define FAR_MIN 600

static bool is_inheritable(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

static unsigned inheritable(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < FD_MAX; fd++)
		count += is_inheritable(fd);
	return count;
}

/* The test's sockets: inheritable, like libfabric's ------------------------------------------- */

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				    .sin_port = htons(port)};
}

static int listen_raw(uint16_t *port_out)
{
	struct sockaddr_in address = loopback(0);
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	*port_out = ntohs(address.sin_port);
	return fd;
}

/* One end of a connection, and the other, moved out of the way to a number of at least far_min. */
struct raw {
	int accepted, far;
	struct sockaddr_in peer; /* of accepted */
};

static struct raw connect_raw(int listener, uint16_t port, int far_min)
{
	struct sockaddr_in address = loopback(port);
	int near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(address);
	struct raw raw;

	assert_int_equal(connect(near, (struct sockaddr *)&address, len), 0);
	raw.far = fcntl(near, F_DUPFD_CLOEXEC, far_min);
	assert_true(raw.far >= far_min);
	close(near);
	raw.accepted = accept(listener, (struct sockaddr *)&raw.peer, &len);
	assert_true(raw.accepted >= 0);
	return raw;
}

static void close_raw(const struct raw *raw)
{
	forget(raw->accepted);
	close(raw->accepted);
	close(raw->far);
}

/* To a listener for it alone. */
static struct raw open_raw(uint16_t *port_out)
{
	int listener = listen_raw(port_out);
	struct raw raw = connect_raw(listener, *port_out, FAR_MIN);

	close(listener);
	return raw;
}

static int find(const struct raw *raw, uint16_t port, unsigned looks_max)
{
	return close_on_exec_accepted(port, (const struct sockaddr *)&raw->peer, sizeof(raw->peer),
				      looks_max);
}

/* Links --------------------------------------------------------------------------------------- */

static void expect_nothing_of_a_link_is_inherited(const char *provider)
{
	unsigned before = inheritable();
	struct plx_listener *listener;

	fixture_start(provider, true);
	worker_start();
	listener = fixture_listen("127.0.0.1:0", NULL);
	assert_int_equal(inheritable(), before);
	fixture_connect(listener, NULL);
	assert_int_equal(inheritable(), before);
	worker_stop();
	fixture_stop();
}

PLX_TEST(a_child_inherits_no_descriptors_of_a_link)
{
	expect_nothing_of_a_link_is_inherited("tcp");
	expect_nothing_of_a_link_is_inherited("shm");
	expect_nothing_of_a_link_is_inherited("fi:tcp");
}

/* Also by a listener for IPv6 and IPv4, which sees an IPv4 peer as another address. */
PLX_TEST(a_child_inherits_no_descriptors_of_a_link_on_another_lcore)
{
	struct plx_listen_attr attr = {.spread = PLX_SPREAD_CALLBACK, .place = place_on_lcore_1};
	unsigned before = inheritable();

	fixture_start("fi:tcp", true);
	worker_start();
	client_connect(at_host("127.0.0.1", fixture_listen_as("*:0", attr)), NULL);
	expect_open();
	assert_int_equal(inheritable(), before);
	worker_stop();
	fixture_stop();
}

static unsigned before; /* inheritable descriptors */

static int start_libfabric(void **state)
{
	fixture_start("fi:tcp", false);
	before = inheritable();
	return 0;
}

#define LIBFABRIC_TEST(name) PLX_TEST_WITH(name, start_libfabric, fixture_down)

/* Links open and close, and each takes the number of an earlier one. */
LIBFABRIC_TEST(a_reused_descriptor_is_found_again)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);

	for (int i = 0; i < 5; i++) {
		fixture_connect(listener, NULL);
		assert_true(server.link->fd >= 0);
		assert_int_equal(inheritable(), before);
		fixture_disconnect();
	}
}

static bool refuses;

static uint32_t place_nowhere_if(struct plx_listener *at, const struct sockaddr *peer, void *arg)
{
	return refuses ? PLX_LCORE_NONE : 0;
}

LIBFABRIC_TEST(the_reused_descriptor_of_a_refused_connection_is_found_again)
{
	struct plx_listen_attr attr = {.spread = PLX_SPREAD_CALLBACK, .place = place_nowhere_if};
	struct plx_listener *listener = fixture_listen_as("127.0.0.1:0", attr);

	refuses = true;
	client_connect(plx_listener_address(listener), NULL);
	assert_true(pump_until(&client.closed, 1, 2000));
	refuses = false;
	fixture_connect(listener, NULL);
	assert_int_equal(inheritable(), before);
}

/* A connection accepted by the first listener has the second one's address, and a lower number. */
LIBFABRIC_TEST(a_second_listener_at_the_same_address_is_not_inherited)
{
	char address[PLX_ADDRESS_MAX];
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);

	fixture_connect(listener, NULL);
	strcpy(address, plx_listener_address(listener));
	plx_listener_close(listener);

	int plug = open("/dev/null", O_RDONLY | O_CLOEXEC); /* takes the number of the first */

	fixture_listen(address, NULL);
	assert_int_equal(inheritable(), before);
	close(plug);
}

PLX_TEST(descriptors_of_the_application_stay_inheritable)
{
	uint16_t port;
	int own = listen_raw(&port);
	struct raw raw = connect_raw(own, port, 0);
	char address[64];

	snprintf(address, sizeof(address), "127.0.0.2:%u", port);
	fixture_start("fi:tcp", false);
	fixture_connect(fixture_listen(address, NULL), NULL);
	assert_true(is_inheritable(own));
	assert_true(is_inheritable(raw.accepted));
	fixture_stop();
	close_raw(&raw);
	close(own);
}

/* The search ---------------------------------------------------------------------------------- */

#define MANY 200

PLX_TEST(the_descriptor_search_skips_known_connections)
{
	static struct raw raws[MANY];
	uint16_t port;
	int listener = listen_raw(&port);
	unsigned budget = count_descriptors(); /* existing descriptors, and some more */

	assert_true(budget < MANY / 2);
	for (int i = 0; i < MANY; i++) {
		raws[i] = connect_raw(listener, port, FAR_MIN);
		assert_int_equal(find(&raws[i], port, budget), raws[i].accepted);
		assert_false(is_inheritable(raws[i].accepted));
	}
	for (int i = 0; i < MANY; i += 3) { /* gaps */
		int number = raws[i].accepted;

		close_raw(&raws[i]);
		raws[i] = connect_raw(listener, port, FAR_MIN);
		assert_int_equal(raws[i].accepted, number);
		assert_int_equal(find(&raws[i], port, budget), number);
	}
	for (int i = 0; i < MANY; i++)
		close_raw(&raws[i]);
	close(listener);
}

PLX_TEST(the_descriptor_search_is_bounded)
{
	uint16_t port;
	struct raw raw = open_raw(&port);

	assert_int_equal(find(&raw, port, (unsigned)raw.accepted), -1);
	assert_true(is_inheritable(raw.accepted));
	assert_int_equal(find(&raw, port, (unsigned)raw.accepted + 1), raw.accepted);
	assert_false(is_inheritable(raw.accepted));
	close_raw(&raw);
}

PLX_TEST(the_descriptor_search_skips_connections_to_another_port)
{
	uint16_t port;
	struct raw raw = open_raw(&port);

	assert_int_equal(find(&raw, (uint16_t)(port + 1), FD_MAX), -1);
	assert_true(is_inheritable(raw.accepted));
	close_raw(&raw);
}

#define ROUNDS 1000

static int shared_listener;
static uint16_t shared_port;

static void *find_many(void *arg)
{
	unsigned *found = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct raw raw = connect_raw(shared_listener, shared_port, 0);

		*found += find(&raw, shared_port, FD_MAX) == raw.accepted;
		close_raw(&raw);
	}
	return NULL;
}

/* Each number alternates between them. */
PLX_TEST(two_lcores_find_their_own_descriptors_concurrently)
{
	unsigned found[2] = {0};
	pthread_t threads[2];

	shared_listener = listen_raw(&shared_port);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, find_many, &found[i]), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(found[i], ROUNDS);
	}
	close(shared_listener);
}

/* Signals, once libfabric and its dependencies are loaded -------------------------------------- */

#define LOOK   "--look"
#define FAILED 9

static bool has_handler(int signal_number)
{
	struct sigaction action;

	sigaction(signal_number, NULL, &action);
	return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

/* In a separate process, started with SIGINT ignored and SIGTERM not. */
static int look(void)
{
	static const int signals[] = {SIGINT, SIGILL, SIGABRT,
				      SIGTERM}; /* none used by a sanitizer */
	sigset_t blocked;

	for (size_t i = 0; i < PLX_ARRAY_LEN(signals); i++)
		if (has_handler(signals[i]))
			return FAILED;
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	if (sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGHUP))
		return FAILED;
	if (signal(SIGINT, SIG_DFL) != SIG_IGN || signal(SIGTERM, SIG_DFL) != SIG_DFL)
		return FAILED;
	return 0;
}

PLX_TEST(no_library_installs_signal_handlers_before_main)
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		sigset_t mask;

		sigemptyset(&mask);
		sigaddset(&mask, SIGHUP);
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_DFL);
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
		execl("/proc/self/exe", "process_test", LOOK, NULL);
		_exit(FAILED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], LOOK) == 0)
		return look();
	return plx_test_run("tests", NULL, NULL);
}
