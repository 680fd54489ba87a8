/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * NetIO: an event loop with signals, timers, descriptors and sockets, in the style of CERN's
 * NetIO-next.
 * The loop is that of its lcore (plx_lcore.h). It polls and sleeps by the idle policy, and also
 * runs links, pollers and timers of Pollux.
 *
 * Callbacks run one at a time on the thread inside netio_run, and must not block. Functions
 * without a "Thread:" must be called on the thread that set up the loop. Functions return enum
 * netio_status.
 */
#ifndef NETIO_H
#define NETIO_H

#include "netio_loop.h"
#include "netio_pubsub.h"
#include "netio_push.h"
#include "netio_recv.h"
#include "netio_send.h"
#include "netio_socket.h"

#endif
