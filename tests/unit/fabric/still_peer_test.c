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

static int stop(void **state)
{
	side_release(&server, WINDOW);
	rogue_close(rogue);
	fixture_stop();
	return 0;
}

/* Until it has arrived. */
static void rogue_sends(const uint8_t *frame, size_t size)
{
	uint64_t before = server.link->stats.frames_received;

	rogue_send(rogue, frame, size);
	for (int i = 0; i < 3000 && server.link->stats.frames_received == before; i++) {
		rogue_progress(rogue);
		pump_ms(1);
	}
	assert_int_equal(server.link->stats.frames_received, before + 1);
}

static void rogue_says(uint8_t type)
{
	bool is_data = type == FRAME_DATA || type == FRAME_DATA_NEXT;
	struct frame_header header = {type, 0, is_data ? FRAME_BYTES : FRAME_HEARTBEAT_BYTES, 8};
	uint8_t frame[FRAME_HEADER_BYTES + FRAME_BYTES] = {0};

	frame_write(frame, &header);
	rogue_sends(frame, FRAME_HEADER_BYTES + header.length);
}

/* A message of that many bytes, of which FRAME_BYTES arrive at once. */
static void rogue_begins(uint64_t total)
{
	struct frame_header header = {FRAME_DATA_FIRST, 0, FRAME_TOTAL_BYTES + FRAME_BYTES, 8};
	uint8_t frame[FRAME_HEADER_BYTES + FRAME_TOTAL_BYTES + FRAME_BYTES] = {0};

	frame_write(frame, &header);
	put64(frame + FRAME_HEADER_BYTES, total);
	rogue_sends(frame, sizeof(frame));
}

#define ALONE(test) PLX_TEST_WITH(test, start, stop)

ALONE(heartbeats_wait_for_a_frame_from_the_peer)
{
	pump_ms(300);
	assert_in_range(server.link->stats.heartbeats_sent, 0, 1);
	for (uint64_t beats = server.link->stats.heartbeats_sent, i = 1; i <= 3; i++) {
		rogue_says(FRAME_HEARTBEAT);
		pump_ms(300);
		assert_int_equal(server.link->stats.heartbeats_sent, beats + i);
	}
	assert_int_equal(server.closed, 0);
}

/* The heartbeats in between carry grants too: so check soon, and check the peer's view. */
ALONE(a_grant_waits_while_the_peer_has_credit_left)
{
	struct plx_link *link = server.link;
	uint64_t frames;

	server.keep = WINDOW;
	for (int i = 0; i < WINDOW; i++)
		rogue_says(FRAME_DATA);
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
	rogue_says(FRAME_DATA);
	for (int i = 0; i < 1000 && link->rx_frames_advertised != link->rx_frames_granted; i++)
		pump_ms(1);
	assert_int_equal(link->rx_frames_advertised - link->rx_frames, WINDOW);
	assert_int_equal(server.closed, 0);
}

/* A message in two frames, kept, takes the last credit that the peer knows of: it then learns of
 * later grants. */
ALONE(withheld_credit_is_granted_when_the_peer_uses_its_last)
{
	struct plx_link *link = server.link;

	server.keep = WINDOW;
	for (int i = 0; i < WINDOW - 1; i++)
		rogue_says(FRAME_DATA);
	assert_int_equal(link->rx_frames_advertised - link->rx_frames, 1);
	rogue_begins((uint64_t)2 * FRAME_BYTES); /* its first frame is returned at once */
	pump_ms(5);
	assert_int_equal(link->rx_frames_advertised - link->rx_frames, 1);
	side_release(&server, 1); /* held back: the peer has one left */
	pump_ms(5);

	uint64_t told = link->stats.credit_frames; /* a heartbeat would report it too, later */

	rogue_says(FRAME_DATA_NEXT);
	pump_ms(5);
	assert_int_equal(link->stats.credit_frames, told + 1);
	assert_in_range(link->rx_frames_advertised - link->rx_frames, 1, WINDOW);
	assert_int_equal(server.closed, 0);
}

ALONE(a_link_keeps_a_receive_for_each_frame_that_may_be_in_flight)
{
	assert_int_equal(server.link->rx_control, LINK_RX_CONTROL_ALL);
	assert_int_equal(server.link->rx_posted + server.link->rx_kept,
			 WINDOW + LINK_RX_CONTROL_ALL);
}

PLX_TEST_MAIN()
