/* SPDX-License-Identifier: BSD-3-Clause */
/* Detecting dead peers: with another process that can be stopped, and rogues that talk or stay
 * silent as a test needs. */
#include "fixture.h"
#include "rogue.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PERIOD_MS 100
#define DEAD_MS   500
#define QUICK_MS  300
#define MANY      1000
#define SEVERAL   40 /* more than are asked, or ended, in a turn */
/* Hosts are late; how much lateness a test allows that waits for a dead peer. */
#define LATE_MS 1500
/* Lateness of this process, also in earlier tests, extends its patience with peers. */
#define BORNE_MS 1500

/* Another process ---------------------------------------------------------------------------- */

static pid_t peer;
static char peer_address[PLX_ADDRESS_MAX];

static void echo(struct plx_link *link, struct plx_buf *message, void *user)
{
	plx_link_send(link, message->data, message->len);
}

/* Listens, prints the address, and turns its loop until killed. */
static void be_the_peer(int out)
{
	static const struct plx_link_events events = {.on_message = echo};
	struct plx_listen_attr attr = {.link = {.events = &events}};
	struct plx_listener *listener;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* even if the test crashes */
	fixture_start_beating(0, 0, false);
	if (plx_link_listen(here("0"), &attr, &listener) != 0)
		_exit(1);

	const char *address = plx_listener_address(listener);

	if (write(out, address, strlen(address) + 1) < 0)
		_exit(1);
	while (plx_loop_turn() >= 0)
		;
	_exit(1);
}

