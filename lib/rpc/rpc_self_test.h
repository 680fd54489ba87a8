/* SPDX-License-Identifier: BSD-3-Clause */
/* The process' self-test service, started by lib/eal. */
#ifndef RPC_SELF_TEST_H
#define RPC_SELF_TEST_H

#include <stdbool.h>
#include <stdint.h>

#define RPC_SELF_TEST_RATE_DEFAULT 100000 /* a few percent of an lcore */

/* Start a service with only the built-in methods, for links that ask for the self-test of this
 * process (self_test of struct plx_link_attr) at any address where it listens. Each lcore serves up
 * to 16 such clients, with requests of up to PLX_RPC_SELF_TEST_MAX and smaller turns than other
 * services. A client that requests nothing for 10 s is disconnected. Refusals cost time too: beyond
 * twice the rate plus 10000 records a second, input is delayed. rate: as self_test_rate of struct
 * plx_rpc_service_attr, and the default for services created later; PLX_NONE: disable it, also in
 * those. remote: serve peers on other hosts (not plx_link_is_same_host); otherwise they get
 * PLX_LINK_HELLO, and PLX_RPC_DENIED from services. Thread: the main lcore, before links are made.
 * Return: 0; -EALREADY; -ENOENT not an lcore; -ENOMEM. */
int rpc_self_test_start(uint32_t rate, bool remote);

/* Does nothing if it was not started. Thread: the main lcore, while no other lcore runs. */
void rpc_self_test_stop(void);

#endif
