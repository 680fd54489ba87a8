/* SPDX-License-Identifier: BSD-3-Clause */
/* On providers where a frame without a receive ends the connection (iWARP), a stalled peer gets no
 * more control frames than it has receives for. Over tcp, by a driver that claims to behave like
 * that. */
#include "fabric_link.h"
#include "fixture.h"
#include "rogue.h"

#define WINDOW      4
#define FRAME_BYTES 64

static struct plx_listener *listener;
static struct rogue *rogue;

static bool yes(const struct fi_info *info)
{
	return true;
}

static int start(void **state)
{
	static struct plx_fabric_driver strict;
	static const struct plx_fabric_driver *const table[] = {&strict, NULL};
	const struct plx_fabric_conf conf = {.drivers = table,
					     .heartbeat_ns = 20 * PLX_NS_PER_MS,
					     .dead_after_ns = 20 * PLX_NS_PER_S};
	const struct plx_link_attr attr = {.rx_buf_count = WINDOW};
	struct frame_hello hello = rogue_beating_hello(20, 20000);

	strict = plx_driver_tcp;
	strict.is_iwarp = yes;
	fixture_start_as(&conf, false);
	listener = fixture_listen("127.0.0.1:0", &attr);
	rogue = rogue_open(listener, &hello);
	return 0;
}

/* Until it has arrived. */
static void rogue_sends_data(void)
{
	uint64_t before = server.link->stats.frames_received;

	rogue_send_frame(rogue, (struct frame_header){FRAME_DATA, 0, FRAME_BYTES, 8});
	for (int i = 0; i < 3000 && server.link->stats.frames_received == before; i++) {
		rogue_progress(rogue);
		pump_ms(1);
	}
	assert_int_equal(server.link->stats.frames_received, before + 1);
}

/* The heartbeats in between carry grants too: so check soon, and check the peer's view. */
PLX_TEST_WITH(a_grant_waits_while_the_peer_has_credit_left, start, fixture_down)
{
	struct plx_link *link = server.link;
	uint64_t frames;

	server.keep = WINDOW;
	for (int i = 0; i < WINDOW; i++)
		rogue_sends_data();
	assert_int_equal(server.kept_count, WINDOW);
	assert_int_equal(link->rx_frames_advertised, link->rx_frames);
	frames = link->stats.frames_sent;
	for (int i = 0; i < WINDOW; i++) {
		side_release(&server, 1);
		pump_ms(20);
	}
	/* One frame granted the peer more; it sends nothing, so nothing follows. */
	assert_in_range(link->stats.frames_sent - frames, 1, 2);
	assert_in_range(link->rx_frames_advertised - link->rx_frames, 1, 2);

	server.keep = 0;
	rogue_sends_data();
	for (int i = 0; i < 1000 && link->rx_frames_advertised != link->rx_frames_granted; i++)
		pump_ms(1);
	assert_int_equal(link->rx_frames_advertised - link->rx_frames, WINDOW);
	assert_int_equal(server.closed, 0);
}

PLX_TEST_MAIN()
