/* SPDX-License-Identifier: BSD-3-Clause */
/* What callbacks see of the peer: its program and process id, and why the provider was chosen. Both
 * ends are in this process. */
#include "publish_fixture.h"

#include <errno.h>

static void expect_own(const char *program, pid_t pid)
{
	assert_in_range(strlen(program), 1, 15);
	assert_memory_equal(program, program_invocation_short_name, strlen(program));
	assert_int_equal(pid, getpid());
}

static void on_publisher_closed(struct netio_publisher *from, enum plx_link_reason reason,
				const char *why)
{
	expect_own(from->program, from->pid);
	assert_true(from->provider[0] && from->choice[0]);
	sub_closed(from, reason, why);
}

PUBSUB_TEST(publishers_and_subscribers_see_each_other)
{
	publish_with(&(struct netio_publish_attr){.provider = "auto"});
	sub_up(&subs[0], &(struct netio_subscribe_attr){.connect.provider = "auto"});
	subs[0].socket.cb_connection_closed = on_publisher_closed;
	SUBSCRIBE(0, .tag = 1);
	expect_own(subscriber->program, subscriber->pid);
	expect_own(subs[0].publisher->program, subs[0].publisher->pid);
	assert_memory_equal(subscriber->provider, "shm", 3);
	assert_string_equal(subs[0].publisher->provider, subscriber->provider);
	assert_string_equal(subs[0].publisher->choice, "the peer is on this host and offers it");
	assert_string_equal(subscriber->choice, "the peer chose it");
	netio_publish_socket_fini(&publisher);
	TURN_UNTIL(subs[0].closed);
	assert_string_equal(subs[0].publisher->program, "");
	assert_int_equal(subs[0].publisher->pid, 0);
	assert_string_equal(subs[0].publisher->choice, "");
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

PUBSUB_TEST(a_push_socket_and_its_receivers_see_each_other)
{
	struct netio_push_socket pusher;

	listen_with(NULL);
	assert_works(netio_push_socket_init(&ctx.evloop, &pusher, NULL));
	pusher.cb_connection_established = on_receiver;
	pusher.cb_connection_closed = on_receiver_closed;
	assert_works(netio_push_connect(&pusher, test_host(), heard.port));
	TURN_UNTIL(receiver && heard.from);
	expect_own(receiver->program, receiver->pid);
	expect_own(heard.from->program, heard.from->pid);
	assert_string_equal(receiver->choice, "it was asked for");
	assert_non_null(strstr(heard.from->choice, "shm is not offered here"));
	hear_no_more(&heard);
	TURN_UNTIL(!receiver->pid);
	assert_string_equal(receiver->program, "");
	netio_push_socket_fini(&pusher);
}

PLX_TEST_MAIN()
