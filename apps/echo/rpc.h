/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ECHO_RPC_H
#define ECHO_RPC_H

#include "plx_fabric.h"

/** The same as a service that is called (plx_rpc.h): its method 1 "echo" replies with the request.
 * One in the process. Thread: main. Return: 0; -errno. */
int echo_rpc_listen(const char *address, const struct plx_listen_attr *listen);

/** Where it listens. */
const char *echo_rpc_address(void);

/** Answer what is open, and let the clients go. Thread: each lcore that serves, behind its loop. */
void echo_rpc_finish(uint64_t timeout_ns);

/** Say what it did. Thread: main, behind that. */
void echo_rpc_report(void);

/** Thread: main. */
void echo_rpc_end(void);

#endif
