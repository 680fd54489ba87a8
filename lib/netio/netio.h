/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * NetIO: an event loop with signals, timers, descriptors and sockets, in the manner of CERN's
 * NetIO-next.
 * The loop is that of the lcore that runs it (plx_lcore.h): it polls and sleeps as the idle policy
 * says, and carries links, pollers and timers of Pollux' own as well.
 *
 * Callbacks run on the thread that is in netio_run, one after the other, and must not block. Where
 * nothing else stands there, a function belongs to the thread that has set the loop up. What
 * functions return: enum netio_status.
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
