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
static struct rogue *rogue, *other;
static struct side first;

static void listen_here(void *arg)
{
	listener = fixture_listen("127.0.0.1:0",
				  &(struct plx_link_attr){.rx_buf_bytes = 2 * FRAME});
}

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

static int start_with(uint64_t heartbeat_ns, bool two_lcores)
{
	fixture_start_beating(heartbeat_ns, 0, two_lcores);
	first = (struct side){0};
	listen_here(NULL);
	return 0;
}

PLX_FIXTURE(start, start_with(0, false), (void)0)

PLX_FIXTURE(start_without_heartbeats, start_with(PLX_NEVER, false), (void)0)

PLX_FIXTURE(start_two, 0, (start_with(0, true), worker_start()))

static int stop(void **state)
{
	rogue_drop(&rogue);
	rogue_drop(&other);
	return fixture_down(state);
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

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

/* As if the ten seconds had passed. */
static void let_time_pass(struct side *side)
{
	expect_soon(side->link->arrival.begin != UINT64_MAX); /* a look has seen the frame */
	side->link->arrival.pace.counted_ns += 10 * PLX_NS_PER_S;
}

static void expect_too_slow(struct side *side)
{
	expect_end(side, PLX_LINK_PROTOCOL);
	assert_has(side->text, "too slow: of a frame, ");
	assert_has(side->text, "in the last 10 s less than 4 KiB/s");
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

static void close_there(void *arg)
{
	plx_listener_close(listener);
}

PLX_TEST_WITH(bytes_to_one_lcore_count_for_the_others, start_two, stop)
{
	rogue = open_rogue(PERIOD_MS);
	server_set_aside(&first);
	worker_call(listen_here, NULL);
	other = open_rogue(PERIOD_MS);
	begin_frame(other);
	drip_ms(other, 3 * DEAD_MS);
	assert_int_equal(first.closed + server.closed, 0);
	assert_int_equal(first.suspect, first.heard); /* a busy host is late */
	expect_end(&first, PLX_LINK_SILENT);
	expect_end(&server, PLX_LINK_SILENT);
	worker_call(close_there, NULL);
	worker_stop();
}

/* Long before its peer would be suspect. */
TEST(a_frame_that_is_too_slow_ends_its_link)
{
	rogue = open_rogue(PATIENT_MS);
	begin_frame(rogue);
	drip_ms(rogue, PERIOD_MS);
	let_time_pass(&server);
	drip_ms(rogue, PERIOD_MS);
	expect_too_slow(&server);
}

/* Nothing else would end it. */
PLX_TEST_WITH(also_without_heartbeats, start_without_heartbeats, stop)
{
	rogue = open_rogue(0);
	begin_frame(rogue);
	write_many(rogue, 1000);
	let_time_pass(&server);
	expect_too_slow(&server);
	assert_has(server.text, "of a frame, 1008 bytes came");
}

PLX_TEST_WITH(a_frame_that_is_fast_enough_does_not, start_without_heartbeats, stop)
{
	rogue = open_rogue(0);
	begin_frame(rogue);
	write_many(rogue, 50000);
	let_time_pass(&server);
	expect_soon(server.link->arrival.pace.from_bytes); /* the next ten seconds */
	assert_int_equal(server.link->arrival.pace.from_bytes, 50008);
	assert_int_equal(server.closed, 0);
	let_time_pass(&server);
	expect_too_slow(&server);
}

/* Each frame has ten seconds. */
PLX_TEST_WITH(a_new_frame_begins_anew, start_without_heartbeats, stop)
{
	uint64_t begin;

	rogue = open_rogue(0);
	begin_frame(rogue);
	let_time_pass(&server);
	begin = server.link->arrival.begin;
	server.link->arrival.begin = begin + 1; /* as if it were another */
	expect_soon(server.link->arrival.begin == begin);
	assert_in_range(server.link->arrival.pace.counted_ns, 0, 5 * PLX_NS_PER_S);
	assert_int_equal(server.closed, 0);
}

/* As if the ten seconds of a message in several frames had passed: the bytes of its incomplete
 * frame count. */
PLX_TEST_WITH(bytes_of_a_frame_count_for_its_message, start_without_heartbeats, stop)
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
