/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening socket that spreads its connections over three lcores. They share a CPU, and the
 * other two sleep whenever they can. The test runs on the main lcore and turns its loop. */
#include "socket_fixture.h"

#include "raw_link.h"

#define LCORES  3
#define SENDERS 12

static struct netio_eventloop loops[LCORES]; /* of the workers */
static _Atomic bool is_set_up[LCORES];
static struct netio_send_socket senders[SENDERS];
static unsigned answers, ends; /* of the senders */

/* By lcore. */
static struct {
	_Atomic unsigned established, closed, messages, misplaced;
} at[LCORES];

static unsigned here(const struct netio_recv_socket *socket)
{
	unsigned id = plx_lcore_id();

	at[id].misplaced += socket->id >> 48 != id;
	return id;
}

static void on_established(struct netio_recv_socket *socket)
{
	at[here(socket)].established++;
}

static void on_closed(struct netio_recv_socket *socket, enum plx_link_reason reason,
		      const char *why)
{
	at[here(socket)].closed++;
}

static void on_message(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	at[here(socket)].messages++;
	at[here(socket)].misplaced += msg->source != socket->id;
	netio_reply(socket, msg->data, msg->len);
}

static unsigned open_on(unsigned id)
{
	return at[id].established - at[id].closed;
}

static unsigned open_in_all(void)
{
	return open_on(0) + open_on(1) + open_on(2);
}

static void listen_spread(enum netio_spread spread)
{
	assert_works(netio_listen_socket_init(&ctx.evloop, &heard.socket,
					      &(struct netio_listen_attr){.spread = spread}));
	heard.socket.cb_connection_established = on_established;
	heard.socket.cb_connection_closed = on_closed;
	heard.socket.cb_msg_received = on_message;
	assert_works(netio_listen(&heard.socket, test_host(), 0));
}

static void on_answer(struct netio_send_socket *socket, const struct netio_msg *msg)
{
	answers += msg->len == 5;
}

PLX_COUNTS(on_end, ends, struct netio_send_socket *socket, enum plx_link_reason reason,
	   const char *why)

static void start_sender(unsigned i)
{
	const struct netio_connect_attr once = {.reconnect_min_ns = UINT64_MAX};

	assert_works(netio_send_socket_init(&ctx.evloop, &senders[i], &once));
	senders[i].cb_msg_received = on_answer;
	senders[i].cb_connection_closed = on_end;
	connect_to_listening(&senders[i]);
}

static void start_senders_one_by_one(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		unsigned before = open_in_all();

		start_sender(i);
		TURN_UNTIL(open_in_all() == before + 1);
	}
}

static void assert_open(unsigned on_0, unsigned on_1, unsigned on_2)
{
	TURN_UNTIL(open_in_all() == on_0 + on_1 + on_2);
	assert_int_equal(open_on(0), on_0);
	assert_int_equal(open_on(1), on_1);
	assert_int_equal(open_on(2), on_2);
}

static int run_worker(void *arg)
{
	struct netio_eventloop *evloop = &loops[plx_lcore_id()];
	int rc = netio_eventloop_init(evloop);

	is_set_up[plx_lcore_id()] = true;
	if (rc == 0)
		rc = netio_run(evloop);
	return rc ? rc : netio_eventloop_fini(evloop);
}

static void start_worker(unsigned id)
{
	is_set_up[id] = false;
	assert_works(plx_lcore_launch(id, run_worker, NULL));
	TURN_UNTIL(is_set_up[id] && plx_loop_is_running(id));
}

/* Turns this lcore's loop meanwhile. */
static void end_worker(unsigned id)
{
	int result = -1, rc;

	if (plx_lcore_count() == 0 || plx_lcore_state(id) == PLX_LCORE_WAIT)
		return;
	netio_terminate(&loops[id]);
	do
		turn_ms(1);
	while ((rc = plx_lcore_join(id, 0, &result)) == -ETIMEDOUT);
	assert_int_equal(rc, 0);
	assert_int_equal(result, 0);
}

