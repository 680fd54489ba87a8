/* SPDX-License-Identifier: BSD-3-Clause */
/* Ten readings of a "sensor", five a second: the shortest program that has a timer.
 * Run it:  netio_timer */
#include "netio/netio.h"
#include <stdio.h>

struct sensor {
	struct netio_context ctx;
	struct netio_timer timer;
	unsigned readings;
};

static void on_timer(void *data)
{
	struct sensor *sensor = data;

	printf("reading %u\n", ++sensor->readings);
	if (sensor->readings == 10)
		netio_terminate(&sensor->ctx.evloop);
}

int main(void)
{
	static struct sensor sensor;
	int rc;

	if (netio_init(&sensor.ctx) != 0 ||
	    netio_timer_init(&sensor.ctx.evloop, &sensor.timer) != 0)
		return 1; /* NetIO logs what fails to standard error */
	sensor.timer.cb = on_timer;
	sensor.timer.data = &sensor;
	if (netio_timer_start_ms(&sensor.timer, 200) != 0)
		return 1;
	rc = netio_run(&sensor.ctx.evloop);
	netio_timer_stop(&sensor.timer);
	return netio_fini(&sensor.ctx) != 0 || rc != 0;
}
