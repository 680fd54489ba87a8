/* SPDX-License-Identifier: BSD-3-Clause */
/* The results: on standard output and in files. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096

void report_doubts(const struct ping_conf *conf, const struct ping_outcome *outcome, uint64_t count,
		   const char *what)
{
	for (unsigned i = 0; i < outcome->warning_count; i++)
		plx_app_say("WARNING: %s", outcome->warnings[i]);
	if (outcome->interrupted[0])
		plx_measure_say_interrupted(&conf->run, outcome->interrupted, count, what,
					    outcome->elapsed_ns);
}

/* Files ------------------------------------------------------------------------------------ */

static int path_of(const struct ping_conf *conf, const char *suffix, char out[PATH_BYTES])
{
	if (snprintf(out, PATH_BYTES, "%s/%s.%s", conf->run.out_dir, conf->run.name, suffix) <
	    PATH_BYTES)
		return 0;
	return plx_fail(ENAMETOOLONG, "%.40s.../%.40s...: the name is too long", conf->run.out_dir,
			conf->run.name);
}

/* Links, pipes and devices are written through, because a user set them up to get the results. */
static bool is_forgotten(mode_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode); /* a directory fails here, before the run */
}

/* Return: 1 removed; 0 it did not exist; -errno. */
static int forget_file(const struct ping_conf *conf, const char *suffix)
{
	char path[PATH_BYTES];
	struct stat found;
	int rc = path_of(conf, suffix, path);

	if (rc)
		return rc;
	if (lstat(path, &found) == 0 && (!is_forgotten(found.st_mode) || unlink(path) == 0))
		return 1;
	if (errno == ENOENT)
		return 0;
	return plx_fail(errno, "cannot remove %s of an earlier run: %s; give another --name", path,
			strerror(errno));
}

/* A one-way run writes only the first file; if it does not exist, the others are not ours. */
int ping_forget(const struct ping_conf *conf)
{
	static const char *const suffixes[] = {"json", "hgrm", "csv"};
	int rc = 1;

	for (size_t i = 0; conf->run.out_dir && i < PLX_ARRAY_LEN(suffixes); i++) {
		rc = forget_file(conf, suffixes[i]);
		if (rc < 0 || (rc == 0 && conf->one_way))
			break;
	}
	return rc < 0 ? rc : 0;
}

/* JSON ------------------------------------------------------------------------------------- */

static json_t *warnings_json(const struct ping_outcome *outcome)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < outcome->warning_count; i++)
		json_array_append_new(array, json_string(outcome->warnings[i]));
	return array;
}

/* How idle the measuring lcore was. */
static json_t *lcore_json(void)
{
	static const char *const causes[PLX_WAKE_CAUSES] = {
		[PLX_WAKE_MESSAGE] = "wakes_message", [PLX_WAKE_POLLER] = "wakes_link",
		[PLX_WAKE_FD] = "wakes_fd",           [PLX_WAKE_TIMER] = "wakes_timer",
		[PLX_WAKE_CAP] = "wakes_cap",         [PLX_WAKE_NAP] = "wakes_nap",
	};
	json_t *object = json_object();
	struct plx_lcore_stats turns = {0};
	struct plx_idle_stats idle = {0};

	plx_lcore_stats_read(plx_lcore_id(), &turns); /* cannot fail: this lcore */
	plx_idle_stats_read(plx_lcore_id(), &idle);
	plx_result_set_count(object, "turns", turns.turns);
	plx_result_set_count(object, "idle_turns", turns.idle_turns);
	plx_result_set_count(object, "idle_periods", idle.periods);
	plx_result_set_count(object, "sleeps", idle.sleeps);
	plx_result_set_count(object, "naps", idle.naps);
	for (unsigned i = 0; i < PLX_WAKE_CAUSES; i++)
		plx_result_set_count(object, causes[i], idle.wakes[i]);
	plx_result_set_count(object, "sleeps_late", idle.late);
	plx_result_set_count(object, "sleeps_refused", idle.refused);
	plx_result_set_count(object, "wakes_spurious", idle.spurious);
	plx_result_set_count(object, "rescues", idle.rescues);
	plx_result_set_count(object, "asleep_ns", idle.asleep_ns);
	plx_result_set_count(object, "spin_ns", idle.spin_ns);
	plx_result_set_count(object, "wake_ns", idle.wake_ns);
	plx_result_set_count(object, "sleep_ns", idle.sleep_ns);
	json_object_set_new(object, "awake_by",
			    idle.awake_by ? json_string(idle.awake_by) : json_null());
	return object;
}

json_t *report_own(const struct ping_outcome *outcome)
{
	json_t *object = json_object();

	json_object_set_new(object, "provider_choice", json_string(outcome->provider_choice));
	json_object_set_new(object, "warnings", warnings_json(outcome));
	json_object_set_new(object, "lcore", lcore_json());
	return object;
}

struct plx_result report_end(const struct ping_conf *conf, const struct ping_outcome *outcome)
{
	return (struct plx_result){
		.interrupted = outcome->interrupted[0] ? outcome->interrupted : NULL,
		.failed = outcome->failed,
		.planned_count = conf->run.count,
		.planned_ns = conf->run.duration_ns,
	};
}

static struct plx_result result_of(const struct ping_conf *conf, const struct ping_outcome *outcome)
{
	struct plx_result result = report_end(conf, outcome);

	result.name = conf->run.name;
	result.provider = outcome->provider;
	result.idle = outcome->idle;
	result.size_bytes = conf->size_bytes;
	result.elapsed_ns = outcome->elapsed_ns;
	result.lost = outcome->lost;
	result.rate = ping_rate(conf);
	result.scheduled_ns = outcome->scheduled_ns;
	result.sending_ns = outcome->sending_ns;
	result.verified = conf->verify;
	result.arrival = conf->run.rate ? plx_arrivals[conf->run.arrival] : NULL;
	result.seed = conf->run.seed;
	result.clock_drift_ppm = plx_clock_drift_ppm();
	result.rtt_ns = &outcome->rtt_ns;
	result.service_ns = conf->run.rate ? &outcome->service_ns : NULL;
	return result;
}

static int write_result(const struct ping_conf *conf, const struct ping_outcome *outcome,
			struct plx_result *result)
{
	int rc;

	result->more = report_own(outcome);
	rc = plx_result_write(result, conf->run.out_dir);
	json_decref(result->more);
	return rc;
}

/* The report ------------------------------------------------------------------------------- */

int ping_report(const struct plx_app *app, const struct ping_conf *conf,
		const struct ping_outcome *outcome)
{
	struct plx_result result = result_of(conf, outcome);

	report_doubts(conf, outcome, outcome->rtt_ns.count, "round trips");
	plx_result_print(&result, stdout, 0);
	plx_app_say("provider %s: %s", outcome->provider, outcome->provider_choice);
	plx_app_say_idle(plx_lcore_id());
	if (outcome->again)
		plx_app_say("%llu %s", (unsigned long long)outcome->again,
			    conf->run.process ? "calls were refused: the service there takes no "
						"more a second (--self-test)"
					      : "sends found no room and waited");
	ping_explain(conf, outcome);
	if (conf->run.out_dir && write_result(conf, outcome, &result) != 0)
		return plx_app_fail(app);
	if (!outcome->failed && plx_result_check(&result) != 0) {
		plx_app_fail(app);
		return PLX_MEASURE_DOUBTED;
	}
	return 0;
}
