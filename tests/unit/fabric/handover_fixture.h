/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests handed to another lcore, and stopped anywhere on their way. */
#ifndef FABRIC_HANDOVER_FIXTURE_H
#define FABRIC_HANDOVER_FIXTURE_H

#include "fabric_listen.h"
#include "fixture.h"

/** Created by listen_placed. */
extern struct plx_listener *listener;

/** Listen on a free port; `place` selects the lcore of a link, `server` is its end there. With
 * place_on_lcore_1 the request goes to lcore 1, which runs no loop before worker_start.
 * timeout_ns: of a request; 0 is the default. */
void listen_placed(uint32_t (*place)(struct plx_listener *, const struct sockaddr *, void *),
		   uint64_t timeout_ns);

/** Connect `client` to the listener without waiting for it. */
void connect_only(void);

/** Whether a request, or its answer, is on its way between lcores. */
bool on_its_way(void);

/** Connect to a listener on lcore 1 until the request is on its way there. */
void send_request(uint64_t timeout_ns);
void send_request_to_full_lane(uint64_t timeout_ns);

/** Turn the loop for a while; neither the request nor the answer may arrive. */
void expect_still_on_its_way(void);

/** The client must be refused, and the listener count one such request. */
void expect_refused(void);

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

#define HANDOVER_TEST(test) PLX_TEST_WITH(test, handover_start, fixture_down)

/** Again with provider auto: the request arrives over shm, at the listener that belongs to the
 * user's. */
#define HANDOVER_TEST_AUTO(test) PLX_TEST_AGAIN(test, handover_start_auto, fixture_down)

#endif
