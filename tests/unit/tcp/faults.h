/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider's system calls, which transfer in parts or fail when a test asks. */
#ifndef TCP_TEST_FAULTS_H
#define TCP_TEST_FAULTS_H

#include "ends.h"

#include <errno.h>

/* Faults of the reads or the writes of one end's socket. */
struct fault {
	struct side *end;
	bool writes;
	size_t cut;       /* after this many bytes, EAGAIN once; 0: never */
	unsigned at_call; /* this call, counting from 1, fails with err; 0: none */
	int err;
};

static struct fault fault;
static struct {
	size_t passed; /* bytes since the fault was set */
	unsigned calls;
	bool cut_done, fired;
	uint32_t owed; /* events withheld from the set by the fault */
} faulty;
static int client_fd, server_fd; /* of a and b, the newest ones */
static struct tcp_sys usual;     /* the kernel's calls */

enum sys_call {
	SYS_NONE,
	SYS_SOCKET,
	SYS_ACCEPT,
	SYS_CONNECT,
	SYS_RECV,
	SYS_SEND,
	SYS_SHUTDOWN,
	SYS_CLOSE,
	SYS_ADD, /* to an epoll set */
	SYS_WAIT,
};

/* One of them fails, on any socket. */
static struct {
	enum sys_call call;
	int err;
	unsigned at_call; /* this call, counting from 1; 0: each */
	unsigned calls;   /* since it was set */
	bool fired;
} failing;

static inline void fail_call(enum sys_call call, int err, unsigned at_call)
{
	memset(&failing, 0, sizeof(failing));
	failing.call = call;
	failing.err = err;
	failing.at_call = at_call;
}

static inline bool fails(enum sys_call call)
{
	if (call != failing.call || (++failing.calls != failing.at_call && failing.at_call))
		return false;
	failing.fired = true;
	errno = failing.err;
	return true;
}

static inline void set_fault(struct fault wanted)
{
	memset(&faulty, 0, sizeof(faulty));
	fault = wanted;
}

static inline bool is_meant(int fd, bool writes)
{
	return fault.end && writes == fault.writes &&
	       fd == (fault.end == a ? client_fd : server_fd);
}

static inline ssize_t fault_fails(int err)
{
	if (err == EAGAIN)
		faulty.owed = fault.writes ? EPOLLOUT : EPOLLIN;
	errno = err;
	return -1;
}

/* Return: how many of these bytes may pass; -1: errno is set. */
static inline ssize_t allow(int fd, bool writes, size_t bytes)
{
	size_t asked = bytes;

	if (!is_meant(fd, writes))
		return (ssize_t)bytes;
	if (++faulty.calls == fault.at_call) {
		faulty.fired = true;
		return fault_fails(fault.err);
	}
	if (fault.cut && !faulty.cut_done) {
		if (faulty.passed == fault.cut) {
			faulty.cut_done = true;
			return fault_fails(EAGAIN);
		}
		bytes = bytes < fault.cut - faulty.passed ? bytes : fault.cut - faulty.passed;
	}
	if (writes && bytes < asked)
		faulty.owed = EPOLLOUT;
	return (ssize_t)bytes;
}

static inline ssize_t passed(int fd, bool writes, ssize_t bytes)
{
	if (is_meant(fd, writes) && bytes > 0)
		faulty.passed += (size_t)bytes;
	return bytes;
}

static inline size_t total_of(const struct msghdr *msg)
{
	size_t total = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		total += msg->msg_iov[i].iov_len;
	return total;
}

/* Truncate to the first bytes. */
static inline struct msghdr shorten(const struct msghdr *msg, size_t bytes, struct iovec *iov)
{
	struct msghdr out = {.msg_iov = iov};

	for (size_t i = 0; i < msg->msg_iovlen && bytes; i++) {
		iov[i] = msg->msg_iov[i];
		iov[i].iov_len = iov[i].iov_len < bytes ? iov[i].iov_len : bytes;
		bytes -= iov[i].iov_len;
		out.msg_iovlen++;
	}
	return out;
}

