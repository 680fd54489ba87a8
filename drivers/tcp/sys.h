/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of socket system calls. Tests replace them with calls that fail or transfer in parts. */
#ifndef TCP_SYS_H
#define TCP_SYS_H

#include <sys/epoll.h>
#include <sys/socket.h>

struct tcp_sys {
	int (*socket)(int family, int type, int protocol);
	int (*accept4)(int fd, struct sockaddr *address, socklen_t *bytes, int flags);
	int (*connect)(int fd, const struct sockaddr *address, socklen_t bytes);
	ssize_t (*recv)(int fd, void *buf, size_t length, int flags);
	ssize_t (*recvmsg)(int fd, struct msghdr *msg, int flags);
	ssize_t (*send)(int fd, const void *buf, size_t length, int flags);
	ssize_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);
	int (*shutdown)(int fd, int how);
	int (*close)(int fd);
	int (*epoll_ctl)(int epoll_fd, int operation, int fd, struct epoll_event *event);
	int (*epoll_wait)(int epoll_fd, struct epoll_event *events, int count, int timeout_ms);
};

extern struct tcp_sys tcp_sys;

#endif
