/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what publishers send with tags FIRST to LAST, until SIGINT. Publishers may come and go.
 * Run it:  netio_subscribe 0 2 127.0.0.1 12345      and netio_publish in another terminal
 * It takes several ports, such as those of netio_publish_lcores. */
#include "netio/netio.h"
#include <stdio.h>

struct subscriber {
	struct netio_context ctx;
	struct netio_subscribe_socket socket;
	unsigned long messages;
};

static void on_subscribed(struct netio_publisher *publisher, const struct netio_subscription *what)
{
	printf("subscribed to %s\n", publisher->address);
}

static void on_message(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	struct subscriber *subscriber = socket->data;

	subscriber->messages++;
	printf("tag %llu, %zu bytes: %.*s\n", (unsigned long long)msg->tag, msg->len,
	       msg->len < 80 ? (int)msg->len : 80, (const char *)msg->data);
}

/* NetIO connects and subscribes again. */
static void on_lost(struct netio_publisher *publisher, const struct netio_subscription *what,
		    const char *why)
{
	printf("lost tag %llu: %s\n", (unsigned long long)what->tag, why);
}

static void on_gap(struct netio_publisher *publisher, const struct netio_gap *gap)
{
	unsigned long long missed = gap->count; /* 0: unknown */
	char why[NETIO_GAP_TEXT_BYTES];

	printf("missed %llu messages: %s\n", missed, netio_gap_reasons_format(gap->reasons, why));
}

static int usage(void)
{
	fprintf(stderr, "usage: netio_subscribe FIRST LAST HOST PORT...\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct subscriber subscriber;
	struct netio_subscription what = {0};
	uint64_t port;
	int rc;

	if (argc < 5 || plx_parse_uint("FIRST", argv[1], 0, 0, &what.tag) != 0 ||
	    plx_parse_uint("LAST", argv[2], what.tag, 0, &what.last) != 0)
		return usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (netio_init(&subscriber.ctx) != 0 ||
	    netio_subscribe_socket_init(&subscriber.ctx.evloop, &subscriber.socket, NULL) != 0)
		return 1; /* NetIO logs what fails to standard error */
	subscriber.socket.data = &subscriber;
	subscriber.socket.cb_subscribed = on_subscribed;
	subscriber.socket.cb_subscription_lost = on_lost;
	subscriber.socket.cb_subscription_resumed = on_subscribed;
	subscriber.socket.cb_gap = on_gap;
	subscriber.socket.cb_msg_received = on_message;
	for (int i = 4; i < argc; i++) {
		if (plx_parse_uint("PORT", argv[i], 1, 65535, &port) != 0)
			return usage();
		if (netio_subscribe_to(&subscriber.socket, argv[3], (unsigned)port, &what) != 0)
			return 1;
	}
	plx_stop_on_signals();
	rc = netio_run(&subscriber.ctx.evloop); /* until SIGINT or SIGTERM */
	if (netio_fini(&subscriber.ctx) != 0)
		rc = -1;
	printf("%lu messages\n", subscriber.messages);
	return rc != 0;
}
