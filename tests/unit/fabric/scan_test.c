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

static int start(void **state)
{
	if (is_provider_given())
		exit(77);
	fixture_start("tcp", false);
	for (unsigned i = 0; i < DESCRIPTORS; i++) {
		others[i] = dup(STDIN_FILENO);
		assert_true(others[i] >= 0);
	}
	return 0;
}

static int stop(void **state)
{
	for (unsigned i = 0; i < DESCRIPTORS; i++)
		close(others[i]);
	return fixture_down(state);
}

/* With direct data placement each link has separate libfabric objects. */
PLX_TEST_WITH(a_connection_scans_no_other_descriptors, start, stop)
{
	for (unsigned direct = 0; direct < 2; direct++) {
		const struct plx_link_attr attr = {.direct = direct};

		calls = 0;
		fixture_connect(fixture_listen("127.0.0.1:0", &attr), &attr);
		fixture_disconnect();
		assert_in_range(calls, 0, CALLS_MAX);
	}
	calls = 0;
	plx_listener_close(fixture_listen("*:0", NULL));
	assert_in_range(calls, 0, CALLS_MAX);
}

PLX_TEST_MAIN()
