/* SPDX-License-Identifier: BSD-3-Clause */
#include "misuse.h"
#include "netio_fixture.h"

static struct netio_send_socket sender;
static struct netio_buffered_send_socket buffered;
static struct netio_listen_socket listener;
static struct netio_push_socket pusher;
static struct netio_publish_socket publisher;
static struct netio_unbuffered_publish_socket at_once;
static struct netio_subscribe_socket subscriber;

static void set_up(void)
{
	netio_up(NULL);
	netio_send_socket_init(&ctx.evloop, &sender, NULL);
	netio_buffered_send_socket_init(&ctx.evloop, &buffered, NULL);
	netio_listen_socket_init(&ctx.evloop, &listener, NULL);
	netio_push_socket_init(&ctx.evloop, &pusher, NULL);
	netio_publish_socket_init(&ctx.evloop, &publisher, NULL);
	netio_unbuffered_publish_socket_init(&ctx.evloop, &at_once, NULL);
	netio_subscribe_socket_init(&ctx.evloop, &subscriber, NULL);
}

static void connect_sender(void)
{
	netio_connect(&sender, "127.0.0.1", 1);
}

static void send_message(void)
{
	netio_sendv_tagged(&sender, 0, NULL, 0);
}

static void send_buffered(void)
{
	netio_buffered_send(&buffered, "x", 1);
}

static void flush_buffered(void)
{
	netio_buffered_flush(&buffered);
}

static void listen_for_senders(void)
{
	netio_listen(&listener, "127.0.0.1", 0);
}

static void end_listener(void)
{
	netio_listen_socket_fini(&listener);
}

static void push(void)
{
	netio_pushv_tagged(&pusher, 0, NULL, 0);
}

static void publish(void)
{
	netio_buffered_publishv(&publisher, 0, NULL, 0, 0, NULL);
}

static void publish_at_once(void)
{
	uint64_t key = 0;

	netio_unbuffered_publishv_usr(&at_once, 0, NULL, 0, &key, 0, NULL, 0, 0);
}

static void subscribe(void)
{
	netio_subscribe_to(&subscriber, "127.0.0.1", 1, &(struct netio_subscription){.tag = 1});
}

static void end_subscriber(void)
{
	netio_subscribe_socket_fini(&subscriber);
}

PLX_TEST(sockets_are_used_on_the_lcore_of_their_loop)
{
	static const struct misuse misuses[] = {
		{connect_sender, "netio_connect"},
		{send_message, "netio_sendv_tagged"},
		{send_buffered, "netio_buffered_send"},
		{flush_buffered, "netio_buffered_flush"},
		{listen_for_senders, "netio_listen"},
		{end_listener, "netio_listen_socket_fini"},
		{push, "netio_pushv_tagged"},
		{publish, "netio_buffered_publishv"},
		{publish_at_once, "netio_unbuffered_publishv_usr"},
		{subscribe, "netio_subscribe_to"},
		{end_subscriber, "netio_subscribe_socket_fini"},
	};

	assert_misuses(set_up, misuses, PLX_ARRAY_LEN(misuses));
}

PLX_TEST_MAIN()
