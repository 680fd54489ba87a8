/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test service of the process, which lib/eal starts. */
#ifndef RPC_SELF_TEST_H
#define RPC_SELF_TEST_H

#include <stdbool.h>
#include <stdint.h>

#define RPC_SELF_TEST_RATE_DEFAULT 100000 /* some hundredths of an lcore's time */

/* A service with the methods that every service has alone, for who wants the self-test of this
 * process (self_test of struct plx_link_attr), at whatever listens in it. Up to 16 such clients on
 * each lcore, which end when they ask for nothing for 10 s, requests of up to
 * PLX_RPC_SELF_TEST_MAX, and smaller turns than services have. What is refused costs time, too:
 * beyond twice the rate, and 10000 a second, what comes is not looked at until later. rate: as
 * self_test_rate of struct plx_rpc_service_attr, and its default in services that are made from now
 * on; PLX_NONE: none, in none of these either. remote: also for peers on other hosts (not
 * plx_link_is_same_host); else those get PLX_LINK_HELLO, and PLX_RPC_DENIED from services. Thread:
 * the main lcore, before links are made. Return: 0; -EALREADY; -ENOENT not an lcore; -ENOMEM. */
int rpc_self_test_start(uint32_t rate, bool remote);

/* Thread: the main lcore, while no other one runs. Does nothing where it was not started. */
void rpc_self_test_stop(void);

#endif
