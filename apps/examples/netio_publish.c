/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes readings of sensors 0 to 2. The tag of a reading is its sensor.
 * Run it:  netio_publish 12345 100      100 readings, from the first subscriber on
 * EAL options are in the environment: NETIO_OPTIONS='-l 2' netio_publish ... */
#include "netio/netio.h"
#include <stdio.h>

#define SENSORS   3
#define PERIOD_MS 10

struct publisher {
	struct netio_context ctx;
	struct netio_publish_socket socket;
	struct netio_timer timer;
	uint64_t next, count;
	bool is_again; /* a subscriber had no room for the newest reading */
};

/* A reading may be late but is not lost. If a subscriber had no room, the next period publishes the
 * reading again, to the subscribers that missed it. */
static void publish_next(void *data)
{
	struct publisher *publisher = data;
	char text[64];
	int length = snprintf(text, sizeof(text), "reading %llu",
			      (unsigned long long)publisher->next);
	int rc = netio_buffered_publish(&publisher->socket, publisher->next % SENSORS, text,
					(size_t)length, publisher->is_again ? NETIO_REENTRY : 0,
					NULL);

	publisher->is_again = rc == NETIO_STATUS_AGAIN;
	if (rc != NETIO_STATUS_OK && rc != NETIO_STATUS_NO_SUBSCRIBERS && !publisher->is_again)
		fprintf(stderr, "netio_publish: reading %llu: %s\n",
			(unsigned long long)publisher->next, plx_error());
	if (!publisher->is_again && ++publisher->next == publisher->count)
		netio_terminate(&publisher->ctx.evloop);
}

static void on_subscribed(struct netio_subscriber *subscriber,
			  const struct netio_subscription *what)
{
	struct netio_publish_socket *socket = subscriber->socket;
	struct publisher *publisher = socket->data;

	printf("%s subscribed\n", subscriber->peer);
	if (publisher->next == 0 && netio_timer_start_ms(&publisher->timer, PERIOD_MS) != 0)
		netio_terminate(&publisher->ctx.evloop);
}

int main(int argc, char **argv)
{
	static struct publisher publisher;
	uint64_t port;
	int rc;

	if (argc != 3 || plx_parse_uint("PORT", argv[1], 0, 65535, &port) != 0 ||
	    plx_parse_uint("COUNT", argv[2], 1, 0, &publisher.count) != 0) {
		fprintf(stderr, "usage: netio_publish PORT COUNT\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (netio_init(&publisher.ctx) != 0 ||
	    netio_publish_socket_init(&publisher.ctx.evloop, &publisher.socket, NULL) != 0 ||
	    netio_timer_init(&publisher.ctx.evloop, &publisher.timer) != 0)
		return 1; /* NetIO logs what fails to standard error */
	publisher.socket.data = &publisher;
	publisher.socket.cb_subscribed = on_subscribed;
	publisher.timer.cb = publish_next;
	publisher.timer.data = &publisher;
	if (netio_publish_listen(&publisher.socket, "127.0.0.1", (unsigned)port) != 0)
		return 1;
	printf("listening on 127.0.0.1:%u\n", netio_publish_socket_port(&publisher.socket));
	rc = netio_run(&publisher.ctx.evloop);
	netio_timer_stop(&publisher.timer);
	if (netio_fini(&publisher.ctx) != 0) /* sends what was published */
		rc = -1;
	return rc != 0 || publisher.next < publisher.count;
}
