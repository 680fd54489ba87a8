/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-ping: measures round trips to another process, or one-way throughput of a link. */
#include "ping.h"

#define STATUS_FAILED 1 /* of plx_app_start */

/* Results of an earlier run must never be taken for this run's. */
static int forget(const struct ping_conf *conf)
{
	return conf->run.out_dir
		     ? plx_result_forget(conf->run.name, conf->run.out_dir, conf->one_way)
		     : 0;
}

static int measure(const struct ping_conf *conf)
{
	if (forget(conf) != 0)
		return plx_app_fail(&ping_app);
	return conf->run.process ? ping_measure_calls(conf) : ping_measure(conf);
}

static int measure_self(const struct ping_conf *asked)
{
	struct ping_conf conf = *asked;
	char address[64];
	int status;

	if (ping_self_start(&conf, address, sizeof(address)) != 0)
		return plx_app_fail(&ping_app);
	conf.connect = address;
	status = measure(&conf);
	ping_self_stop();
	return status;
}

static int work(const struct ping_conf *conf)
{
	if (conf->listen)
		return ping_serve(conf);
	return conf->self ? measure_self(conf) : measure(conf);
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &ping_app);

	if (status == PLX_APP_RUN)
		return plx_app_finish(&ping_app, work(ping_asked));
	/* The options are valid, so this would have been a run. */
	if (status == STATUS_FAILED && forget(ping_asked) != 0)
		plx_app_fail(&ping_app);
	return status;
}