/* Before this process has threads. */
static void start_peer(void)
{
	int pipe_fds[2];

	assert_int_equal(pipe(pipe_fds), 0);
	peer = fork();
	assert_true(peer >= 0);
	if (peer == 0)
		be_the_peer(pipe_fds[1]);
	assert_true(read(pipe_fds[0], peer_address, sizeof(peer_address)) > 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void end_peer(void)
{
	if (!peer)
		return;
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	peer = 0;
}

/* Links to it -------------------------------------------------------------------------------- */

static struct side sides[MANY];

static void connect_to_peer(unsigned count)
{
	struct plx_link_attr attr = {.events = &side_events, .rx_buf_count = 2};

	for (unsigned i = 0; i < count; i++) {
		sides[i] = (struct side){.name = "one"};
		attr.user = &sides[i];
		if (plx_link_connect(peer_address, &attr, &sides[i].link) != 0)
			fail_msg("%s", plx_error());
		/* A few at a time: the peer's connection queue is short. */
		if ((i % 32 == 31 || i == count - 1) && !pump_until(&sides[i].opened, 1, 5000))
			fail_msg("link %u: %s", i, sides[i].text);
	}
	for (unsigned i = 0; i < count; i++)
		assert_true(pump_until(&sides[i].opened, 1, 5000));
}

static struct plx_link_stats stats_of_all(unsigned count)
{
	struct plx_link_stats sum = {0}, one;

	for (unsigned i = 0; i < count; i++) {
		if (sides[i].closed)
			fail_msg("link %u has ended: %s", i, sides[i].text);
		plx_link_stats_read(sides[i].link, &one);
		sum.heartbeats_sent += one.heartbeats_sent;
		sum.heartbeats_received += one.heartbeats_received;
		sum.frames_sent += one.frames_sent;
		sum.frames_received += one.frames_received;
	}
	return sum;
}

static unsigned ended(unsigned count)
{
	unsigned ended = 0;

	for (unsigned i = 0; i < count; i++)
		ended += sides[i].closed;
	return ended;
}

static int with_peer(void **state)
{
	start_peer();
	fixture_start_beating(0, 0, false);
	return 0;
}

static int two_alone(void **state)
{
	fixture_start_beating(0, 0, true);
	worker_start();
	return 0;
}

/* For a thousand links: a host that runs both processes with sanitizers may not have time for the
 * peer. */
static int with_patient_peer(void **state)
{
	more_descriptors();
	start_peer();
	fixture_start_beating(0, PLX_TEST_SANITIZED ? 30 * PLX_NS_PER_S : 0, false);
	return 0;
}

static int with_peer_and_two(void **state)
{
	start_peer();
	return two_alone(state);
}

static int without_peer(void **state)
{
	end_peer();
	pump_ms(50);
	fixture_stop();
	for (unsigned i = 0; i < MANY; i++)
		free(sides[i].last);
	memset(sides, 0, sizeof(sides));
	return 0;
}

/* Expect heartbeats of that many ns: one per period, and one more at the ends. A host that is short
 * of CPUs skips some. */
static void expect_beats(uint64_t count, uint64_t ns)
{
	uint64_t periods = ns / (PERIOD_MS * PLX_NS_PER_MS);

	assert_in_range(count, periods / 3, periods + 1);
}

#define WITH_PEER(test) PLX_TEST_WITH(test, with_peer, without_peer)

static void idle_links_beat(unsigned count)
{
	struct plx_link_stats before, after;
	uint64_t begin_ns;

	connect_to_peer(count);
	pump_ms(2 * PERIOD_MS);
	begin_ns = plx_now_ns();
	before = stats_of_all(count);
	pump_ms(10 * PERIOD_MS);
	after = stats_of_all(count);
	expect_beats(after.heartbeats_sent - before.heartbeats_sent, plx_now_ns() - begin_ns);
	/* A late one comes with the next. */
	expect_beats(after.heartbeats_received - before.heartbeats_received,
		     plx_now_ns() - begin_ns + PERIOD_MS * PLX_NS_PER_MS);
	assert_int_equal(after.heartbeats_sent - before.heartbeats_sent,
			 after.frames_sent - before.frames_sent);
	assert_int_equal(ended(count), 0);
}

WITH_PEER(a_link_sends_one_heartbeat_per_period)
{
	idle_links_beat(1);
}

PLX_TEST_WITH(a_thousand_links_to_a_process_share_one_heartbeat, with_patient_peer, without_peer)
{
	idle_links_beat(MANY);
}

WITH_PEER(a_peer_that_sends_messages_needs_no_heartbeats)
{
	connect_to_peer(2);
	pump_ms(2 * PERIOD_MS);

	struct plx_link_stats before = stats_of_all(2), after;
	uint64_t begin_ns = plx_now_ns(), most;

	for (unsigned i = 0; i < 50; i++) {
		plx_link_send(sides[0].link, "x", 1);
		pump_ms(20);
	}
	after = stats_of_all(2);
	/* The same for a peer that answers. A busy host makes pauses, which count as silence. */
	most = 3 + (plx_now_ns() - begin_ns - 50 * 20 * PLX_NS_PER_MS) / PLX_NS_PER_MS / PERIOD_MS;
	assert_true(pump_until(&sides[0].messages, 50, 2000));
	assert_in_range(after.heartbeats_sent - before.heartbeats_sent, 0, most);
	assert_in_range(after.heartbeats_received - before.heartbeats_received, 0, most);
}

/* Return: the duration. */
static unsigned pump_until_all_ended(unsigned count)
{
	uint64_t begin_ns = plx_now_ns();

	while (ended(count) < count && plx_now_ns() < begin_ns + 10 * PLX_NS_PER_S)
		plx_loop_turn();
	assert_int_equal(ended(count), count);
	return (unsigned)((plx_now_ns() - begin_ns) / PLX_NS_PER_MS);
}

WITH_PEER(a_stopped_peer_is_declared_dead)
{
	unsigned suspect_ms, dead_ms;
	uint64_t begin_ns;

	connect_to_peer(SEVERAL);
	pump_ms(3 * PERIOD_MS);
	kill(peer, SIGSTOP);
	assert_false(plx_link_is_suspect(sides[0].link));
	begin_ns = plx_now_ns();
	while (ended(SEVERAL) == 0 && !plx_link_is_suspect(sides[3].link) &&
	       plx_now_ns() < begin_ns + 5 * PLX_NS_PER_S)
		plx_loop_turn();
	suspect_ms = (unsigned)((plx_now_ns() - begin_ns) / PLX_NS_PER_MS);
	assert_int_equal(ended(SEVERAL), 0);
	/* Its last message may be a period older than the stop. */
	assert_in_range(suspect_ms, DEAD_MS / 2 - PERIOD_MS - 50, DEAD_MS / 2 + LATE_MS);

	dead_ms = suspect_ms + pump_until_all_ended(SEVERAL);
	assert_in_range(dead_ms, DEAD_MS - PERIOD_MS - 50, DEAD_MS + LATE_MS);
	for (unsigned i = 0; i < SEVERAL; i++) {
		assert_int_equal(sides[i].reason, PLX_LINK_SILENT);
		assert_has(sides[i].text, "has said nothing for ");
		assert_int_equal(sides[i].suspect, 1);
		assert_int_equal(sides[i].heard, 0);
	}
}

WITH_PEER(a_peer_that_resumes_in_time_is_no_longer_suspect)
{
	connect_to_peer(1);
	pump_ms(2 * PERIOD_MS);
	kill(peer, SIGSTOP);
	for (unsigned i = 0; i < 1000 && !ended(1) && !plx_link_is_suspect(sides[0].link); i++)
		pump_ms(1);
	kill(peer, SIGCONT);
	assert_int_equal(ended(1), 0);
	assert_true(plx_link_is_suspect(sides[0].link));
	for (unsigned i = 0; i < 1000 && !ended(1) && plx_link_is_suspect(sides[0].link); i++)
		pump_ms(1);
	assert_int_equal(ended(1), 0);
	assert_false(plx_link_is_suspect(sides[0].link));
	pump_ms(2 * DEAD_MS);
	assert_int_equal(ended(1), 0);
	assert_int_equal(sides[0].suspect, sides[0].heard);
	assert_in_range(sides[0].suspect, 1,
			10); /* on a host that stalls it may be suspect again */
}

/* Rogues ------------------------------------------------------------------------------------- */

static struct plx_listener *listener;
static struct rogue *rogue, *silent[3]; /* closed at the end of a test */
static struct side silent_sides[3];
static unsigned silent_count;

static int with_listener(uint64_t heartbeat_ns)
{
	fixture_start_beating(heartbeat_ns, 0, false);
	listener = fixture_listen(here("0"), NULL);
	return 0;
}

static int alone(void **state)
{
	return with_listener(0);
}

static int alone_without_heartbeats(void **state)
{
	return with_listener(UINT64_MAX);
}

static int alone_and_quick(void **state)
{
	return with_listener(10 * PLX_NS_PER_MS);
}

static int two_quick(void **state)
{
	fixture_start_beating(10 * PLX_NS_PER_MS, QUICK_MS * PLX_NS_PER_MS, true);
	worker_start();
	return 0;
}

static int all_down(void **state)
{
	while (silent_count > 0)
		rogue_close(silent[--silent_count]);
	rogue_drop(&rogue);
	fixture_stop();
	return 0;
}

static struct frame_hello hello_with(uint32_t heartbeat_ms, uint32_t dead_after_ms)
{
	struct frame_hello hello = rogue_good_hello();

	hello.heartbeat_ms = heartbeat_ms;
	hello.dead_after_ms = dead_after_ms;
	return hello;
}

static struct rogue *open_rogue_like(struct frame_hello hello)
{
	return rogue_open(listener, &hello);
}

static struct rogue *open_rogue(void)
{
	return open_rogue_like(hello_with(PERIOD_MS, DEAD_MS));
}

/* The next rogue's side is `server` again. */
static struct side *open_silent(struct frame_hello hello)
{
	struct side *side = &silent_sides[silent_count];

	silent[silent_count++] = open_rogue_like(hello);
	server_set_aside(side);
	return side;
}

static void beat(struct rogue *from)
{
	rogue_send_frame(from, (struct frame_header){FRAME_HEARTBEAT, 0, FRAME_HEARTBEAT_BYTES, 8});
}

/* Send heartbeats for that long, every 50 ms. */
static void beat_ms(struct rogue *from, unsigned ms)
{
	for (unsigned i = 0; i < ms / 50; i++) {
		beat(from);
		pump_ms(50);
	}
}

static void turn_and_expect_open(void)
{
	for (unsigned i = 0; i < 100; i++)
		plx_loop_turn();
	assert_int_equal(server.closed, 0);
}

static int with_rogue(void **state)
{
	alone(state);
	rogue = open_rogue();
	return 0;
}

#define ALONE(test)      PLX_TEST_WITH(test, alone, all_down)
#define WITH_ROGUE(test) PLX_TEST_WITH(test, with_rogue, all_down)

static uint64_t heartbeats_to(const struct side *side)
{
	return stats_of(side->link).heartbeats_sent;
}

WITH_ROGUE(a_peer_that_sends_only_heartbeats_is_alive)
{
	beat_ms(rogue, 2 * DEAD_MS);
	assert_int_equal(server.closed, 0);
	assert_false(plx_link_is_suspect(server.link));
	assert_in_range(stats_of(server.link).heartbeats_received, 15, 20);
	assert_true(pump_until(&server.closed, 1, DEAD_MS + LATE_MS));
	assert_int_equal(server.reason, PLX_LINK_SILENT);
}

ALONE(a_peer_that_requests_no_heartbeats_gets_none)
{
	rogue = open_rogue_like(hello_with(0, 0));
	pump_ms(3 * DEAD_MS);
	assert_int_equal(server.closed, 0);
	assert_int_equal(heartbeats_to(&server), 0);
	assert_false(plx_link_is_suspect(server.link));
}

PLX_TEST_WITH(a_side_that_sends_no_heartbeats_gets_none, alone_without_heartbeats, all_down)
{
	struct frame_hello hello;

	rogue = open_rogue();
	pump_ms(3 * DEAD_MS);
	assert_int_equal(server.closed, 0);
	assert_int_equal(heartbeats_to(&server), 0);
	hello = rogue_answer(rogue);
	assert_int_equal(hello.heartbeat_ms, 0);
	assert_int_equal(hello.dead_after_ms, 0);
}

WITH_ROGUE(hello_carries_the_requested_heartbeat_times)
{
	struct frame_hello hello = rogue_answer(rogue);

	assert_int_equal(hello.heartbeat_ms, PERIOD_MS);
	assert_int_equal(hello.dead_after_ms, DEAD_MS);
	assert_int_equal(hello.path, 0); /* the connecting side sets it */
}

/* Both ends of a link in one process need no heartbeats. */
ALONE(a_process_sends_itself_no_heartbeats)
{
	fixture_connect(listener, NULL);
	pump_ms(3 * PERIOD_MS);
	assert_int_equal(heartbeats_to(&server), 0);
	assert_int_equal(heartbeats_to(&client), 0);
}

/* A peer that dies before answering a close: 500 ms, where close_timeout_ns is 2 s. */
WITH_ROGUE(a_closing_link_whose_peer_dies_ends)
{
	plx_link_close(server.link);
	expect_end(&server, PLX_LINK_SILENT);
}

ALONE(the_longer_timeout_of_both_sides_applies)
{
	uint64_t begin_ns;

	rogue = open_rogue_like(hello_with(4 * PERIOD_MS, 4 * DEAD_MS));
	begin_ns = plx_now_ns();
	pump_ms(2 * DEAD_MS - 2 * PERIOD_MS);                        /* 800 ms: two periods */
	if (plx_now_ns() - begin_ns < 2 * DEAD_MS * PLX_NS_PER_MS) { /* the host is not busy */
		assert_false(plx_link_is_suspect(server.link));
		assert_in_range(heartbeats_to(&server), 1, 3);
	}
	assert_true(pump_until(&server.closed, 1, 4 * DEAD_MS + LATE_MS));
	assert_true(plx_now_ns() - begin_ns >= 4 * DEAD_MS * PLX_NS_PER_MS - 50 * PLX_NS_PER_MS);
	assert_int_equal(server.reason, PLX_LINK_SILENT);
}

static int alone_and_limited(void **state)
{
	fixture_start_as(&(struct plx_fabric_conf){.provider = provider_to_test(),
						   .dead_after_max_ns = DEAD_MS * PLX_NS_PER_MS},
			 false);
	listener = fixture_listen(here("0"), NULL);
	return 0;
}

PLX_TEST_WITH(a_listener_limits_the_silence_that_a_peer_asks_for, alone_and_limited, all_down)
{
	rogue = open_rogue_like(hello_with(PERIOD_MS, 100 * DEAD_MS));
	beat_ms(rogue, 2 * PERIOD_MS);
	assert_int_equal(server.closed, 0);
	assert_true(pump_until(&server.closed, 1, DEAD_MS + LATE_MS + BORNE_MS));
	assert_int_equal(server.reason, PLX_LINK_SILENT);
}

ALONE(a_heartbeat_on_one_link_counts_for_all_links_of_its_process)
{
	struct side *silent_side = open_silent(hello_with(PERIOD_MS, DEAD_MS));

	rogue = open_rogue();
	beat_ms(rogue, 2 * DEAD_MS);
	assert_int_equal(silent_side->closed + server.closed, 0);
	assert_true(pump_until(&server.closed, 1, DEAD_MS + LATE_MS + BORNE_MS));
	assert_true(pump_until(&silent_side->closed, 1, PERIOD_MS));
}

/* Links that agreed on other times have other timeouts. */
ALONE(a_heartbeat_does_not_count_for_other_processes_paths_or_times)
{
	static const char *const kinds[] = {"another process", "another path", "other times"};
	struct frame_hello hellos[3];

	for (size_t i = 0; i < PLX_ARRAY_LEN(kinds); i++)
		hellos[i] = hello_with(PERIOD_MS, DEAD_MS);
	hellos[0].incarnation++;
	hellos[1].path++;
	hellos[2].dead_after_ms++;
	for (size_t i = 0; i < PLX_ARRAY_LEN(kinds); i++)
		open_silent(hellos[i]);
	rogue = open_rogue();
	beat_ms(rogue, DEAD_MS + LATE_MS);
	for (size_t i = 0; i < PLX_ARRAY_LEN(kinds); i++) {
		if (!silent_sides[i].closed)
			fail_msg("%s is still open", kinds[i]);
		assert_int_equal(silent_sides[i].reason, PLX_LINK_SILENT);
	}
	assert_int_equal(server.closed, 0);
}

/* This process's lost time is not the peer's silence. */
WITH_ROGUE(a_process_that_was_stopped_declares_no_peer_dead)
{
	beat_ms(rogue, 2 * PERIOD_MS);
	usleep((DEAD_MS + 3 * PERIOD_MS) * 1000);
	turn_and_expect_open();
	assert_false(plx_link_is_suspect(server.link));
	beat_ms(rogue, 2 * PERIOD_MS);
	assert_int_equal(server.closed, 0);

	/* The patience is longer now, but bounded. */
	uint64_t begin_ns = plx_now_ns();

	assert_true(pump_until(&server.closed, 1, 3 * DEAD_MS + LATE_MS + BORNE_MS));
	assert_true(plx_now_ns() - begin_ns > (DEAD_MS + PERIOD_MS) * PLX_NS_PER_MS);
}

/* Both were stopped, longer than an lcore is waited for, as when their host is suspended. Right
 * after it nothing is heard, and the sets, cold by then, are not all polled. */
PLX_TEST_WITH(a_long_stop_of_both_sides_declares_no_peer_dead, alone_and_quick, all_down)
{
	rogue = open_rogue_like(hello_with(10, QUICK_MS));
	beat_ms(rogue, 100);
	usleep(12 * QUICK_MS * 1000);
	turn_and_expect_open();
	beat_ms(rogue, 200);
	assert_int_equal(server.closed, 0);
}

/* A link over a provider new to this lcore, in a long turn: the new set knows nothing yet, and the
 * others only old data. */
PLX_TEST_WITH(opening_a_new_set_declares_no_peer_dead, alone_and_quick, all_down)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client, .provider = "shm"};

	rogue = open_rogue_like(hello_with(10, QUICK_MS));
	beat_ms(rogue, 100);
	beat(rogue);
	usleep(2 * QUICK_MS * 1000);
	plx_link_connect(here("1"), &attr, &client.link);
	turn_and_expect_open();
}

