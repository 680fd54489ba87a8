/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a connection does not grow with the number of descriptors of the process, because
 * nothing scans them for the provider's. Counts the system calls that such a scan makes for
 * each. */
#include "fixture.h"

#include <sys/socket.h>
#include <unistd.h>

#define DESCRIPTORS 800
#define CALLS_MAX   100 /* of everything here, a few each */

static unsigned calls;

/* Counts calls of a function of the C library. */
#define COUNTED(name, parameters, arguments)    \
	int __real_##name parameters;           \
	int __wrap_##name parameters;           \
	int __wrap_##name parameters            \
	{                                       \
		calls++;                        \
		return __real_##name arguments; \
	}

COUNTED(getsockname, (int fd, struct sockaddr *address, socklen_t *bytes), (fd, address, bytes))
COUNTED(getpeername, (int fd, struct sockaddr *address, socklen_t *bytes), (fd, address, bytes))
COUNTED(fcntl64, (int fd, int command, long argument), (fd, command, argument))
COUNTED(fcntl, (int fd, int command, long argument), (fd, command, argument))

static int others[DESCRIPTORS];

static void start(const char *provider)
{
	skip_if_provider_given();
	fixture_start(provider, false);
	for (unsigned i = 0; i < DESCRIPTORS; i++) {
		others[i] = dup(STDIN_FILENO);
		assert_true(others[i] >= 0);
	}
	calls = 0;
}

static int stop(void **state)
{
	for (unsigned i = 0; i < DESCRIPTORS && others[i]; i++)
		close(others[i]);
	memset(others, 0, sizeof(others));
	fixture_stop();
	return 0;
}

static void connect_once(const char *address, const struct plx_link_attr *attr)
{
	struct plx_listener *listener = fixture_listen(address, attr);

	fixture_connect(listener, attr);
	plx_link_abort(client.link);
	expect_both_end();
	plx_listener_close(listener);
}

#define TEST(name) PLX_TEST_WITH(name, NULL, stop)

TEST(a_link_over_tcp_scans_no_other_descriptors)
{
	start("tcp");
	connect_once("127.0.0.1:0", NULL);
	assert_in_range(calls, 0, CALLS_MAX);
}

TEST(a_wildcard_listener_scans_no_descriptors)
{
	struct plx_listener *listener;

	start("tcp");
	listener = fixture_listen("*:0", NULL);
	plx_listener_close(listener);
	assert_in_range(calls, 0, CALLS_MAX);
}

/* Each has separate libfabric objects. */
TEST(a_link_with_direct_data_placement_scans_no_descriptors)
{
	start("tcp");
	connect_once("127.0.0.1:0", &(struct plx_link_attr){.direct = true});
	assert_in_range(calls, 0, CALLS_MAX);
}

PLX_TEST_MAIN()
