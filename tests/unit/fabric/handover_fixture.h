/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests that are handed to another lcore, and stopped anywhere on their way. */
#ifndef FABRIC_HANDOVER_FIXTURE_H
#define FABRIC_HANDOVER_FIXTURE_H

#include "fabric_listen.h"
#include "fixture.h"

/** The one that listen_placed made. */
extern struct plx_listener *listener;

/** For listen_placed: the request goes to lcore 1, which runs no loop before worker_start. */
uint32_t on_lcore_1(struct plx_listener *at, const struct sockaddr *peer, void *arg);

/** Listen on a free port; `place` says which lcore a link goes to, `server` is its end there.
 * timeout_ns: how long a request may take; 0 is the default. */
void listen_placed(uint32_t (*place)(struct plx_listener *, const struct sockaddr *, void *),
		   uint64_t timeout_ns);

/** Let `client` connect to the listener, and do not wait for it. */
void connect_only(void);

/** Whether a request is on its way to another lcore, or its answer on the way back. */
bool on_its_way(void);
void pump_until_on_its_way(void);

/** Turn the loop for a while, in which neither the request arrives nor the client is told. */
void expect_still_on_its_way(void);

/** The client is told that it was refused, and the listener counts one request like that. */
void expect_refused(void);

/** Both ends get to be open. */
void expect_open(void);

/** Close the client's end; both are told. */
void close_in_order(void);

/** Lcore 1 comes at last: the link opens there, and closes in order. */
void serve_and_close(void);

/** Fill the lane from this lcore to another one. */
void fill_lane_to(uint32_t id);

/** For plx_lcore_launch: fill the lane back to lcore 0, and run the loop. */
int block_then_run(void *arg);

int handover_start(void **state);
int handover_start_auto(void **state);
int handover_stop(void **state);

#define handover_test(test) cmocka_unit_test_setup_teardown(test, handover_start, handover_stop)
#define HANDOVER_TEST(test) PLX_TEST_WITH(test, handover_start, handover_stop)

/** The same with provider auto: the request comes in by shm, at the listener that belongs to the
 * user's. */
#define handover_test_auto(test) {#test " (auto)", test, handover_start_auto, handover_stop, NULL}

#endif
