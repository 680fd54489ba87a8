/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests handed to another lcore, and stopped anywhere on their way. */
#ifndef FABRIC_HANDOVER_FIXTURE_H
#define FABRIC_HANDOVER_FIXTURE_H

#include "fabric_listen.h"
#include "fixture.h"

/** Created by listen_placed. */
extern struct plx_listener *listener;

/** For listen_placed: the request goes to lcore 1, which runs no loop before worker_start. */
uint32_t on_lcore_1(struct plx_listener *at, const struct sockaddr *peer, void *arg);

/** Listen on a free port; `place` selects the lcore of a link, `server` is its end there.
 * timeout_ns: of a request; 0 is the default. */
void listen_placed(uint32_t (*place)(struct plx_listener *, const struct sockaddr *, void *),
		   uint64_t timeout_ns);

/** Connect `client` to the listener without waiting for it. */
void connect_only(void);

/** Whether a request, or its answer, is on its way between lcores. */
bool on_its_way(void);
void pump_until_on_its_way(void);

/** Turn the loop for a while; neither the request nor the answer may arrive. */
void expect_still_on_its_way(void);

/** The client must be refused, and the listener count one such request. */
void expect_refused(void);

/** Both ends must open. */
void expect_open(void);

/** Close the client's end; both ends must close. */
void close_in_order(void);

/** Lcore 1 finally runs: the link opens there, and closes in order. */
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

/** The same with provider auto: the request arrives over shm, at the listener that belongs to the
 * user's. */
#define handover_test_auto(test) {#test " (auto)", test, handover_start_auto, handover_stop, NULL}

#endif
