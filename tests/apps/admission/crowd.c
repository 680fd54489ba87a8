/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribe sockets that connect to one address, as often as needed, until SIGTERM. Prints
 * "waiting" once all of them have begun. */
#include "app.h"
#include "netio/netio.h"

#define COUNT 250

static const char *connect_address;

static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &connect_address, "of a publisher", .required = true),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "crowd", .summary = "many that connect at once", .options = options};

static struct netio_context ctx;
static struct netio_subscribe_socket sockets[COUNT];

static int start_subscribers(void)
{
	/* Short messages: all of them fit into memory. */
	const struct netio_subscribe_attr attr = {.buffer_bytes = 4096, .buffer_count = 4};
	char host[PLX_ADDRESS_MAX];
	unsigned port;
	int rc = plx_address_split("--connect", connect_address, host, &port) ?: netio_init(&ctx);

	for (uint64_t i = 0; rc == 0 && i < COUNT; i++) {
		rc = netio_subscribe_socket_init(&ctx.evloop, &sockets[i], &attr);
		rc = rc ? rc : netio_subscribe(&sockets[i], host, port, i);
	}
	return rc;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	if (start_subscribers() != 0)
		return plx_app_finish(&app, plx_app_fail(&app));
	plx_app_say("waiting");
	plx_loop_run();
	for (unsigned i = 0; i < COUNT; i++)
		netio_subscribe_socket_fini(&sockets[i]);
	netio_fini(&ctx);
	return plx_app_finish(&app, 0);
}
