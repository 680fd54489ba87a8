/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-echo: sends every message back to where it came from. The smallest useful service on Pollux,
 * and the file to read first. How a message travels:
 *
 *   main            here, brings the lcores up, listens, and lets every lcore run its loop
 *   the listener    (lib/fabric/listen/handover.c) gives each new link to one of them
 *   the loop        (lib/lcore/loop/loop.c) polls; when the provider has a message it calls
 *   on_message      (service.c) on the lcore that owns the link, which answers at once
 *
 * Try it:  plx-echo --listen 127.0.0.1:7000
 *          plx-ping --connect 127.0.0.1:7000
 *
 * With --service it is called instead: see rpc.c, and doc/guide/services.md. */
#include "plx_app.h"
#include "plx_fabric.h"
#include "plx_lcore.h"
#include "rpc.h"
#include "service.h"

#include <inttypes.h>

#define DRAIN_NS (500 * PLX_NS_PER_MS)
#define JOIN_NS  (5 * PLX_NS_PER_S)

static const char *listen_address;
static uint64_t rx_buf_bytes = 4096;
static uint64_t rx_buf_count; /* 0: what the service asks for */
static bool sink, is_called;

static unsigned spread = PLX_SPREAD_ROUND_ROBIN;
static struct plx_lcore_var counts; /* struct echo_counts */

/* In the order of enum plx_spread. */
static const char *const spreads[] = {"none", "round-robin", "hash", NULL};

static const struct plx_app_option options[] = {
	PLX_ADDRESS("listen", &listen_address,
		    "host:port to listen on; *:port is every address, port 0 a free one",
		    .required = true),
	PLX_SIZE(
		"rx-buf", "SIZE", &rx_buf_bytes, 256, 16 << 20,
		"longest message received in one piece; longer ones are put together (default 4K)"),
	PLX_CHOICE("spread", "HOW", &spread, spreads,
		   "links to lcores: round-robin, hash (of the peer's host), none (default "
		   "round-robin)"),
	PLX_FLAG("sink", &sink,
		 "answer nothing: count messages and drop them, for plx-ping --one-way"),
	PLX_FLAG("service", &is_called,
		 "answer calls instead: a service with a method \"echo\", for plx-call"),
	PLX_UINT("rx-bufs", "N", &rx_buf_count, 2, 200,
		 "with --sink: receive buffers of each link, the window of its sender (default: as "
		 "many as 8M hold, 4 to 128)"),
	PLX_OPTIONS_END,
};

static int check(void)
{
	if (sink && is_called)
		return plx_fail(EINVAL, "--sink answers nothing, --service answers calls; give one "
					"of them");

	if (rx_buf_count && !sink)
		return plx_fail(EINVAL,
				"--rx-bufs is for --sink; an echo has %d receive buffers a link",
				ECHO_WINDOW);
	return 0;
}

static const struct plx_app app = {
	.name = "plx-echo",
	.summary = "Send every message back to where it came from.",
	.usage = "  plx-echo [EAL options] -- --listen ADDR [--rx-buf SIZE] [--spread HOW]\n"
		 "           [--sink [--rx-bufs N] | --service]",
	.options = options,
	.check = check,
};

/* Run by every lcore that serves, until SIGINT or SIGTERM; what was accepted is answered. */
static int serve(void *arg)
{
	plx_loop_run();
	if (is_called)
		echo_rpc_finish(DRAIN_NS);
	plx_fabric_drain(DRAIN_NS);
	return 0;
}

static void serve_all(void)
{
	if (spread == PLX_SPREAD_NONE) {
		serve(NULL);
		return;
	}
	plx_lcore_launch_all(serve, NULL, NULL);
	PLX_LCORE_FOREACH_WORKER (id)
		plx_lcore_join(id, JOIN_NS, NULL);
}

static void report(void)
{
	if (is_called)
		echo_rpc_report();
	PLX_LCORE_FOREACH (id) {
		const struct echo_counts *of = plx_lcore_var_of(counts, id);

		if (is_called) {
			plx_app_say_idle(id);
			continue;
		}
		plx_app_say("lcore %" PRIu32 ": %" PRIu64 " links, %" PRIu64 " messages, %" PRIu64
			    " bytes",
			    id, of->links, of->messages, of->bytes);
		plx_app_say_idle(id);
	}
}

static uint32_t window(void)
{
	if (!sink)
		return ECHO_WINDOW;
	return rx_buf_count ? (uint32_t)rx_buf_count : sink_window((uint32_t)rx_buf_bytes);
}

/* Return: where it listens; NULL with an error text. */
static const char *listen_here(void)
{
	struct plx_listen_attr attr = {
		.link = {.events = sink ? &sink_service : &echo_service,
			 .user = &counts,
			 .rx_buf_bytes = (uint32_t)rx_buf_bytes,
			 .rx_buf_count = window(),
			 .protocol = PLX_PROTOCOL_ECHO},
		.spread = (enum plx_spread)spread,
	};
	struct plx_listener *listener;

	if (is_called) {
		attr.link.rx_buf_count = 0;
		return echo_rpc_listen(listen_address, &attr) == 0 ? echo_rpc_address() : NULL;
	}
	return plx_link_listen(listen_address, &attr, &listener) == 0
		     ? plx_listener_address(listener)
		     : NULL;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;

	const char *address;

	if (plx_lcore_var_create(sizeof(struct echo_counts), 0, &counts) != 0 ||
	    !(address = listen_here()))
		return plx_app_finish(&app, plx_app_fail(&app));
	plx_app_say("listening on %s", address);
	serve_all();
	report();
	if (is_called)
		echo_rpc_end();
	return plx_app_finish(&app, 0);
}
