/* SPDX-License-Identifier: BSD-3-Clause */
/* As written for NetIO-next, with the header of FELIX' tags: a signal that is fired before the loop
 * can call it, and whose name is that of a function of the C library. */
#include "netio/netio.h"
#include <stdio.h>

#include "felixtag.h"

struct netio_context ctx;
struct netio_signal signal;
int calls = 0;

void on_init()
{
	netio_signal_fire(&signal);
	printf("fired, %d calls\n", calls);
}

void on_signal(void *data)
{
	int *counter = (int *)data;

	(*counter)++;
	netio_terminate(&ctx.evloop);
}

int main(int argc, char **argv)
{
	netio_init(&ctx);
	ctx.evloop.cb_init = on_init;

	netio_signal_init(&ctx.evloop, &signal);
	signal.cb = on_signal;
	signal.data = &calls;

	netio_run(&ctx.evloop);
	printf("ended, %d calls\n", calls);
	return 0;
}
