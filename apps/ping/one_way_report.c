/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a one-way run: messages, bytes and time. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>

#define MEGA 1e6
#define GIBI 1073741824.0
#define GIGA 1e9

static double messages_per_s(const struct ping_outcome *outcome)
{
	if (!outcome->elapsed_ns)
		return 0;
	return (double)outcome->one_way_count / (double)outcome->elapsed_ns * (double)PLX_NS_PER_S;
}

static double bytes_per_s(const struct ping_conf *conf, const struct ping_outcome *outcome)
{
	return messages_per_s(outcome) * (double)conf->size_bytes;
}

/* Return: 0; -ERANGE, with a text: the figures are not a measurement. */
static int check(const struct ping_outcome *outcome)
{
	return outcome->one_way_count ? 0 : plx_fail(ERANGE, "no message was measured");
}

static void print(const struct ping_conf *conf, const struct ping_outcome *outcome)
{
	double bytes = bytes_per_s(conf, outcome), messages = messages_per_s(outcome);

	plx_app_say("%s: %" PRIu64 " messages of %" PRIu64 " B one way in %.2f s, provider %s, "
		    "idle %s\n",
		    conf->run.name, outcome->one_way_count, conf->size_bytes,
		    (double)outcome->elapsed_ns / (double)PLX_NS_PER_S, outcome->provider,
		    outcome->idle);
	plx_app_say("message rate  %.0f messages/s, %.1f ns each", messages,
		    messages > 0 ? (double)PLX_NS_PER_S / messages : 0);
	plx_app_say("bandwidth     %.1f MB/s = %.3f GiB/s = %.2f Gbit/s", bytes / MEGA,
		    bytes / GIBI, bytes * 8 / GIGA);
	plx_app_say("no room       %" PRIu64 " times, and the sender waited", outcome->again);
	plx_app_say("provider %s: %s", outcome->provider, outcome->provider_choice);
}

static json_t *result_json(const struct ping_conf *conf, const struct ping_outcome *outcome)
{
	json_t *object = json_object();
	struct plx_result end = report_end(conf, outcome);
	bool valid = check(outcome) == 0;

	json_object_set_new(object, "name", json_string(conf->run.name));
	json_object_set_new(object, "provider", json_string(outcome->provider));
	json_object_set_new(object, "idle", json_string(outcome->idle));
	json_object_set_new(object, "one_way", json_true());
	plx_result_set_count(object, "size_bytes", conf->size_bytes);
	plx_result_set_count(object, "count", outcome->one_way_count);
	plx_result_set_count(object, "elapsed_ns", outcome->elapsed_ns);
	json_object_set_new(object, "messages_per_s", json_real(messages_per_s(outcome)));
	json_object_set_new(object, "bytes_per_s", json_real(bytes_per_s(conf, outcome)));
	plx_result_set_count(object, "again", outcome->again);
	json_object_set_new(object, "valid", json_boolean(valid && !end.failed));
	json_object_set_new(object, "clock_drift_ppm", json_real(plx_clock_drift_ppm()));
	if (!valid)
		json_object_set_new(object, "note", json_string(plx_error()));
	plx_result_set_interrupted(object, &end);
	json_object_update_new(object, report_own(outcome));
	return object;
}

static int write_result(const struct ping_conf *conf, const struct ping_outcome *outcome)
{
	json_t *object = result_json(conf, outcome);
	int rc = plx_result_write_json(conf->run.out_dir, conf->run.name, object);

	json_decref(object);
	return rc;
}

int ping_report_one_way(const struct plx_app *app, const struct ping_conf *conf,
			const struct ping_outcome *outcome)
{
	report_doubts(conf, outcome, outcome->one_way_count, "messages");
	print(conf, outcome);
	if (conf->run.out_dir && write_result(conf, outcome) != 0)
		return plx_app_fail(app);
	if (!outcome->failed && check(outcome) != 0) {
		plx_app_fail(app);
		return PLX_MEASURE_DOUBTED;
	}
	return 0;
}
