/* SPDX-License-Identifier: BSD-3-Clause */
/* A control service that raises alarms, and watchers of all alarms, one severity or one device.
 * Watchers may come and go at any time, even before the service is up.
 *
 * Try it:  netio_alarm raise 12345 20
 *          netio_alarm watch 12345 severity 2       in other terminals
 *          netio_alarm watch 12345 device 7 */
#include "netio/netio.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tag identifies the subject of an alarm, so each watcher gets only what it requested. */
#define SEVERITY_SHIFT 32
#define SEVERITY_MASK  (UINT64_C(0xff) << SEVERITY_SHIFT)
#define DEVICE_MASK    UINT64_C(0xffffffff)

#define ALARMS_PER_S   10

static struct netio_context ctx;
static int status;

/* Raising ------------------------------------------------------------------------------------- */

static struct netio_publish_socket publisher;
static unsigned raised, to_raise;

static void on_watched(struct netio_subscriber *who, const struct netio_subscription *what)
{
	printf("%s watches\n", who->peer);
}

/* An alarm may be late but is not lost: if a watcher has no room, the alarm is raised again later.
 * Watchers that have it do not get it twice. */
static void raise_one(void *data)
{
	static bool is_again;
	uint64_t severity = raised % 3, device = raised % 10;
	char text[64];
	int length = snprintf(text, sizeof(text), "alarm %u: device %" PRIu64 ", severity %" PRIu64,
			      raised, device, severity);
	int rc = netio_buffered_publish(&publisher, severity << SEVERITY_SHIFT | device, text,
					(size_t)length, is_again ? NETIO_REENTRY : 0, NULL);

	is_again = rc == NETIO_STATUS_AGAIN;
	if (!is_again && ++raised == to_raise)
		netio_terminate(&ctx.evloop);
}

static int serve(unsigned port, unsigned count)
{
	struct netio_timer timer;

	to_raise = count;
	if (netio_publish_socket_init(&ctx.evloop, &publisher, NULL) != 0 ||
	    netio_timer_init(&ctx.evloop, &timer) != 0)
		return 1;
	publisher.cb_subscribed = on_watched;
	if (netio_publish_listen(&publisher, "127.0.0.1", port) != 0)
		return 1;
	printf("listening on 127.0.0.1:%u\n", netio_publish_socket_port(&publisher));
	timer.cb = raise_one;
	timer.data = NULL;
	netio_timer_start_ms(&timer, 1000 / ALARMS_PER_S);
	netio_run(&ctx.evloop);
	netio_timer_stop(&timer);
	netio_publish_socket_fini(&publisher);
	return 0;
}

/* Watching ------------------------------------------------------------------------------------ */

static void on_alarm(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	printf("%.*s\n", (int)msg->len, (const char *)msg->data);
}

static void on_subscribed(struct netio_publisher *service, const struct netio_subscription *what)
{
	printf("watching %s\n", service->address);
}

/* This watcher ends with the service. Another one would let NetIO reconnect. */
static void on_closed(struct netio_publisher *service, enum plx_link_reason reason, const char *why)
{
	printf("%s: %s\n", service->address, why);
	status = reason == PLX_LINK_CLOSED ? 0 : 1;
	netio_terminate(&ctx.evloop);
}

static int watch(unsigned port, const char *field, const char *value)
{
	struct netio_subscription what = {
		.last = UINT64_MAX, /* everything */
		.delivery = NETIO_DELIVERY_AT_ONCE,
	};
	struct netio_subscribe_socket socket;

	if (field) {
		uint64_t number = strtoull(value, NULL, 0);
		bool is_severity = strcmp(field, "severity") == 0;

		what.last = 0;
		what.mask = is_severity ? SEVERITY_MASK : DEVICE_MASK;
		what.tag = is_severity ? number << SEVERITY_SHIFT & SEVERITY_MASK
				       : number & DEVICE_MASK;
	}
	if (netio_subscribe_socket_init(&ctx.evloop, &socket, NULL) != 0)
		return 1;
	socket.cb_subscribed = on_subscribed;
	socket.cb_connection_closed = on_closed;
	socket.cb_msg_received = on_alarm;
	if (netio_subscribe_to(&socket, "127.0.0.1", port, &what) != 0)
		return 1;
	netio_run(&ctx.evloop);
	netio_subscribe_socket_fini(&socket);
	return status;
}

static int usage(void)
{
	fprintf(stderr, "usage: netio_alarm raise PORT COUNT\n"
			"       netio_alarm watch PORT [severity 0-2 | device 0-9]\n");
	return 2;
}

int main(int argc, char **argv)
{
	bool is_raise = argc == 4 && strcmp(argv[1], "raise") == 0;
	bool is_watch = (argc == 3 || argc == 5) && strcmp(argv[1], "watch") == 0;
	unsigned port;
	int rc;

	if (argc == 5 && strcmp(argv[3], "severity") != 0 && strcmp(argv[3], "device") != 0)
		return usage();
	if (!is_raise && !is_watch)
		return usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	port = (unsigned)strtoul(argv[2], NULL, 10);
	if (netio_init(&ctx) != 0)
		return 1;
	rc = is_raise ? serve(port, (unsigned)strtoul(argv[3], NULL, 10))
		      : watch(port, argc == 5 ? argv[3] : NULL, argc == 5 ? argv[4] : NULL);
	return netio_fini(&ctx) != 0 || rc ? 1 : 0;
}
