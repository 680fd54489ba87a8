/* SPDX-License-Identifier: BSD-3-Clause */
/* Many subscribe sockets that connect to one address, as often as needed, until SIGTERM. Prints
 * "waiting" when each has tried. With --cpu it prints the CPU time that they use while they wait.
 */
#include "app.h"
#include "netio/netio.h"

#include <stdlib.h>
#include <sys/resource.h>

#define SETTLE_NS PLX_NS_PER_S /* until each waits as long as it ever will */

static const char *connect_address;
static uint64_t count = 1, cpu_ns;

static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &connect_address, "of a crowd-server", .required = true),
	PLX_UINT("count", "N", &count, 1, 10000, "how many (default 1)"),
	PLX_TIME("cpu", "TIME", &cpu_ns, 1, 0, "print the CPU time used meanwhile"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "crowd", .summary = "many that connect at once", .options = options};

static struct netio_context ctx;
static struct netio_subscribe_socket *sockets;

static int start_subscribers(void)
{
	/* Short messages: all of them fit into memory. */
	const struct netio_subscribe_attr attr = {.buffer_bytes = 4096, .buffer_count = 4};
	char host[PLX_ADDRESS_MAX];
	unsigned port;
	int rc = plx_address_split("--connect", connect_address, host, &port) ?: netio_init(&ctx);

	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		rc = netio_subscribe_socket_init(&ctx.evloop, &sockets[i], &attr);
		rc = rc ? rc : netio_subscribe(&sockets[i], host, port, i);
	}
	return rc;
}

/* CPU time ------------------------------------------------------------------------------------- */

static struct plx_timer timer;
static uint64_t begin_ns, begin_used_ns;

static uint64_t used_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * PLX_NS_PER_S +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * PLX_NS_PER_US;
}

static void on_measured(struct plx_timer *it, void *arg)
{
	double used = (double)(used_ns() - begin_used_ns);

	plx_app_say("cpu %.1f %%", 100 * used / (double)(plx_now_ns() - begin_ns));
}

static void on_settled(struct plx_timer *it, void *arg)
{
	plx_app_say("waiting");
	if (cpu_ns == 0)
		return;
	begin_ns = plx_now_ns();
	begin_used_ns = used_ns();
	plx_timer_init(&timer, on_measured, NULL);
	plx_timer_start(&timer, cpu_ns);
}

/* ---------------------------------------------------------------------------------------------- */

static void end(void)
{
	for (uint64_t i = 0; i < count; i++)
		netio_subscribe_socket_fini(&sockets[i]);
	netio_fini(&ctx);
	free(sockets);
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	sockets = calloc(count, sizeof(*sockets));
	if (!sockets)
		return 1;
	rc = start_subscribers();
	status = rc ? plx_app_fail(&app) : 0;
	plx_timer_init(&timer, on_settled, NULL);
	plx_timer_start(&timer, SETTLE_NS);
	if (rc == 0)
		plx_loop_run();
	plx_timer_stop(&timer);
	end();
	return plx_app_finish(&app, status);
}
