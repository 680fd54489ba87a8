/* SPDX-License-Identifier: BSD-3-Clause */
/* The least that a NetIO program has: a context, a first callback, and an end.
 * Run it:  netio_hello      or on CPU 1: NETIO_OPTIONS='-l 1' netio_hello */
#include "netio/netio.h"
#include <stdio.h>

static struct netio_context ctx; /* on_init gets no argument */

static void on_init(void)
{
	unsigned cpu = plx_lcore_cpu(plx_lcore_id());

	if (cpu < PLX_CPU_MAX)
		printf("the loop runs on lcore %u, CPU %u\n", plx_lcore_id(), cpu);
	else
		printf("the loop runs on lcore %u, on any CPU\n", plx_lcore_id());
	netio_terminate(&ctx.evloop);
}

int main(void)
{
	int rc;

	if (netio_init(&ctx) != 0)
		return 1; /* NetIO logs what fails to standard error */
	ctx.evloop.cb_init = on_init;
	rc = netio_run(&ctx.evloop);
	return netio_fini(&ctx) != 0 || rc != 0;
}
