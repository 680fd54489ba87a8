/* SPDX-License-Identifier: BSD-3-Clause */
/* As written for NetIO-next, with the header found without its folder: a timer that restarts itself
 * with each of the units. */
#include "netio.h"
#include <stdio.h>

struct netio_context ctx;
struct netio_timer timer;

void on_timer(void *data)
{
	int *step = (int *)data;

	printf("step %d\n", *step);
	switch ((*step)++) {
	case 0:
		netio_timer_start_ms(&timer, 20);
		break;
	case 1:
		netio_timer_start_us(&timer, 20000);
		break;
	case 2:
		netio_timer_start_ns(&timer, 20000000);
		break;
	default:
		netio_timer_stop(&timer);
		netio_terminate(&ctx.evloop);
	}
}

int main(int argc, char **argv)
{
	int step = 0;

	netio_init(&ctx);
	netio_timer_init(&ctx.evloop, &timer);
	timer.cb = on_timer;
	timer.data = &step;
	netio_timer_start_s(&timer, 1);
	netio_run(&ctx.evloop);
	return 0;
}