/* Two lcores --------------------------------------------------------------------------------- */

static void listen_there(void *arg)
{
	listener = fixture_listen(here("0"), NULL);
}

static void stand_still(void *arg)
{
	usleep((DEAD_MS + 5 * PERIOD_MS) * 1000);
}

static void close_there(void *arg)
{
	plx_listener_close(listener);
}

PLX_TEST_WITH(a_verdict_waits_only_a_bounded_time_for_another_lcore, two_quick, all_down)
{
	struct side *side;
	uint64_t begin_ns;

	listener = fixture_listen(here("0"), NULL);
	side = open_silent(hello_with(10, QUICK_MS));
	worker_call(listen_there, NULL);
	rogue = open_rogue_like(hello_with(10, QUICK_MS));
	beat(silent[0]);
	begin_ns = plx_now_ns();
	worker_stop(); /* its loop has ended, and its link is still open */
	assert_true(pump_until(&side->closed, 1, 10 * QUICK_MS + 3 * LATE_MS));
	assert_true(plx_now_ns() - begin_ns > 9 * QUICK_MS * PLX_NS_PER_MS);
	assert_int_equal(side->reason, PLX_LINK_SILENT);
	assert_int_equal(server.closed, 0);

	/* The verdict also applies to that lcore when it continues. */
	beat(rogue);
	worker_start();
	assert_true(pump_until(&server.closed, 1, LATE_MS));
	worker_call(close_there, NULL);
	worker_stop();
}

