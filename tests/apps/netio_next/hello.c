/* SPDX-License-Identifier: BSD-3-Clause */
/* As written for NetIO-next: a loop that only starts and ends. */
#include "netio/netio.h"
#include <stdio.h>

struct netio_context ctx;

void on_init()
{
	puts("the loop has started");
	netio_terminate(&ctx.evloop);
}

int main(int argc, char **argv)
{
	netio_init(&ctx);
	ctx.evloop.cb_init = on_init;
	netio_run(&ctx.evloop);
	puts("the loop has ended");
	return 0;
}
