/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a raw baseline, as text and files. Streams have the fields of plx-ping
 * --one-way. */
#include "raw_common.h"

#include "app.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#define PATH_BYTES     4096
#define MEGA           1e6
#define REAL_PRECISION 12

int raw_report_run(const struct raw_options *options, const struct raw_run *run)
{
	struct plx_result result = {
		.name = options->name,
		.provider = options->provider,
		.idle = options->idle,
		.size_bytes = options->size,
		.elapsed_ns = plx_tsc_to_ns(run->last_tsc - run->first_tsc),
		.clock_drift_ppm = plx_clock_drift_ppm(),
		.rtt_ns = &run->hist,
	};

	plx_result_print(&result, stdout, 0);
	int rc = options->out ? plx_result_write(&result, options->out) : 0;
	return rc ? rc : plx_result_check(&result);
}

static double messages_per_s(const struct raw_flow *flow)
{
	return (double)flow->count / (double)flow->elapsed_tsc * plx_clock_info_read()->hz;
}

static json_t *flow_json(const struct raw_options *options, const struct raw_flow *flow)
{
	double messages = messages_per_s(flow);

	return json_pack(
		"{s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:f, s:f, s:I, s:b, s:f}", "name",
		options->name, "provider", options->provider, "idle", options->idle, "one_way", 1,
		"size_bytes", (json_int_t)options->size, "count", (json_int_t)flow->count,
		"elapsed_ns", (json_int_t)plx_tsc_to_ns(flow->elapsed_tsc), "messages_per_s",
		messages, "bytes_per_s", messages * (double)options->size, "again",
		(json_int_t)flow->again, "valid", 1, "clock_drift_ppm", plx_clock_drift_ppm());
}

static int write_flow(const struct raw_options *options, const struct raw_flow *flow)
{
	char path[PATH_BYTES];
	int rc = plx_result_prepare(options->name, options->out);

	if (rc)
		return rc;
	if (snprintf(path, sizeof(path), "%s/%s.json", options->out, options->name) >=
	    (int)sizeof(path))
		return plx_fail(ENAMETOOLONG, "%.40s...: the name is too long", options->out);

	json_t *object = flow_json(options, flow);
	if (json_dump_file(object, path, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_PRECISION)))
		rc = plx_fail(EIO, "cannot write %s", path);
	json_decref(object);
	return rc;
}

int raw_report_flow(const struct raw_options *options, const struct raw_flow *flow)
{
	double messages = messages_per_s(flow);

	printf("%s: %" PRIu64 " messages of %" PRIu64 " B one way in %.2f s, provider %s\n"
	       "%.0f messages/s, %.1f MB/s; no room %" PRIu64 " times\n",
	       options->name, flow->count, options->size,
	       (double)plx_tsc_to_ns(flow->elapsed_tsc) / (double)PLX_NS_PER_S, options->provider,
	       messages, messages * (double)options->size / MEGA, flow->again);
	return options->out ? write_flow(options, flow) : 0;
}