static void connect_from_there(void *arg)
{
	struct plx_link_attr attr = {.events = &side_events, .user = arg};

	assert_int_equal(plx_link_connect(peer_address, &attr, &((struct side *)arg)->link), 0);
}

static void stats_there(void *arg)
{
	plx_link_stats_read(sides[1].link, arg);
}

static void abort_there(void *arg)
{
	plx_link_abort(sides[1].link);
}

PLX_TEST_WITH(links_of_two_lcores_to_a_process_share_one_heartbeat, with_peer_and_two, without_peer)
{
	struct plx_link_stats one[2], there[2];
	uint64_t begin_ns;

	connect_to_peer(1);
	sides[1] = (struct side){.name = "there"};
	worker_call(connect_from_there, &sides[1]);
	assert_true(pump_until(&sides[1].opened, 1, 3000));
	pump_ms(2 * PERIOD_MS);
	begin_ns = plx_now_ns();
	for (unsigned i = 0; i < 2; i++) {
		plx_link_stats_read(sides[0].link, &one[i]);
		worker_call(stats_there, &there[i]);
		if (i == 0)
			pump_ms(10 * PERIOD_MS);
	}
	expect_beats(one[1].heartbeats_sent - one[0].heartbeats_sent + there[1].heartbeats_sent -
			     there[0].heartbeats_sent,
		     plx_now_ns() - begin_ns);
	assert_int_equal(ended(2), 0);
	worker_call(abort_there, NULL);
	assert_true(pump_until(&sides[1].closed, 1, 3000));
	worker_stop();
}

