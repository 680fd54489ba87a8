/* SPDX-License-Identifier: BSD-3-Clause */
/* What callbacks see of the peer: its program and process id, and why the provider was chosen. Both
 * ends are in this process. */
#include "publish_fixture.h"

#include <errno.h>

static int peers_down(void **state)
{
	int failed = pubsub_down(state);

	return (int)hear_no_more(&heard) + failed;
}

#define PEER_TEST(name) PLX_TEST_WITH(name, netio_up, peers_down)

static void expect_own(const char *program, pid_t pid)
{
	assert_in_range(strlen(program), 1, 15);
	assert_memory_equal(program, program_invocation_short_name, strlen(program));
	assert_int_equal(pid, getpid());
}

static void expect_over(const char *provider, const char *driver)
{
	assert_memory_equal(provider, driver, strlen(driver));
}

static void send_over(const char *driver)
{
	struct netio_send_socket sender;

	listen_with(&(struct netio_listen_attr){.provider = driver});
	assert_works(netio_send_socket_init(&ctx.evloop, &sender,
					    &(struct netio_connect_attr){.provider = driver}));
	connect_to_listening(&sender);
	TURN_UNTIL(heard.established);
	expect_own(heard.from->program, heard.from->pid);
	expect_over(heard.from->provider, driver);
	assert_string_equal(heard.from->choice, strcmp(driver, "shm") == 0
							? "the peer chose it"
							: "the peer is on this host, but shm is "
							  "not offered here");
	netio_send_socket_fini(&sender);
	TURN_UNTIL(heard.closed);
	hear_no_more(&heard);
}

PEER_TEST(a_listening_socket_sees_who_connects)
{
	send_over("tcp");
	send_over("shm");
}

static void on_publisher_closed(struct netio_publisher *from, enum plx_link_reason reason,
				const char *why)
{
	expect_own(from->program, from->pid);
	assert_true(from->provider[0] && from->choice[0]);
	sub_closed(from, reason, why);
}

static void on_publisher_lost(struct netio_publisher *from, const struct netio_subscription *what,
			      const char *why)
{
	expect_own(from->program, from->pid);
}

static void publish_over(const char *offered, const char *asked)
{
	publish_with(&(struct netio_publish_attr){.provider = offered});
	sub_up(&subs[0], &(struct netio_subscribe_attr){.connect.provider = asked});
	subs[0].socket.cb_connection_closed = on_publisher_closed;
	subs[0].socket.cb_subscription_lost = on_publisher_lost;
	SUBSCRIBE(0, .tag = 1);
	expect_own(subscriber->program, subscriber->pid);
	expect_own(subs[0].publisher->program, subs[0].publisher->pid);
	expect_over(subscriber->provider, subs[0].publisher->provider);
}

static void end_publishing(void)
{
	netio_publish_socket_fini(&publisher);
	TURN_UNTIL(subs[0].closed);
	assert_string_equal(subs[0].publisher->program, "");
	assert_int_equal(subs[0].publisher->pid, 0);
	assert_string_equal(subs[0].publisher->provider, "");
	assert_string_equal(subs[0].publisher->choice, "");
	netio_subscribe_socket_fini(&subs[0].socket);
}

PEER_TEST(publishers_and_subscribers_see_each_other)
{
	publish_over("tcp", "tcp");
	expect_over(subscriber->provider, "tcp");
	assert_string_equal(subs[0].publisher->choice, "it was asked for");
	end_publishing();
	publish_over("shm", "shm");
	expect_over(subscriber->provider, "shm");
	end_publishing();
}

PEER_TEST(both_see_why_tcp_was_chosen_although_shm_was_possible)
{
	publish_over("tcp", "auto");
	expect_over(subscriber->provider, "tcp");
	assert_string_equal(subs[0].publisher->choice,
			    "the peer is on this host, but offers nothing quicker there");
	assert_string_equal(subscriber->choice,
			    "the peer is on this host, but shm is not offered here");
	end_publishing();
	publish_over("auto", "tcp");
	assert_string_equal(subs[0].publisher->choice, "it was asked for");
	assert_string_equal(subscriber->choice,
			    "the peer is on this host and chose it, although shm is offered");
	end_publishing();
	publish_over("auto", "auto");
	expect_over(subscriber->provider, "shm");
	assert_string_equal(subs[0].publisher->choice, "the peer is on this host and offers it");
	end_publishing();
}

static struct netio_push_receiver *receiver;

static void on_receiver(struct netio_push_receiver *established)
{
	receiver = established;
}

static void on_receiver_closed(struct netio_push_receiver *closed, enum plx_link_reason reason,
			       const char *why)
{
	expect_own(closed->program, closed->pid);
}

PEER_TEST(a_push_socket_sees_its_receivers)
{
	struct netio_push_socket pusher;

	listen_with(NULL);
	assert_works(netio_push_socket_init(&ctx.evloop, &pusher, NULL));
	pusher.cb_connection_established = on_receiver;
	pusher.cb_connection_closed = on_receiver_closed;
	assert_works(netio_push_connect(&pusher, test_host(), heard.port));
	TURN_UNTIL(receiver);
	expect_own(receiver->program, receiver->pid);
	assert_string_equal(receiver->choice, "it was asked for");
	hear_no_more(&heard);
	TURN_UNTIL(!receiver->pid);
	assert_string_equal(receiver->program, "");
	netio_push_socket_fini(&pusher);
}

PLX_TEST_MAIN()
