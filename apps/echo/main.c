/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-echo: sends every message back to where it came from. The smallest useful service on Pollux,
 * and the file to read first. How a message travels:
 *
 *   main            here, brings the lcores up, listens, and runs the loop of this lcore
 *   the loop        (lib/lcore/loop.c) polls; when the provider has a message it calls
 *   on_message      (service.c) on the lcore that owns the link, which answers at once
 *
 * Try it:  plx-echo --listen 127.0.0.1:7000
 *          plx-ping --connect 127.0.0.1:7000 */
#include "plx_app.h"
#include "plx_fabric.h"
#include "service.h"

static const char *listen_address;
static uint64_t rx_buf_bytes = 4096;

static const struct plx_app_option options[] = {
	{.name = "listen",
	 .placeholder = "ADDR",
	 .help = "host:port to listen on; *:port is every address, port 0 a free one",
	 .kind = PLX_APP_STRING,
	 .value = &listen_address},
	{.name = "rx-buf",
	 .placeholder = "SIZE",
	 .help = "size of a receive buffer; longer messages are put together (default 4K)",
	 .kind = PLX_APP_SIZE,
	 .value = &rx_buf_bytes,
	 .min = 256,
	 .max = 16 << 20},
	{.name = NULL},
};

static int check(void)
{
	return listen_address ? plx_address_check("--listen", listen_address)
			      : plx_fail(EINVAL, "--listen ADDR is missing");
}

static const struct plx_app app = {
	.name = "plx-echo",
	.summary = "Send every message back to where it came from.",
	.usage = "  plx-echo [EAL options] -- --listen ADDR",
	.options = options,
	.check = check,
};

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;

	struct plx_listen_attr attr = {
		.link = {.events = &echo_service,
			 .rx_buf_bytes = (uint32_t)rx_buf_bytes,
			 .rx_buf_count = ECHO_WINDOW},
	};
	struct plx_listener *listener;

	if (plx_link_listen(listen_address, &attr, &listener) != 0)
		return plx_app_finish(&app, plx_app_fail(&app));
	plx_app_say("listening on %s", plx_listener_address(listener));
	plx_loop_run(); /* until SIGINT or SIGTERM */
	return plx_app_finish(&app, 0);
}