/* A silent link here, and one there on which its process is heard. */
PLX_TEST_WITH(a_verdict_waits_for_a_stalled_lcore_that_may_have_heard_the_peer, two_alone, all_down)
{
	struct side *silent_side;

	listener = fixture_listen(here("0"), NULL);
	silent_side = open_silent(hello_with(PERIOD_MS, DEAD_MS));
	worker_call(listen_there, NULL);
	rogue = open_rogue();
	beat_ms(rogue, 2 * DEAD_MS);
	assert_int_equal(silent_side->closed + server.closed, 0);

	assert_int_equal(plx_lcore_send(1, stand_still, NULL), 0);
	beat_ms(rogue, DEAD_MS + 4 * PERIOD_MS);
	assert_int_equal(silent_side->closed, 0);
	beat_ms(rogue, 3 * PERIOD_MS);
	assert_int_equal(silent_side->closed + server.closed, 0);

	assert_true(pump_until(&silent_side->closed, 1, 4 * DEAD_MS + LATE_MS));
	assert_true(pump_until(&server.closed, 1, 4 * DEAD_MS + LATE_MS));
	assert_int_equal(silent_side->reason, PLX_LINK_SILENT);
	assert_int_equal(server.reason, PLX_LINK_SILENT);
	worker_call(close_there, NULL);
	worker_stop();
}

