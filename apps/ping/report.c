/* SPDX-License-Identifier: BSD-3-Clause */
/* What was measured: on standard output, and as files. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REAL_PRECISION 12 /* as plx_result_write */

const char *const ping_arrivals[] = {"fixed", "poisson", NULL};

void report_doubts(const struct ping_conf *conf, const struct ping_outcome *outcome, uint64_t count,
		   const char *what)
{
	for (unsigned i = 0; i < outcome->warning_count; i++)
		plx_app_say("WARNING: %s", outcome->warnings[i]);
	if (!outcome->interrupted[0])
		return;
	if (conf->count)
		plx_app_say("INTERRUPTED after %" PRIu64 " of %" PRIu64 " %s: %s", count,
			    conf->count, what, outcome->interrupted);
	else
		plx_app_say("INTERRUPTED after %.2f of %.2f s: %s",
			    (double)outcome->elapsed_ns / (double)PLX_NS_PER_S,
			    (double)conf->duration_ns / (double)PLX_NS_PER_S, outcome->interrupted);
}

/* JSON ------------------------------------------------------------------------------------- */

static json_t *warnings_json(const struct ping_outcome *outcome)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < outcome->warning_count; i++)
		json_array_append_new(array, json_string(outcome->warnings[i]));
	return array;
}

static void set_interrupted(json_t *object, const struct ping_conf *conf,
			    const struct ping_outcome *outcome)
{
	if (!outcome->interrupted[0]) {
		json_object_set_new(object, "interrupted", json_null());
		return;
	}
	json_object_set_new(object, "interrupted", json_string(outcome->interrupted));
	json_object_set_new(object, "valid", json_false());
	if (conf->count)
		json_object_set_new(object, "planned_count", json_integer((json_int_t)conf->count));
	else
		json_object_set_new(object, "planned_ns",
				    json_integer((json_int_t)conf->duration_ns));
}

int report_write_json(const json_t *object, const char *path)
{
	FILE *file = fopen(path, "we");
	int rc;

	if (!file)
		return plx_fail(errno, "cannot write %s: %s", path, strerror(errno));
	rc = json_dumpf(object, file, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_PRECISION));
	rc |= fputc('\n', file) == EOF;
	rc |= fclose(file);
	return rc ? plx_fail(EIO, "cannot write %s", path) : 0;
}

const char *report_path(const struct ping_conf *conf, char *out, size_t size)
{
	snprintf(out, size, "%s/%s.json", conf->out_dir, conf->name);
	return out;
}

void report_set_own(json_t *object, const struct ping_conf *conf,
		    const struct ping_outcome *outcome)
{
	json_object_set_new(object, "provider_choice", json_string(outcome->provider_choice));
	set_interrupted(object, conf, outcome);
	json_object_set_new(object, "warnings", warnings_json(outcome));
}

/* What every measurement has is there already. */
static int add_own_keys(const struct ping_conf *conf, const struct ping_outcome *outcome)
{
	char path[PING_PATH_BYTES];
	json_error_t error;
	int rc;

	json_t *object = json_load_file(report_path(conf, path, sizeof(path)), 0, &error);
	if (!object)
		return plx_fail(EIO, "%s: cannot be read back: %s", path, error.text);
	report_set_own(object, conf, outcome);
	rc = report_write_json(object, path);
	json_decref(object);
	return rc;
}

/* The whole -------------------------------------------------------------------------------- */

int ping_report(const struct plx_app *app, const struct ping_conf *conf,
		const struct ping_outcome *outcome)
{
	struct plx_result result = {
		.name = conf->name,
		.provider = outcome->provider,
		.idle = "poll",
		.size_bytes = conf->size_bytes,
		.elapsed_ns = outcome->elapsed_ns,
		.lost = outcome->lost,
		.rate = (double)conf->rate,
		.scheduled_ns = outcome->scheduled_ns,
		.sending_ns = outcome->sending_ns,
		.verified = conf->verify,
		.arrival = conf->rate ? ping_arrivals[conf->arrival] : NULL,
		.seed = conf->seed,
		.clock_drift_ppm = plx_clock_drift_ppm(),
		.rtt_ns = &outcome->rtt_ns,
		.service_ns = conf->rate ? &outcome->service_ns : NULL,
	};

	report_doubts(conf, outcome, outcome->rtt_ns.count, "round trips");
	plx_result_print(&result, stdout, 0);
	plx_app_say("provider %s: %s", outcome->provider, outcome->provider_choice);
	if (outcome->again)
		plx_app_say("%llu sends found no room and waited",
			    (unsigned long long)outcome->again);
	if (conf->out_dir &&
	    (plx_result_write(&result, conf->out_dir) != 0 || add_own_keys(conf, outcome) != 0))
		return plx_app_fail(app);
	if (!outcome->interrupted[0] && plx_result_check(&result) != 0) {
		plx_app_fail(app);
		return PING_STATUS_DOUBTED;
	}
	return 0;
}
