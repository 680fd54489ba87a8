/* SPDX-License-Identifier: BSD-3-Clause */
/* A publisher with default limits. Prints how long it took until --expect connections were open at
 * the same time, and serves until SIGTERM. */
#include "app.h"
#include "netio/netio.h"

#include <inttypes.h>

#define LOOK_NS (2 * PLX_NS_PER_MS)

static const char *listen_address;
static uint64_t expected, within_ns = 10 * PLX_NS_PER_S;

static const struct plx_option options[] = {
	PLX_ADDRESS("listen", &listen_address, "where", .required = true),
	PLX_UINT("expect", "N", &expected, 1, 0, "connections to time (default: none)"),
	PLX_TIME("within", "TIME", &within_ns, 1, 0, "report them at latest (default 10s)"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "crowd-server", .summary = "times connections", .options = options};

static struct netio_context ctx;
static struct netio_publish_socket publisher;
static struct plx_timer look;
static uint64_t start_ns, half_ns = PLX_NEVER, open_count;

/* A subscriber counts from its subscription on: then both sides have opened the connection. */
static void on_subscribed(struct netio_subscriber *subscriber,
			  const struct netio_subscription *what)
{
	open_count += subscriber->data == NULL;
	subscriber->data = &publisher;
}

static void on_closed(struct netio_subscriber *subscriber, enum plx_link_reason reason,
		      const char *why)
{
	open_count -= subscriber->data != NULL;
}

static int publish(void)
{
	/* Thousands of subscribers fit into memory. */
	const struct netio_publish_attr attr = {.page_bytes = 4096, .page_count = 4};
	char host[PLX_ADDRESS_MAX];
	unsigned port;

	if (plx_address_split("--listen", listen_address, host, &port) != 0 ||
	    netio_init(&ctx) != 0 || netio_publish_socket_init(&ctx.evloop, &publisher, &attr) != 0)
		return -1;
	publisher.cb_subscribed = on_subscribed;
	publisher.cb_connection_closed = on_closed;
	return netio_publish_listen(&publisher, host, port);
}

static void on_look(struct plx_timer *timer, void *arg)
{
	uint64_t count = open_count, passed_ns = plx_now_ns() - start_ns;

	if (half_ns == PLX_NEVER && count >= expected / 2)
		half_ns = passed_ns;
	if (count < expected && passed_ns < within_ns)
		return;
	plx_timer_stop(&look);
	plx_app_say("%" PRIu64 " of %" PRIu64 " open after %" PRIu64 " ms", count, expected,
		    passed_ns / PLX_NS_PER_MS);
	if (half_ns != PLX_NEVER)
		plx_app_say("half after %" PRIu64 " ms", half_ns / PLX_NS_PER_MS);
}

static int start(void)
{
	if (publish() != 0)
		return plx_app_fail(&app);
	start_ns = plx_now_ns();
	plx_app_say("listening on %s", listen_address);
	plx_timer_init(&look, on_look, NULL);
	if (expected)
		plx_timer_start_periodic(&look, LOOK_NS);
	plx_loop_run();
	plx_timer_stop(&look);
	return 0;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	status = start();
	netio_publish_socket_fini(&publisher);
	netio_fini(&ctx);
	return plx_app_finish(&app, status);
}
