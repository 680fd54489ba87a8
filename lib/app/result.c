/* SPDX-License-Identifier: BSD-3-Clause */
/* Write results to files for plotters and scripts. */
#include "app.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEAN_TOLERANCE 0.03  /* closed loop: against elapsed / count */
#define BETWEEN_NS     50.0  /* ... or this much per round trip, to count it and turn the loop */
#define RATE_LEAST     0.999 /* open loop: of the target */
#define LATE_LAST_NS   1e6   /* how late the last send of a short open loop may be */
#define HGRM_UNIT_NS   1000  /* .hgrm values are in microseconds */
#define PATH_BYTES     4096
#define REAL_PRECISION 12
#define DIRECTORY_MODE 0777

/* Sends per second, over the gaps: one fewer than sends. */
static double rate_over(const struct plx_result *result, uint64_t ns)
{
	if (!ns || result->rtt_ns->count < 2)
		return 0;
	return (double)(result->rtt_ns->count - 1) / (double)ns * (double)PLX_NS_PER_S;
}

static double achieved_rate(const struct plx_result *result)
{
	return rate_over(result, result->sending_ns);
}

static int check_closed_loop(const struct plx_result *result)
{
	double in_trips = result->rtt_ns->sum / (double)(result->in_flight ? result->in_flight : 1);
	double elapsed = (double)result->elapsed_ns;
	double off = elapsed > 0 ? in_trips / elapsed - 1 : -1;
	double between = BETWEEN_NS * (double)result->rtt_ns->count;

	if (result->has_gaps || fabs(off) <= MEAN_TOLERANCE ||
	    (elapsed > in_trips && elapsed - in_trips <= between))
		return 0;
	return plx_fail(ERANGE,
			"mean x count is %+.1f %% from the elapsed %.3f s (3 %%, or 50 ns a round "
			"trip, allowed): time was spent outside the round trips, or stamps are "
			"wrong",
			off * 100, elapsed / (double)PLX_NS_PER_S);
}

/* Check against the schedule, not the requested rate: a Poisson schedule differs from its rate by
 * chance. The last send may be late like any other; that is latency, and in the histogram. */
static int check_open_loop(const struct plx_result *result)
{
	double late_ns = (double)result->sending_ns - (double)result->scheduled_ns;

	if (late_ns <= (double)result->scheduled_ns * (1 - RATE_LEAST) + LATE_LAST_NS)
		return 0;
	return plx_fail(ERANGE,
			"achieved %.0f of %.0f scheduled requests per second (99.9 %% needed): ask "
			"for a lower rate, these percentiles are of an overloaded sender",
			achieved_rate(result), rate_over(result, result->scheduled_ns));
}

int plx_result_check(const struct plx_result *result)
{
	if (result->one_way)
		return result->count ? 0 : plx_fail(ERANGE, "no message was measured");
	if (!result->rtt_ns->count)
		return plx_fail(ERANGE, "no round trip was completed");
	if (result->lost)
		return plx_fail(ERANGE, "%llu requests had no answer: the slowest are missing",
				(unsigned long long)result->lost);
	return result->rate > 0 ? check_open_loop(result) : check_closed_loop(result);
}

/* JSON ------------------------------------------------------------------------------------- */

static void set_known(json_t *object, const char *key, bool known, uint64_t value)
{
	json_object_set_new(object, key, known ? json_integer((json_int_t)value) : json_null());
}

void plx_result_set_count(json_t *object, const char *key, uint64_t value)
{
	set_known(object, key, true, value);
}

void plx_result_set_quantile(json_t *object, const char *key, const struct plx_hist *hist,
			     double fraction)
{
	bool known = plx_hist_quantile_known(hist, fraction);

	set_known(object, key, known, known ? plx_hist_quantile(hist, fraction) : 0);
}