static int workers_up(void **state)
{
	unsigned cpu = (unsigned)sched_getcpu();
	char options[64];

	memset(at, 0, sizeof(at));
	memset(senders, 0, sizeof(senders));
	answers = ends = 0;
	snprintf(options, sizeof(options), "-l 0@%u,1@%u,2@%u --idle event", cpu, cpu, cpu);
	netio_up_with(options);
	start_worker(1);
	start_worker(2);
	return 0;
}

static int workers_down(void **state)
{
	for (unsigned i = 0; i < SENDERS; i++)
		netio_send_socket_fini(&senders[i]);
	end_worker(1);
	end_worker(2);
	for (unsigned i = 0; i < LCORES; i++)
		assert_int_equal(at[i].misplaced, 0);
	return sockets_down(state);
}

#define SPREAD_TEST(test) PLX_TEST_WITH(test, workers_up, workers_down)

PLX_READS(struct plx_listener_stats, stats, (void),
	  plx_listener_stats_read(heard.socket.listener->acceptor.listener, &it))

SPREAD_TEST(each_lcore_gets_a_connection_in_turn_and_answers_on_it)
{
	listen_spread(NETIO_SPREAD_ROUND_ROBIN);
	start_senders_one_by_one(0, 6);
	assert_open(2, 2, 2);
	for (unsigned i = 0; i < 6; i++)
		TURN_UNTIL(netio_send(&senders[i], "hello", 5) == 0);
	TURN_UNTIL(answers == 6);
	for (unsigned i = 0; i < LCORES; i++)
		assert_int_equal(at[i].messages, 2);
}

SPREAD_TEST(the_lcore_with_the_fewest_connections_gets_the_next)
{
	listen_spread(NETIO_SPREAD_LEAST_LOAD);
	start_senders_one_by_one(0, 6);
	assert_open(2, 2, 2);
	netio_disconnect(&senders[1]);
	netio_disconnect(&senders[4]);
	TURN_UNTIL(open_in_all() == 4);
	assert_open(2, 0, 2);
	for (unsigned i = 6; i < 10; i++) /* connections not yet open count too */
		start_sender(i);
	TURN_UNTIL(open_in_all() == 8);
	for (unsigned i = 0; i < LCORES; i++)
		assert_in_range(open_on(i), 2, 3);
}

SPREAD_TEST(a_connection_that_never_opens_does_not_count_as_load)
{
	listen_spread(NETIO_SPREAD_LEAST_LOAD);
	start_senders_one_by_one(0, 1);
	raw_connect_to_listening(
		&(struct wire_greeting)GREETING_OF(WIRE_HELLO, 0, 0, WIRE_SENDER, 4096));
	TURN_UNTIL(raw_closed == 1 && stats().failed == 1);
	start_senders_one_by_one(1, 3);
	assert_open(1, 1, 1);
}

SPREAD_TEST(a_drain_closes_the_connections_of_all_lcores)
{
	listen_spread(NETIO_SPREAD_ROUND_ROBIN);
	for (unsigned round = 1; round <= 2; round++) {
		start_senders_one_by_one(0, 6);
		assert_works(netio_drain(&ctx.evloop, LIMIT_NS));
		assert_int_equal(open_in_all(), 0); /* after all callbacks */
		assert_int_equal(at[1].closed, 2 * round);
		assert_int_equal(netio_listen_socket_port(&heard.socket), 0);
		assert_works(netio_listen(&heard.socket, test_host(), 0));
	}
	netio_listen_socket_fini(&heard.socket);
	memset(&heard.socket, 0xa5, sizeof(heard.socket)); /* nothing reads it */
	turn_ms(10);
	memset(&heard.socket, 0, sizeof(heard.socket));
}

SPREAD_TEST(an_lcore_that_ends_closes_its_connections)
{
	listen_spread(NETIO_SPREAD_ROUND_ROBIN);
	start_senders_one_by_one(0, 6);
	end_worker(1);
	assert_int_equal(at[1].closed, 2);
	TURN_UNTIL(ends == 2);
	assert_open(2, 0, 2);
	start_senders_one_by_one(6, 8);
	assert_open(3, 0, 3);
}

PLX_TEST_MAIN()
