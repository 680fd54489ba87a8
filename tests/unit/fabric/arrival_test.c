/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that arrive slowly: from a hostile peer that sends single bytes of one. */
#include "fabric_link.h"
#include "fixture.h"
#include "rogue.h"

#define PERIOD_MS  100
#define DEAD_MS    500
#define PATIENT_MS 10000 /* suspect after 25 s */
#define TURN_MS    50
#define FRAME      (200 << 10) /* bytes of the frame */

static struct plx_listener *listener;
static struct rogue *rogue;

static struct rogue *open_rogue(uint32_t heartbeat_ms)
{
	struct frame_hello hello = rogue_beating_hello(heartbeat_ms, 5 * heartbeat_ms);

	return rogue_open(listener, &hello);
}

/* Send the header of a frame of the provider, in which FRAME bytes follow. */
static void begin_frame(struct rogue *from)
{
	uint8_t header[8];

	put64(header, FRAME | UINT64_C(0x70630001) << 32); /* wire_word in tcp_wire.h */
	rogue_write_raw(from, header, sizeof(header));
}

static int start_with(uint64_t heartbeat_ns)
{
	fixture_start_beating(heartbeat_ns, 0, false);
	listener = fixture_listen("127.0.0.1:0",
				  &(struct plx_link_attr){.rx_buf_bytes = 2 * FRAME});
	return 0;
}

PLX_FIXTURE(start, start_with(0), (void)0)
PLX_FIXTURE(start_without_heartbeats, start_with(PLX_NEVER), (void)0)

#define TEST(name) PLX_TEST_WITH(name, start, fixture_down)

/* Drip for that long, after each turn of more than TURN_MS. A busy host makes turns long. */
static void drip_ms(struct rogue *from, unsigned ms)
{
	uint64_t now_ns = plx_now_ns(), end_ns = now_ns + ms * PLX_NS_PER_MS, next_ns = now_ns;

	for (; now_ns < end_ns; now_ns = plx_now_ns()) {
		if (now_ns >= next_ns) {
			rogue_write_raw(from, "x", 1);
			next_ns = now_ns + TURN_MS * PLX_NS_PER_MS;
		}
		plx_loop_turn();
	}
}

static void write_many(struct rogue *from, uint32_t bytes)
{
	uint8_t *zeros = calloc(1, bytes);

	rogue_write_raw(from, zeros, bytes);
	free(zeros);
	pump_ms(TURN_MS);
}

TEST(bytes_of_a_frame_show_that_the_peer_is_alive)
{
	rogue = open_rogue(PERIOD_MS);
	begin_frame(rogue);
	drip_ms(rogue, 3 * DEAD_MS);
	assert_int_equal(server.closed, 0);
	assert_int_equal(server.suspect, 0);
	expect_end(&server, PLX_LINK_SILENT); /* once no more come */
}

/* So do those of its header. */
TEST(a_frame_that_has_only_begun_ends_with_silence)
{
	rogue = open_rogue(PERIOD_MS);
	rogue_write_raw(rogue, "x", 1);
	expect_end(&server, PLX_LINK_SILENT);
}

/* Long before its peer would be suspect; without heartbeats nothing else would end it. */
static void is_too_slow(uint32_t heartbeat_ms)
{
	rogue = open_rogue(heartbeat_ms);
	begin_frame(rogue);
	write_many(rogue, 1000);
	expect_soon(server.link->arrival.begin != UINT64_MAX);     /* a look has seen the frame */
	server.link->arrival.pace.counted_ns += 10 * PLX_NS_PER_S; /* as if they had passed */
	expect_end(&server, PLX_LINK_PROTOCOL);
	assert_has(server.text, "too slow: of a frame, 1008 bytes came");
	assert_has(server.text, "in the last 10 s less than 4 KiB/s");
}

PLX_TEST(a_frame_that_is_too_slow_ends_its_link)
{
	start(NULL);
	is_too_slow(PATIENT_MS);
	fixture_stop();
	start_with(PLX_NEVER);
	is_too_slow(0);
	fixture_stop();
}

/* As if the ten seconds of a message in several frames had passed: the bytes of its incomplete
 * frame count. */
PLX_TEST_WITH(bytes_of_a_frame_count_for_its_message, start_without_heartbeats, fixture_down)
{
	struct pace *pace;

	rogue = open_rogue(0);
	rogue_send_first(rogue, 2 * FRAME, 1000);
	expect_soon(server.link->partial.total);
	begin_frame(rogue);
	write_many(rogue, 50000);
	pace = &server.link->partial.pace;
	pace->counted_ns += 10 * PLX_NS_PER_S;
	expect_soon(server.closed || pace->from_bytes);
	assert_int_equal(server.closed, 0);
	assert_int_equal(pace->from_bytes, 1000 + 50008);
	pace->counted_ns += 10 * PLX_NS_PER_S;
	expect_end(&server, PLX_LINK_PROTOCOL);
	assert_has(server.text, "too slow: of a message of 409600 bytes, 1000 came");
}

int main(void)
{
	return is_provider_given() ? 77 : plx_test_run("tcp", NULL, NULL);
}
