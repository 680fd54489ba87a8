/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that wait for the queue of a listening socket, by netio_recv_wait and by its descriptor.
 * tests/stress/netio_wait_test.c tests races. */
#include "socket_fixture.h"

#include "connection.h"

#include <poll.h>
#include <signal.h>

static const struct netio_listen_attr with_queue = {.queue_count = 4};
static struct netio_send_socket sender;

static void connect_sender(void)
{
	listen_with(&with_queue);
	assert_works(netio_send_socket_init(&ctx.evloop, &sender, NULL));
	connect_to_listening(&sender);
	TURN_UNTIL(heard.established == 1 && sender.connection->session.link);
}

static int wait_down(void **state)
{
	netio_send_socket_fini(&sender);
	sender = (struct netio_send_socket){0};
	return sockets_down(state);
}

#define WAIT_TEST(test) PLX_TEST_WITH(test, netio_up, wait_down)

static struct waiter {
	pthread_t thread;
	uint64_t timeout_ns;
	unsigned wanted;
	_Atomic char got[4]; /* the first byte of each message */
	int rc;
	_Atomic bool ended;
} waiter;

static void *take_some(void *arg)
{
	struct netio_msg msg;

	for (unsigned i = 0; i < waiter.wanted && waiter.rc == 0; i++) {
		waiter.rc = netio_recv_wait(&heard.socket, &msg, waiter.timeout_ns);
		if (waiter.rc)
			break;
		waiter.got[i] = *(const char *)msg.data;
		netio_msg_release(&msg);
	}
	waiter.ended = true;
	return NULL;
}

static void start_waiter(unsigned wanted, uint64_t timeout_ns)
{
	waiter = (struct waiter){.wanted = wanted, .timeout_ns = timeout_ns};
	threads_start(&waiter.thread, 1, take_some, NULL, 1);
}

static int end_waiter(void)
{
	TURN_UNTIL(waiter.ended);
	threads_join(&waiter.thread, 1);
	return waiter.rc;
}

static void until_it_sleeps(void)
{
	TURN_UNTIL(heard.socket.listener->queue->waits);
}

WAIT_TEST(a_thread_sleeps_until_a_message_arrives)
{
	connect_sender();
	start_waiter(3, PLX_NEVER);
	for (unsigned i = 0; i < 3; i++) {
		until_it_sleeps();
		assert_int_equal(netio_send(&sender, &"abc"[i], 1), 0);
		TURN_UNTIL(waiter.got[i]);
	}
	assert_int_equal(end_waiter(), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(waiter.got[i], "abc"[i]);
}

static void on_signal(int number)
{
}

WAIT_TEST(a_signal_handler_ends_a_wait)
{
	struct sigaction action = {.sa_handler = on_signal}, before;

	listen_with(&with_queue);
	sigaction(SIGUSR1, &action, &before);
	start_waiter(1, PLX_NEVER);
	until_it_sleeps();
	/* The first try may be too early. */
	wait_doing(waiter.ended, pthread_kill(waiter.thread, SIGUSR1); turn_ms(1));
	assert_int_equal(end_waiter(), -EINTR);
	sigaction(SIGUSR1, &before, NULL);
}

WAIT_TEST(neither_an_lcore_nor_a_thread_without_a_queue_waits)
{
	struct netio_msg msg;

	listen_with(&with_queue);
	assert_fails(netio_recv_wait(&heard.socket, &msg, 0), -EDEADLK, "an lcore must not wait");
	hear_no_more(&heard);
	listen_with(NULL);
	assert_fails(netio_recv_wait(&heard.socket, &msg, 0), -EINVAL,
		     "netio_recv_wait: the socket has no queue; set queue_count");
	assert_fails(netio_recv_fd(&heard.socket), -EINVAL,
		     "netio_recv_fd: the socket has no queue");
}

static bool is_readable(void)
{
	struct pollfd fd = {.fd = netio_recv_fd(&heard.socket), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

WAIT_TEST(the_descriptor_is_readable_when_messages_have_arrived)
{
	connect_sender();
	assert_true(is_readable()); /* at first: there may be messages already */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(take_queued(), 0);
		assert_false(is_readable());
		assert_int_equal(netio_send(&sender, "x", 1), 0);
		assert_int_equal(netio_send(&sender, "y", 1), 0);
		TURN_UNTIL(plx_ring_depth(heard.socket.listener->queue->ring) == 2);
		TURN_UNTIL(is_readable());
		assert_int_equal(take_queued(), 2);
		assert_false(is_readable());
	}
}

/* Called last in a turn. */
static int end_loop(void *arg, uint64_t now_ns)
{
	if (plx_ring_depth(heard.socket.listener->queue->ring))
		netio_terminate(&ctx.evloop);
	return 0;
}

WAIT_TEST(a_loop_that_returns_wakes_for_the_last_message)
{
	struct plx_poller *poller;

	connect_sender();
	netio_recv_fd(&heard.socket);
	assert_int_equal(take_queued(), 0);
	assert_works(plx_poller_add("end", end_loop, NULL, &poller));
	assert_int_equal(netio_send(&sender, "x", 1), 0);
	run();
	assert_true(is_readable());
	plx_poller_remove(poller);
}

PLX_TEST_MAIN()
