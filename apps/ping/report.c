/* SPDX-License-Identifier: BSD-3-Clause */
/* What was measured: on standard output, and as files. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES     4096
#define REAL_PRECISION 12 /* as plx_result_write */

static void set_count(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

void report_doubts(const struct ping_conf *conf, const struct ping_outcome *outcome, uint64_t count,
		   const char *what)
{
	for (unsigned i = 0; i < outcome->warning_count; i++)
		plx_app_say("WARNING: %s", outcome->warnings[i]);
	if (!outcome->interrupted[0])
		return;
	if (conf->run.count)
		plx_app_say("INTERRUPTED after %" PRIu64 " of %" PRIu64 " %s: %s", count,
			    conf->run.count, what, outcome->interrupted);
	else
		plx_app_say("INTERRUPTED after %.2f of %.2f s: %s",
			    (double)outcome->elapsed_ns / (double)PLX_NS_PER_S,
			    (double)conf->run.duration_ns / (double)PLX_NS_PER_S,
			    outcome->interrupted);
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

/* A link, a pipe or a device is somebody's way to get at the results: it is written through. */
static bool is_forgotten(mode_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode); /* a directory refuses, before the run */
}

/* Return: 1 it was there; 0 it was not; -errno. */
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

/* A run one way writes the first alone: without that one, the others are nothing of ours. */
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

static void set_interrupted(json_t *object, const struct ping_conf *conf,
			    const struct ping_outcome *outcome)
{
	if (!outcome->interrupted[0]) {
		json_object_set_new(object, "interrupted", json_null());
		return;
	}
	json_object_set_new(object, "interrupted", json_string(outcome->interrupted));
	if (outcome->failed)
		json_object_set_new(object, "valid", json_false());
	if (conf->run.count)
		json_object_set_new(object, "planned_count",
				    json_integer((json_int_t)conf->run.count));
	else
		json_object_set_new(object, "planned_ns",
				    json_integer((json_int_t)conf->run.duration_ns));
}

int report_write_json(const struct ping_conf *conf, const json_t *object)
{
	char path[PATH_BYTES];
	int rc = path_of(conf, "json", path);
	FILE *file;

	if (rc)
		return rc;
	file = fopen(path, "we");
	if (!file)
		return plx_fail(errno, "cannot write %s: %s", path, strerror(errno));
	rc = json_dumpf(object, file, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_PRECISION));
	rc |= fputc('\n', file) == EOF;
	rc |= fclose(file);
	return rc ? plx_fail(EIO, "cannot write %s", path) : 0;
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

	plx_lcore_stats(plx_lcore_id(), &turns); /* cannot fail: this lcore */
	plx_idle_stats(plx_lcore_id(), &idle);
	set_count(object, "turns", turns.turns);
	set_count(object, "idle_turns", turns.idle_turns);
	set_count(object, "idle_periods", idle.periods);
	set_count(object, "sleeps", idle.sleeps);
	set_count(object, "naps", idle.naps);
	for (unsigned i = 0; i < PLX_WAKE_CAUSES; i++)
		set_count(object, causes[i], idle.wakes[i]);
	set_count(object, "sleeps_late", idle.late);
	set_count(object, "sleeps_refused", idle.refused);
	set_count(object, "wakes_spurious", idle.spurious);
	set_count(object, "rescues", idle.rescues);
	set_count(object, "asleep_ns", idle.asleep_ns);
	set_count(object, "spin_ns", idle.spin_ns);
	set_count(object, "wake_ns", idle.wake_ns);
	set_count(object, "sleep_ns", idle.sleep_ns);
	json_object_set_new(object, "awake_by",
			    idle.awake_by ? json_string(idle.awake_by) : json_null());
	return object;
}

void report_set_own(json_t *object, const struct ping_conf *conf,
		    const struct ping_outcome *outcome)
{
	json_object_set_new(object, "provider_choice", json_string(outcome->provider_choice));
	set_interrupted(object, conf, outcome);
	json_object_set_new(object, "warnings", warnings_json(outcome));
	json_object_set_new(object, "lcore", lcore_json());
}

/* What every measurement has is there already. */
static int add_own_keys(const struct ping_conf *conf, const struct ping_outcome *outcome)
{
	char path[PATH_BYTES];
	json_error_t error;
	json_t *object;
	int rc = path_of(conf, "json", path);

	if (rc)
		return rc;
	object = json_load_file(path, 0, &error);
	if (!object)
		return plx_fail(EIO, "%s: cannot be read back: %s", path, error.text);
	report_set_own(object, conf, outcome);
	rc = report_write_json(conf, object);
	json_decref(object);
	return rc;
}

/* The whole -------------------------------------------------------------------------------- */

int ping_report(const struct plx_app *app, const struct ping_conf *conf,
		const struct ping_outcome *outcome)
{
	struct plx_result result = {
		.name = conf->run.name,
		.provider = outcome->provider,
		.idle = outcome->idle,
		.size_bytes = conf->size_bytes,
		.elapsed_ns = outcome->elapsed_ns,
		.lost = outcome->lost,
		.rate = ping_rate(conf),
		.scheduled_ns = outcome->scheduled_ns,
		.sending_ns = outcome->sending_ns,
		.verified = conf->verify,
		.arrival = conf->run.rate ? plx_arrivals[conf->run.arrival] : NULL,
		.seed = conf->run.seed,
		.clock_drift_ppm = plx_clock_drift_ppm(),
		.rtt_ns = &outcome->rtt_ns,
		.service_ns = conf->run.rate ? &outcome->service_ns : NULL,
	};

	report_doubts(conf, outcome, outcome->rtt_ns.count, "round trips");
	plx_result_print(&result, stdout, 0);
	plx_app_say("provider %s: %s", outcome->provider, outcome->provider_choice);
	plx_app_say_idle(plx_lcore_id());
	if (outcome->again)
		plx_app_say("%llu %s", (unsigned long long)outcome->again,
			    conf->process ? "calls were told to wait: the service there takes no "
					    "more a second (--self-test)"
					  : "sends found no room and waited");
	ping_explain(conf, outcome);
	if (conf->run.out_dir &&
	    (plx_result_write(&result, conf->run.out_dir) != 0 || add_own_keys(conf, outcome) != 0))
		return plx_app_fail(app);
	if (!outcome->failed && plx_result_check(&result) != 0) {
		plx_app_fail(app);
		return PING_STATUS_DOUBTED;
	}
	return 0;
}
