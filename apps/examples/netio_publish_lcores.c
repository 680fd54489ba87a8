/* SPDX-License-Identifier: BSD-3-Clause */
/* A publisher on many lcores, which share nothing: each has a publish socket, a port and a tag.
 * Run it:  NETIO_OPTIONS='-l 0,1' netio_publish_lcores 100000      readings of each lcore
 *          netio_subscribe 0 1 127.0.0.1 PORT PORT      with the ports that it prints */
#include "netio/netio.h"
#include <stdio.h>

#define JOIN_NS (10 * PLX_NS_PER_S)

struct core {
	struct netio_eventloop evloop;
	struct netio_publish_socket socket;
	uint64_t next, count;
	bool is_again; /* a subscriber had no room for the newest reading */
};

/* Publishes until there is no room. cb_buffers_available continues. */
static void publish_readings(struct netio_publish_socket *socket)
{
	struct core *core = socket->data;

	while (core->next < core->count) {
		char text[64];
		int length = snprintf(text, sizeof(text), "reading %llu",
				      (unsigned long long)core->next);
		int rc = netio_buffered_publish(socket, plx_lcore_id(), text, (size_t)length,
						core->is_again ? NETIO_REENTRY : 0, NULL);

		core->is_again = rc == NETIO_STATUS_AGAIN;
		if (core->is_again)
			return;
		core->next++;
	}
	netio_terminate(&core->evloop);
}

static void on_subscribed(struct netio_subscriber *subscriber,
			  const struct netio_subscription *what)
{
	publish_readings(subscriber->socket);
}

static int publish(struct core *core)
{
	if (netio_publish_socket_init(&core->evloop, &core->socket, NULL) != 0)
		return -1;
	core->socket.data = core;
	core->socket.cb_subscribed = on_subscribed;
	core->socket.cb_buffers_available = publish_readings;
	if (netio_publish_listen(&core->socket, "127.0.0.1", 0) != 0)
		return -1;
	printf("lcore %u listens on 127.0.0.1:%u\n", plx_lcore_id(),
	       netio_publish_socket_port(&core->socket));
	if (netio_run(&core->evloop) != 0)
		return -1;
	return netio_drain(&core->evloop, 5 * PLX_NS_PER_S); /* sends what was published */
}

/* Runs on each lcore, because a socket belongs to the lcore that makes it. */
static int run(void *arg)
{
	struct core *core = (struct core *)arg + plx_lcore_id();
	int rc = netio_eventloop_init(&core->evloop);

	if (rc == 0)
		rc = publish(core);
	if (rc != 0)
		plx_stop(); /* the others, too */
	netio_publish_socket_fini(&core->socket);
	if (netio_eventloop_fini(&core->evloop) != 0)
		rc = -1;
	return rc != 0 || core->next < core->count;
}

int main(int argc, char **argv)
{
	static struct core cores[PLX_LCORE_MAX];
	struct netio_context ctx = {0};
	int failed, result = 1;
	uint64_t count;

	if (argc != 2 || plx_parse_uint("COUNT", argv[1], 1, 0, &count) != 0) {
		fprintf(stderr, "usage: netio_publish_lcores COUNT\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < PLX_LCORE_MAX; i++)
		cores[i].count = count;
	failed = netio_init(&ctx) != 0 || plx_lcore_launch_all(run, cores, &result) != 0 || result;
	failed |= plx_lcore_join_all(JOIN_NS, &result) != 0 || result;
	return netio_fini(&ctx) != 0 || failed;
}
