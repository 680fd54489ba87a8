/* SPDX-License-Identifier: BSD-3-Clause */
/* As written for NetIO-next: a timer of seconds, and the header of FELIX' tags. */
#include <stdio.h>

#include "netio/netio.h"

#include "felixtag.h"

struct netio_context ctx;
struct netio_timer timer;

void on_timer(void *data)
{
	int *left = (int *)data;

	printf("%d s left\n", *left);
	if (--*left == 0)
		netio_terminate(&ctx.evloop);
}

int main(int argc, char **argv)
{
	int left = 3;

	netio_init(&ctx);
	netio_timer_init(&ctx.evloop, &timer);
	timer.cb = on_timer;
	timer.data = &left;
	netio_timer_start_s(&timer, 1);
	netio_run(&ctx.evloop);
	return 0;
}
