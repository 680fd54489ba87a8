/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a run: text for people, files, and the exit status. */
#include "load.h"

#include <inttypes.h>
#include <jansson.h>

/* Keys in addition to those of a result --------------------------------------------------- */

static json_t *warnings_json(const struct plx_load *load)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < load->warning_count; i++)
		json_array_append_new(array, json_string(load->warnings[i]));
	return array;
}

/* How idle the measuring lcore was. */
static json_t *lcore_json(void)
{
	struct plx_lcore_stats turns = {0};
	struct plx_idle_stats idle = {0};

	plx_lcore_stats_read(plx_lcore_id(), &turns); /* cannot fail: this lcore */
	plx_idle_stats_read(plx_lcore_id(), &idle);

	const struct {
		const char *key;
		uint64_t count;
	} rows[] = {
		{"turns", turns.turns},
		{"idle_turns", turns.idle_turns},
		{"idle_periods", idle.periods},
		{"sleeps", idle.sleeps},
		{"naps", idle.naps},
		{"wakes_message", idle.wakes[PLX_WAKE_MESSAGE]},
		{"wakes_link", idle.wakes[PLX_WAKE_POLLER]},
		{"wakes_fd", idle.wakes[PLX_WAKE_FD]},
		{"wakes_timer", idle.wakes[PLX_WAKE_TIMER]},
		{"wakes_cap", idle.wakes[PLX_WAKE_CAP]},
		{"wakes_nap", idle.wakes[PLX_WAKE_NAP]},
		{"sleeps_late", idle.late},
		{"sleeps_refused", idle.refused},
		{"wakes_spurious", idle.spurious},
		{"rescues", idle.rescues},
		{"asleep_ns", idle.asleep_ns},
		{"spin_ns", idle.spin_ns},
		{"wake_ns", idle.wake_ns},
		{"sleep_ns", idle.sleep_ns},
	};
	json_t *object = json_object();

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		plx_result_set_count(object, rows[i].key, rows[i].count);
	json_object_set_new(object, "awake_by",
			    idle.awake_by ? json_string(idle.awake_by) : json_null());
	return object;
}

static int write_files(const struct plx_load *load, struct plx_result *result)
{
	int rc;

	result->more = json_pack("{s:s, s:o, s:o}", "provider_choice", load->provider_choice,
				 "warnings", warnings_json(load), "lcore", lcore_json());
	rc = plx_result_write(result, load->run->out_dir);
	json_decref(result->more);
	return rc;
}

/* The end ---------------------------------------------------------------------------------- */

static uint64_t measured(const struct plx_result *result)
{
	return result->one_way ? result->count : result->rtt_ns->count;
}

int plx_load_end(const struct plx_load *load)
{
	struct plx_result result;

	plx_load_result(load, &result);
	if (measured(&result))
		return 0;
	if (load->failed)
		return plx_fail(EIO, "%s", load->error);
	if (load->signalled)
		return plx_fail(EINTR, "%s came before anything was measured",
				plx_measure_signal());
	return 0;
}

static int fail_unmeasured(const struct plx_app *app, int rc)
{
	plx_app_fail(app);
	return rc == -EINTR ? PLX_MEASURE_DOUBTED : 1;
}

int plx_load_report(const struct plx_load *load, const struct plx_app *app,
		    void (*say)(const struct plx_load *load))
{
	struct plx_result result;
	int rc = plx_load_end(load);

	if (rc)
		return fail_unmeasured(app, rc);
	plx_load_result(load, &result);
	for (unsigned i = 0; i < load->warning_count; i++)
		plx_app_say("WARNING: %s", load->warnings[i]);
	if (result.interrupted)
		plx_measure_say_interrupted(load->run, result.interrupted, measured(&result),
					    load->unit, result.elapsed_ns);
	plx_result_print(&result, stdout, 0);
	plx_app_say("provider %s: %s", load->provider, load->provider_choice);
	if (say)
		say(load);
	if (load->run->out_dir && write_files(load, &result) != 0)
		return plx_app_fail(app);
	if (load->failed) {
		plx_fail(EIO, "%s", load->error);
		return plx_app_fail(app);
	}
	return plx_result_check(&result) ? fail_unmeasured(app, -EINTR) : 0;
}
