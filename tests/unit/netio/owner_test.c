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

static uint64_t key;

MISUSE(netio_connect, &sender, "127.0.0.1", 1)
MISUSE(netio_sendv_tagged, &sender, 0, NULL, 0)
MISUSE(netio_buffered_send, &buffered, "x", 1)
MISUSE(netio_buffered_flush, &buffered)
MISUSE(netio_listen, &listener, "127.0.0.1", 0)
MISUSE(netio_listen_socket_fini, &listener)
MISUSE(netio_pushv_tagged, &pusher, 0, NULL, 0)
MISUSE(netio_buffered_publishv, &publisher, 0, NULL, 0, 0, NULL)
MISUSE(netio_unbuffered_publishv_usr, &at_once, 0, NULL, 0, &key, 0, NULL, 0, 0)
MISUSE(netio_subscribe_to, &subscriber, "127.0.0.1", 1, &(struct netio_subscription){.tag = 1})
MISUSE(netio_subscribe_socket_fini, &subscriber)

PLX_TEST(sockets_are_used_on_the_lcore_of_their_loop)
{
	static const struct misuse misuses[] = {
		MISUSE_ROW(netio_connect),
		MISUSE_ROW(netio_sendv_tagged),
		MISUSE_ROW(netio_buffered_send),
		MISUSE_ROW(netio_buffered_flush),
		MISUSE_ROW(netio_listen),
		MISUSE_ROW(netio_listen_socket_fini),
		MISUSE_ROW(netio_pushv_tagged),
		MISUSE_ROW(netio_buffered_publishv),
		MISUSE_ROW(netio_unbuffered_publishv_usr),
		MISUSE_ROW(netio_subscribe_to),
		MISUSE_ROW(netio_subscribe_socket_fini),
	};

	assert_misuses(set_up, misuses, PLX_ARRAY_LEN(misuses));
}

PLX_TEST_MAIN()