/* Set-up --------------------------------------------------------------------------------------- */

PLX_TEST(a_limit_below_the_own_silence_is_refused)
{
	struct plx_fabric_conf conf = {.drivers = plx_drivers,
				       .dead_after_max_ns = 499 * PLX_NS_PER_MS};

	assert_fails(plx_fabric_init(&conf), -EINVAL,
		     "dead_after_max_ns 499000000: out of range; give 500000000 to "
		     "86400000000000");
}

static int refuses(uint64_t heartbeat_ns, uint64_t dead_after_ns)
{
	struct plx_fabric_conf conf = {.drivers = plx_drivers,
				       .heartbeat_ns = heartbeat_ns,
				       .dead_after_ns = dead_after_ns};

	return plx_fabric_init(&conf);
}

PLX_TEST(heartbeat_times_out_of_range_are_refused)
{
	assert_int_equal(refuses(PLX_HEARTBEAT_NS_MIN - 1, 0), -EINVAL);
	assert_string_equal(plx_error(),
			    "heartbeat_ns 9000000: out of range; give 10000000 to 3600000000000");
	assert_int_equal(refuses(PLX_HEARTBEAT_NS_MAX + PLX_NS_PER_MS, 0), -EINVAL);
	assert_int_equal(refuses(PLX_HEARTBEAT_NS_MIN, 39 * PLX_NS_PER_MS), -EINVAL);
	assert_string_equal(
		plx_error(),
		"dead_after_ns 39000000: out of range; give 40000000 to 86400000000000");
	assert_int_equal(refuses(0, PLX_DEAD_AFTER_NS_MAX + PLX_NS_PER_MS), -EINVAL);
}

PLX_TEST_MAIN()
