/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP connections that never become links: they say nothing, or only plx_tcp's HELLO, and stay or
 * leave. Prints "N made" after each hundred, and at the end how many the server closed. */
#include "app.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPEN_MAX 8192 /* at a time; one more closes the oldest */

/* A request to connect, with the opening of a link's HELLO: 14 bytes of private data. */
static const char hello[16 + 14] = "\x93PLXTCP\n\x01\x01\x0e\0\0\0\0\0"
				   "\1\0042XLP\2\2\2\0\3\2\2";

static const char *connect_address, *from;
static uint64_t count = 1, rate, for_ns = 10 * PLX_NS_PER_S;
static bool says_hello, leaves, comes_again;

static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &connect_address, "of the server, a number", .required = true),
	PLX_TEXT("from", "IP", &from, "source address (default: the kernel's choice)"),
	PLX_UINT("count", "N", &count, 1, 100000, "connections in all (default 1)"),
	PLX_UINT("rate", "N", &rate, 1, 10000, "a second (default: all at once)"),
	PLX_TIME("for", "TIME", &for_ns, 1, 60 * PLX_NS_PER_S, "end then (default 10s)"),
	PLX_FLAG("hello", &says_hello, "send a HELLO (default: nothing)"),
	PLX_FLAG("leave", &leaves, "close at once"),
	PLX_FLAG("again", &comes_again, "replace those that the server closes"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "strangers", .summary = "connections that never open", .options = options};

static struct sockaddr_in to, source;
static int epoll_fd, fds[OPEN_MAX]; /* -1: closed */
static uint64_t made, closed_by_server;

static void close_at(uint64_t i)
{
	if (fds[i] >= 0)
		close(fds[i]);
	fds[i] = -1;
}

/* Return: 0; -1 it cannot be made now. */
static int make_one(void)
{
	uint64_t at = made % OPEN_MAX;
	struct epoll_event event = {.events = EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u64 = at};
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	close_at(at);
	fds[at] = fd;
	setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	if ((from && bind(fd, (struct sockaddr *)&source, sizeof(source)) != 0) ||
	    (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 && errno != EINPROGRESS) ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		plx_app_say("%s", strerror(errno));
		close_at(at);
		return -1;
	}
	if (++made % 100 == 0)
		plx_app_say("%" PRIu64 " made", made);
	return 0;
}

static void on_event(const struct epoll_event *event)
{
	int fd = fds[event->data.u64];

	if (fd < 0)
		return;
	if (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		closed_by_server++;
		close_at(event->data.u64);
		return;
	}
	if (says_hello)
		send(fd, hello, sizeof(hello), MSG_NOSIGNAL);
	if (leaves)
		close_at(event->data.u64);
}

static uint64_t due(uint64_t passed_ns)
{
	uint64_t most = count + (comes_again ? closed_by_server : 0);
	uint64_t by_now = rate ? 1 + passed_ns * rate / PLX_NS_PER_S : most;

	return by_now < most ? by_now : most;
}

static void run(void)
{
	uint64_t begin_ns = plx_now_ns(), passed_ns;

	while ((passed_ns = plx_now_ns() - begin_ns) < for_ns) {
		struct epoll_event events[64];
		int n;

		for (int burst = 0; burst < 64 && made < due(passed_ns); burst++)
			if (make_one() != 0)
				break;
		n = epoll_wait(epoll_fd, events, PLX_ARRAY_LEN(events), 1);
		for (int i = 0; i < n; i++)
			on_event(&events[i]);
	}
	plx_app_say("%" PRIu64 " made, the server closed %" PRIu64, made, closed_by_server);
}

int main(int argc, char **argv)
{
	char host[PLX_ADDRESS_MAX];
	struct rlimit files;
	unsigned port;

	if (plx_app_parse(argc - 1, argv + 1, &app) != 0 ||
	    plx_address_split("--connect", connect_address, host, &port) != 0)
		return plx_app_fail(&app);
	to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	source.sin_family = AF_INET;
	if (inet_pton(AF_INET, host, &to.sin_addr) != 1 ||
	    (from && inet_pton(AF_INET, from, &source.sin_addr) != 1)) {
		plx_app_say("give numbers of IPv4");
		return 2;
	}
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	for (unsigned i = 0; i < OPEN_MAX; i++)
		fds[i] = -1;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	run();
	return 0;
}
