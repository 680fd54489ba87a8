/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-params: a store of parameters and alarms as a service, and its command line client.
 *
 * Try it:  plx-params --serve /tmp/params.db --listen 127.0.0.1:7100
 *          plx-params --connect 127.0.0.1:7100 --define hv/rack1/voltage --type real --value 1500
 *                     --unit V --max 2000 --alarm-high 1800 --latch
 *          plx-params --connect 127.0.0.1:7100 --set hv/rack1/voltage --value 1850
 *          plx-params --connect 127.0.0.1:7100 --alarms */
#include "params.h"

#include "plx_fabric.h"
#include "plx_lcore.h"
#include "serve.h"

#define DRAIN_NS (500 * PLX_NS_PER_MS)

/* The disk's thread must not use the lcore's CPU if there is another one. */
static void leave_out_own(cpu_set_t *cpus)
{
	if (CPU_COUNT(cpus) > 1)
		CPU_CLR(plx_lcore_cpu(plx_lcore_id()), cpus);
}

int main(int argc, char **argv)
{
	cpu_set_t cpus;
	int known = sched_getaffinity(0, sizeof(cpus),
				      &cpus); /* as before this thread became an lcore */
	int status = plx_app_start(argc, argv, &params_app);
	int rc;

	if (status != PLX_APP_RUN)
		return status;
	if (params_asked->serve) {
		struct serve_conf conf = {
			.path = params_asked->serve,
			.listen = params_asked->listen,
			.publish_port = (unsigned)params_asked->publish_port,
			.others = known == 0 ? &cpus : NULL,
		};

		if (known == 0)
			leave_out_own(&cpus);
		rc = serve(&conf);
	} else {
		rc = params_command(params_asked);
	}
	status = rc ? plx_app_fail(&params_app) : 0;
	plx_fabric_drain(DRAIN_NS);
	return plx_app_finish(&params_app, status);
}
