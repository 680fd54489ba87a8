/* SPDX-License-Identifier: BSD-3-Clause */
/* The least that a NetIO program has: a context, a first callback, and an end. */
#include "netio/netio.h"

#include <stdio.h>

static struct netio_context ctx;

static void on_init(void)
{
	printf("the loop runs on lcore %u, CPU %u\n", plx_lcore_id(),
	       plx_lcore_cpu(plx_lcore_id()));
	netio_terminate(&ctx.evloop);
}

int main(void)
{
	int rc = netio_init(&ctx);

	if (rc)
		return 1;
	ctx.evloop.cb_init = on_init;
	rc = netio_run(&ctx.evloop);
	return netio_fini(&ctx) || rc;
}
