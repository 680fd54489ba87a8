/* SPDX-License-Identifier: BSD-3-Clause */
#include "sys.h"

#include <unistd.h>

struct tcp_sys tcp_sys = {
	.socket = socket,
	.accept4 = accept4,
	.connect = connect,
	.recv = recv,
	.recvmsg = recvmsg,
	.send = send,
	.sendmsg = sendmsg,
	.shutdown = shutdown,
	.close = close,
	.epoll_ctl = epoll_ctl,
	.epoll_wait = epoll_wait,
};
