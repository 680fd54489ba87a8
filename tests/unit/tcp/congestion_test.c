/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control on a host that defaults to BBR: connections within the host do not use it. */
#include "ends.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <unistd.h>

/* As on such a host. */
static int socket_with_bbr(int family, int type, int protocol)
{
	int fd = socket(family, type, protocol);

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "bbr", 3);
	return fd;
}

static void expect_congestion(int fd, const char *expected)
{
	char name[16 + 1] = "";
	socklen_t length = 16;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
	assert_string_equal(name, expected);
}

static int setup(void **state)
{
	tcp_sys.socket = socket_with_bbr;
	return 0;
}

static int teardown(void **state)
{
	tcp_sys.socket = socket;
	return 0;
}

/* This kernel may lack BBR. */
static int make_socket(void)
{
	int fd = socket_with_bbr(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!congestion_leave_bbr(fd)) {
		close(fd);
		skip();
	}
	expect_congestion(fd, "reno");
	return fd;
}

PLX_TEST_WITH(both_ends_within_a_host_have_reno, setup, teardown)
{
	close(make_socket());
	pair_open(&pair, &(struct pair_attr){0});
	expect_congestion(tcp_of(a)->base.source.fd, "reno");
	expect_congestion(tcp_of(b)->base.source.fd, "reno");
	pair_close(&pair);
}

PLX_TEST_WITH(a_peer_elsewhere_is_served_with_bbr, setup, teardown)
{
	struct sockaddr_storage peer = {0};
	struct sockaddr_in *four = (struct sockaddr_in *)&peer;
	int fd = make_socket();

	four->sin_family = AF_INET;
	inet_pton(AF_INET, "192.0.2.1", &four->sin_addr);
	congestion_return_to_bbr(fd, &peer);
	expect_congestion(fd, "bbr");
	close(fd);
}

PLX_TEST(other_ways_stay)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
	assert_false(congestion_leave_bbr(fd));
	expect_congestion(fd, "reno");
	close(fd);
}

PLX_TEST_MAIN()