static void set_times(json_t *object, const struct plx_hist *hist)
{
	bool any = hist->count > 0;

	plx_result_set_count(object, "count", hist->count);
	set_known(object, "min_ns", any, hist->min);
	plx_result_set_quantile(object, "p50_ns", hist, 0.5);
	plx_result_set_quantile(object, "p90_ns", hist, 0.9);
	plx_result_set_quantile(object, "p99_ns", hist, 0.99);
	plx_result_set_quantile(object, "p99_9_ns", hist, 0.999);
	plx_result_set_quantile(object, "p99_99_ns", hist, 0.9999);
	set_known(object, "max_ns", any, hist->max);
	json_object_set_new(object, "mean_ns", any ? json_real(plx_hist_mean(hist)) : json_null());
}

static void set_open_loop(json_t *object, const struct plx_result *result)
{
	json_object_set_new(object, "rate", json_real(result->rate));
	json_object_set_new(object, "achieved_rate", json_real(achieved_rate(result)));
	if (result->arrival)
		json_object_set_new(object, "arrival", json_string(result->arrival));
	plx_result_set_count(object, "seed", result->seed);
	if (result->service_ns) {
		plx_result_set_quantile(object, "service_p50_ns", result->service_ns, 0.5);
		plx_result_set_quantile(object, "service_p99_ns", result->service_ns, 0.99);
	}
}

static void set_rates(json_t *object, const struct plx_result *result)
{
	double messages = plx_result_per_s(result);

	json_object_set_new(object, "one_way", json_true());
	plx_result_set_count(object, "count", result->count);
	json_object_set_new(object, "messages_per_s", json_real(messages));
	json_object_set_new(object, "bytes_per_s",
			    json_real(messages * (double)result->size_bytes));
	plx_result_set_count(object, "again", result->again);
}

static void set_interrupted(json_t *object, const struct plx_result *result)
{
	json_object_set_new(object, "interrupted",
			    result->interrupted ? json_string(result->interrupted) : json_null());
	if (result->interrupted && result->planned_count)
		plx_result_set_count(object, "planned_count", result->planned_count);
	else if (result->interrupted && result->planned_ns)
		plx_result_set_count(object, "planned_ns", result->planned_ns);
}

double plx_result_per_s(const struct plx_result *result)
{
	if (!result->elapsed_ns)
		return 0;
	return (double)result->count / (double)result->elapsed_ns * (double)PLX_NS_PER_S;
}

static json_t *result_json(const struct plx_result *result)
{
	json_t *object = json_object();
	bool in_order = plx_result_check(result) == 0;

	json_object_set_new(object, "name", json_string(result->name));
	json_object_set_new(object, "provider", json_string(result->provider));
	json_object_set_new(object, "idle", json_string(result->idle));
	plx_result_set_count(object, "size_bytes", result->size_bytes);
	if (result->one_way)
		set_rates(object, result);
	else
		set_times(object, result->rtt_ns);
	plx_result_set_count(object, "elapsed_ns", result->elapsed_ns);
	json_object_set_new(object, "valid", json_boolean(in_order && !result->failed));
	set_interrupted(object, result);
	if (!result->one_way)
		plx_result_set_count(object, "lost", result->lost);
	if (result->rate > 0)
		set_open_loop(object, result);
	json_object_set_new(object, "clock_drift_ppm", json_real(result->clock_drift_ppm));
	if (!in_order)
		json_object_set_new(object, "note", json_string(plx_error()));
	if (result->more)
		json_object_update(object, result->more);
	return object;
}

/* Files ------------------------------------------------------------------------------------ */

static int write_json(const void *object, FILE *file)
{
	if (json_dumpf(object, file, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_PRECISION)) ||
	    fputc('\n', file) == EOF || fflush(file))
		return plx_fail(EIO, "cannot write: %s", strerror(errno));
	return 0;
}

static int write_hgrm(const void *hist, FILE *file)
{
	return plx_hist_write_hgrm(hist, file, HGRM_UNIT_NS);
}

static int write_csv(const void *hist, FILE *file)
{
	return plx_hist_write_csv(hist, file);
}

static int make_directory(const char *dir)
{
	char path[PATH_BYTES];

	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return plx_fail(ENAMETOOLONG, "directory %.40s...: the name is too long", dir);
	for (char *at = path + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		mkdir(path, DIRECTORY_MODE); /* the last mkdir decides */
		*at = '/';
	}
	if (mkdir(path, DIRECTORY_MODE) && errno != EEXIST)
		return plx_fail(errno, "cannot make directory %s: %s", dir, strerror(errno));
	return 0;
}