static inline ssize_t faulty_recv(int fd, void *buf, size_t length, int flags)
{
	ssize_t most = fails(SYS_RECV) ? -1 : allow(fd, false, length);

	return most < 0 ? -1 : passed(fd, false, usual.recv(fd, buf, (size_t)most, flags));
}

static inline ssize_t faulty_recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t most = fails(SYS_RECV) ? -1 : allow(fd, false, total_of(msg));
	struct iovec iov[64];
	struct msghdr part;

	if (most < 0)
		return -1;
	part = shorten(msg, (size_t)most, iov);
	return passed(fd, false, usual.recvmsg(fd, &part, flags));
}

static inline ssize_t faulty_send(int fd, const void *buf, size_t length, int flags)
{
	ssize_t most = fails(SYS_SEND) ? -1 : allow(fd, true, length);

	return most < 0 ? -1 : passed(fd, true, usual.send(fd, buf, (size_t)most, flags));
}

static inline ssize_t faulty_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t most = fails(SYS_SEND) ? -1 : allow(fd, true, total_of(msg));
	struct iovec iov[64];
	struct msghdr part;

	if (most < 0)
		return -1;
	part = shorten(msg, (size_t)most, iov);
	return passed(fd, true, usual.sendmsg(fd, &part, flags));
}

static inline int faulty_socket(int family, int type, int protocol)
{
	return fails(SYS_SOCKET) ? -1 : (client_fd = usual.socket(family, type, protocol));
}

static inline int faulty_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
	if (fails(SYS_ACCEPT))
		return -1;
	fd = usual.accept4(fd, address, bytes, flags);
	server_fd = fd >= 0 ? fd : server_fd;
	return fd;
}

static inline int faulty_connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
	return fails(SYS_CONNECT) ? -1 : usual.connect(fd, address, bytes);
}

static inline int faulty_shutdown(int fd, int how)
{
	return fails(SYS_SHUTDOWN) ? -1 : usual.shutdown(fd, how);
}

/* It closes the descriptor anyway, as close(2) says. */
static inline int faulty_close(int fd)
{
	usual.close(fd);
	return fails(SYS_CLOSE) ? -1 : 0;
}

static inline int faulty_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	if (operation == EPOLL_CTL_ADD && fails(SYS_ADD))
		return -1;
	return usual.epoll_ctl(epoll_fd, operation, fd, event);
}

static inline int faulty_epoll_wait(int epoll_fd, struct epoll_event *events, int most, int timeout)
{
	int count = fails(SYS_WAIT) ? -1 : usual.epoll_wait(epoll_fd, events, most, timeout);
	struct tcp_ep *ep = fault.end ? tcp_of(fault.end) : NULL;

	if (!faulty.owed || !ep || !ep->is_polled || count < 0 || count == most ||
	    epoll_fd != rx_cq_of(ep)->q.wait.epoll_fd)
		return count;
	events[count] = (struct epoll_event){.events = faulty.owed, .data.ptr = ep};
	faulty.owed = 0;
	return count + 1;
}

static inline void faults_begin(void)
{
	usual = tcp_sys;
	tcp_sys.recv = faulty_recv;
	tcp_sys.recvmsg = faulty_recvmsg;
	tcp_sys.send = faulty_send;
	tcp_sys.sendmsg = faulty_sendmsg;
	tcp_sys.socket = faulty_socket;
	tcp_sys.accept4 = faulty_accept4;
	tcp_sys.connect = faulty_connect;
	tcp_sys.shutdown = faulty_shutdown;
	tcp_sys.close = faulty_close;
	tcp_sys.epoll_ctl = faulty_epoll_ctl;
	tcp_sys.epoll_wait = faulty_epoll_wait;
}

static inline void faults_end(void)
{
	set_fault((struct fault){0});
	fail_call(SYS_NONE, 0, 0);
	tcp_sys = usual;
}

#endif
