/* SPDX-License-Identifier: BSD-3-Clause */
/* A publisher and a subscriber spread over lcores. Each publishing lcore has a publish socket and a
 * port, for the detectors that it reads out; each subscribing lcore subscribes to its share of the
 * ports. Lcores share nothing and lock nothing: they post to each other's loops.
 *
 * Try it:  NETIO_OPTIONS='-l 0,1' netio_cores publish 12345 100000    ports 12345 and 12346
 *          NETIO_OPTIONS='-l 2,3' netio_cores watch 12345 2           two ports from that one on */
#include "netio/netio.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST     64 /* readings per turn */
#define PORTS_MAX 64

/* State of one lcore. */
struct core {
	unsigned index; /* 0 to the number of lcores minus 1 */
	struct netio_eventloop *evloop;
	struct netio_eventloop own; /* of every lcore except the main one */
	struct netio_publish_socket publisher;
	struct netio_subscribe_socket subscriber;
	struct netio_timer timer;
	struct netio_subscription_cache cache;
	bool is_again;            /* a subscriber had no room for the newest reading */
	bool is_blocked;          /* and no room has been reported yet */
	uint64_t numbers;         /* of readings published or received */
	uint64_t next[PORTS_MAX]; /* next number of each publisher, by tag */
	uint64_t wrong;
	unsigned sources; /* publishers that are still connected */
	bool failed;
};

static struct netio_context ctx;
static struct core cores[PLX_LCORE_MAX];
static unsigned first_port, port_count;
static uint64_t reading_count; /* 0: this process watches */

/* Only on the main lcore. */
static unsigned done_count;
static uint64_t total, total_wrong;
static bool failed;

static void on_core_done(void *arg)
{
	const struct core *core = arg;

	total += core->numbers;
	total_wrong += core->wrong;
	failed |= core->failed;
	if (++done_count < plx_lcore_count())
		return;
	PLX_LCORE_FOREACH (id)
		netio_terminate(cores[id].evloop);
}

/* This lcore is done. */
static void core_done(struct core *core)
{
	netio_post(&ctx.evloop, on_core_done, core);
}

/* A reading is its number; its tag is the detector. */
static void publish_some(void *data)
{
	struct core *core = data;
	netio_tag_t tag = core->index;

	for (unsigned i = 0; i < BURST && !core->is_blocked && core->numbers < reading_count; i++) {
		int rc = netio_buffered_publish(&core->publisher, tag, &core->numbers,
						sizeof(core->numbers),
						core->is_again ? NETIO_REENTRY : 0, &core->cache);

		core->is_again = core->is_blocked = rc == NETIO_STATUS_AGAIN;
		core->numbers += !core->is_again;
	}
	if (core->numbers < reading_count)
		return;
	netio_timer_stop(&core->timer);
	netio_buffered_publish_flush(&core->publisher);
	core_done(core);
}

static void on_available(struct netio_publish_socket *socket)
{
	((struct core *)socket->data)->is_blocked = false;
}

static void on_subscribed(struct netio_subscriber *who, const struct netio_subscription *what)
{
	struct netio_publish_socket *socket = who->socket;
	struct core *core = socket->data;

	netio_timer_start_us(&core->timer, 100);
}

static int start_publisher(struct core *core)
{
	if (netio_publish_socket_init(core->evloop, &core->publisher, NULL) != 0 ||
	    netio_timer_init(core->evloop, &core->timer) != 0)
		return -1;
	core->publisher.data = core;
	core->publisher.cb_subscribed = on_subscribed;
	core->publisher.cb_buffers_available = on_available;
	core->timer.cb = publish_some;
	core->timer.data = core;
	return netio_publish_listen(&core->publisher, "127.0.0.1", first_port + core->index);
}

static void on_reading(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	struct core *core = socket->data;
	uint64_t number = UINT64_MAX;

	if (msg->len == sizeof(number))
		memcpy(&number, msg->data, sizeof(number));
	core->wrong += msg->tag >= PORTS_MAX || number != core->next[msg->tag]++;
	core->numbers++;
}

static void on_closed(struct netio_publisher *publisher, enum plx_link_reason reason,
		      const char *why)
{
	struct core *core = publisher->subscribe_socket->data;

	if (--core->sources == 0)
		core_done(core);
}

static int start_subscriber(struct core *core)
{
	/* No reconnects: a lost publisher is done. */
	const struct netio_subscribe_attr attr = {.connect.reconnect_min_ns = PLX_NEVER};

	if (netio_subscribe_socket_init(core->evloop, &core->subscriber, &attr) != 0)
		return -1;
	core->subscriber.data = core;
	core->subscriber.cb_connection_closed = on_closed;
	core->subscriber.cb_connection_refused = on_closed;
	core->subscriber.cb_msg_received = on_reading;
	for (unsigned i = 0; i < port_count; i++) {
		const struct netio_subscription all = {.last = UINT64_MAX};

		if (i % plx_lcore_count() != core->index)
			continue;
		if (netio_subscribe_to(&core->subscriber, "127.0.0.1", first_port + i, &all) != 0)
			return -1;
		core->sources++;
	}
	if (core->sources == 0)
		core_done(core);
	return 0;
}

static int run_core(void *arg)
{
	struct core *core = &cores[plx_lcore_id()];
	bool is_main = plx_lcore_id() == plx_lcore_main();

	core->evloop = is_main ? &ctx.evloop : &core->own;
	if (!is_main && netio_eventloop_init(core->evloop) != 0) {
		plx_stop();
		return 1;
	}
	if ((reading_count ? start_publisher(core) : start_subscriber(core)) != 0) {
		core->failed = true;
		plx_stop(); /* all of them */
	}
	netio_run(core->evloop);
	if (netio_drain(core->evloop, 5 * PLX_NS_PER_S) != 0)
		core->failed = true;
	return is_main ? 0 : netio_eventloop_fini(core->evloop);
}

static int run_all(void)
{
	unsigned index = 0;
	int rc, result = 1;

	PLX_LCORE_FOREACH (id)
		cores[id].index = index++;
	rc = plx_lcore_launch_all(run_core, NULL, NULL);
	if (plx_lcore_join_all(10 * PLX_NS_PER_S, &result) != 0 || result)
		rc = 1;
	PLX_LCORE_FOREACH (id)
		failed |= cores[id].failed;
	printf("%" PRIu64 " readings on %u lcores, %" PRIu64 " wrong\n", total, plx_lcore_count(),
	       total_wrong);
	return rc || failed || total_wrong || done_count < plx_lcore_count();
}

int main(int argc, char **argv)
{
	bool publishes = argc == 4 && strcmp(argv[1], "publish") == 0;
	int status = 1;

	if (!publishes && (argc != 4 || strcmp(argv[1], "watch") != 0)) {
		fprintf(stderr, "usage: netio_cores publish PORT READINGS\n"
				"       netio_cores watch PORT PORTS\n");
		return 2;
	}
	first_port = (unsigned)strtoul(argv[2], NULL, 10);
	if (publishes)
		reading_count = strtoull(argv[3], NULL, 10);
	else
		port_count = (unsigned)strtoul(argv[3], NULL, 10);
	if (publishes ? !reading_count : !port_count || port_count > PORTS_MAX) {
		fprintf(stderr, "netio_cores: give 1 reading or more, 1 to %d ports\n", PORTS_MAX);
		return 2;
	}
	if (netio_init(&ctx) == 0)
		status = run_all();
	return netio_fini(&ctx) != 0 ? 1 : status;
}
