/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * NetIO-next's names, for programs that are ported from it. Include it after all other headers:
 * it makes macros of ordinary words, which is why netio.h does not include it.
 *
 * It has every public name that differs here. These names are the same: netio_init, netio_run,
 * netio_terminate, netio_eventloop_init, cb_init, the functions and fields of signals and timers,
 * netio_buffered_sendv, netio_buffered_publish, netio_unbuffered_publishv and _usr,
 * netio_subscription_cache, netio_tag_t, NETIO_REENTRY, and NETIO_STATUS_OK, _AGAIN, _PARTIAL and
 * _TOO_BIG. Everything else in NetIO-next's headers is not public: how sockets are set up, connect
 * and listen, their other attributes and callbacks, and the values of the status codes.
 */
#ifndef NETIO_COMPAT_H
#define NETIO_COMPAT_H

#include "netio.h"

/** Buffer attribute: bytes of a page. */
#define pagesize page_bytes

/** Callback of struct netio_unbuffered_publish_socket. Here it has three parameters, and also runs
 * if the message did not reach all subscribers: see its status. */
#define msg_published cb_msg_published

/** Most descriptors that one iteration of the loop handles. */
#define MAX_EPOLL_EVENTS PLX_FD_BURST_MAX

/* In C a callback with other parameters is only a warning, and then gets wrong values. From here
 * on it is an error, as in C++. */
#ifndef __cplusplus
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#endif

#endif