static int write_file(const char *path, int (*write)(const void *what, FILE *file),
		      const void *what)
{
	FILE *file = fopen(path, "we");

	if (!file)
		return plx_fail(errno, "cannot write %s: %s", path, strerror(errno));
	int rc = write(what, file);
	if (fclose(file) && !rc)
		rc = plx_fail(EIO, "%s", strerror(errno));
	return rc ? plx_fail_in(rc, "%s: ", path) : 0;
}

int plx_app_write_json(const char *path, const json_t *object)
{
	return write_file(path, write_json, object);
}

int plx_app_write_hgrm(const char *path, const struct plx_hist *hist)
{
	return write_file(path, write_hgrm, hist);
}

/* Return: 0; -ENAMETOOLONG. */
static int path_of(const char *dir, const char *name, const char *suffix, char out[PATH_BYTES])
{
	if (snprintf(out, PATH_BYTES, "%s/%s.%s", dir, name, suffix) < PATH_BYTES)
		return 0;
	return plx_fail(ENAMETOOLONG, "%.40s.../%.40s: the name is too long", dir, name);
}

static int write_named(const char *dir, const char *name, const char *suffix,
		       int (*write)(const void *what, FILE *file), const void *what)
{
	char path[PATH_BYTES];
	int rc = path_of(dir, name, suffix, path);

	return rc ? rc : write_file(path, write, what);
}

int plx_result_prepare(const char *name, const char *dir)
{
	if (!*name || strchr(name, '/'))
		return plx_fail(EINVAL,
				"result name '%s': give one without '/', it names files in %s",
				name, dir);

	int rc = make_directory(dir);

	if (rc == 0 && access(dir, W_OK | X_OK) != 0)
		rc = plx_fail(errno, "cannot write into directory %s: %s", dir, strerror(errno));
	return rc;
}

int plx_result_write(const struct plx_result *result, const char *dir)
{
	int rc = plx_result_prepare(result->name, dir);
	json_t *object;

	if (rc)
		return rc;
	object = result_json(result);
	rc = write_named(dir, result->name, "json", write_json, object);
	if (rc == 0 && !result->one_way)
		rc = write_named(dir, result->name, "hgrm", write_hgrm, result->rtt_ns)
			   ?: write_named(dir, result->name, "csv", write_csv, result->rtt_ns);
	json_decref(object);
	return rc;
}

/* Files before a run ------------------------------------------------------------------------ */

/* A directory fails here, before the run. */
static bool is_forgotten(mode_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode);
}

/* Return: 1 removed; 0 it did not exist; -errno. */
static int forget_file(const char *path)
{
	struct stat found;

	if (lstat(path, &found) == 0 && (!is_forgotten(found.st_mode) || unlink(path) == 0))
		return 1;
	if (errno == ENOENT)
		return 0;
	return plx_fail(errno, "cannot remove %s of an earlier run: %s; give another --name", path,
			strerror(errno));
}

int plx_result_forget(const char *name, const char *dir, bool one_way)
{
	static const char *const suffixes[] = {"json", "hgrm", "csv"};
	char path[PATH_BYTES];
	int rc = 1;

	for (size_t i = 0; i < PLX_ARRAY_LEN(suffixes); i++) {
		rc = path_of(dir, name, suffixes[i], path);
		rc = rc ? rc : forget_file(path);
		if (rc < 0 || (rc == 0 && one_way))
			break;
	}
	return rc < 0 ? rc : 0;
}

/* Create it, and remove it again. */
static int try_to_make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	close(fd);
	unlink(path);
	return 0;
}

int plx_app_check_file(const char *option, const char *path)
{
	struct stat status;
	int rc = 0;

	if (!path)
		return 0;
	if (stat(path, &status) != 0)
		rc = try_to_make(path);
	else if (S_ISDIR(status.st_mode))
		rc = -EISDIR;
	else if (access(path, W_OK) != 0)
		rc = -errno;
	return rc ? plx_fail(EINVAL, "%s %s: cannot be written: %s", option, path, strerror(-rc))
		  : 0;
}
