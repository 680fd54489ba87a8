/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-ping: measures round trips to another process, or one-way throughput of a link. */
#include "app.h"
#include "ping.h"

#define STATUS_FAILED 1 /* of plx_app_start */

/* Results measured before a failure are shown too, and the failure again at the end. */
static int report_end(const struct ping_conf *conf, const struct ping_outcome *outcome, int rc)
{
	int (*report)(const struct plx_app *, const struct ping_conf *,
		      const struct ping_outcome *) = conf->one_way ? ping_report_one_way
								   : ping_report;

	if (rc == 0)
		return report(&ping_app, conf, outcome);
	if (outcome->failed) {
		report(&ping_app, conf, outcome);
		plx_fail(EIO, "%s", outcome->interrupted);
	}

	int status = plx_app_fail(&ping_app);

	return rc == -EINTR ? PLX_MEASURE_DOUBTED : status;
}

static int run(const struct ping_conf *conf, struct ping_outcome *outcome)
{
	if (conf->run.process)
		return ping_run_calls(conf, outcome);
	return conf->one_way ? ping_run_one_way(conf, outcome) : ping_run(conf, outcome);
}

static int measure(const struct ping_conf *conf)
{
	struct ping_outcome outcome = {0};

	if (ping_forget(conf) != 0)
		return plx_app_fail(&ping_app);

	int rc = run(conf, &outcome);
	int status = report_end(conf, &outcome, rc);

	plx_hist_fini(&outcome.rtt_ns);
	plx_hist_fini(&outcome.service_ns);
	return status;
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
	const struct ping_conf *conf = ping_asked;
	int status = plx_app_start(argc, argv, &ping_app);

	if (status == PLX_APP_RUN)
		return plx_app_finish(&ping_app, work(conf));
	/* The options are valid, so this would have been a run. */
	if (status == STATUS_FAILED && ping_forget(conf) != 0)
		plx_app_fail(&ping_app);
	return status;
}
