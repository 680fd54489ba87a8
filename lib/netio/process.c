/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcores for a process that has none: a plain main() that calls netio_init becomes one, and need
 * not end what it never saw begin. */
#include "netio_priv.h"
#include "plx_eal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ENVIRONMENT "NETIO_OPTIONS"
#define WORDS_MAX   64
#define BLANKS      " \t\n"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned entered; /* loops that there are */
static bool ours;        /* the lcores were set up here */

/* Options as of a command line. conf points into text, which is changed. */
static int parse(char *text, struct plx_eal_conf *conf)
{
	char name[] = "netio", *words[WORDS_MAX + 1] = {name}, *rest;
	int count = 1, used;

	for (char *word = strtok_r(text, BLANKS, &rest); word;
	     word = strtok_r(NULL, BLANKS, &rest)) {
		if (count == WORDS_MAX)
			return plx_fail(EINVAL, "more than %d words", WORDS_MAX - 1);
		words[count++] = word;
	}
	used = plx_eal_parse(count, words, conf);
	if (used < 0)
		return used;
	if (conf->show_help || conf->show_version || conf->dry_run)
		return plx_fail(EINVAL, "--help, --version and --dry-run are for command lines; "
					"give options that say how to run");
	if (used + 1 < count)
		return plx_fail(EINVAL, "'%s' is no option; see pollux(7) for what there is",
				words[used + 1]);
	return 0;
}

static void end_at_exit(void)
{
	if (ours)
		plx_eal_fini();
	ours = false;
}

static int set_up(const struct plx_eal_conf *wanted)
{
	static bool at_exit;
	struct plx_eal_conf conf = {0};
	const char *value = getenv(ENVIRONMENT);
	char *text = strdup(value ? value : "");
	int rc;

	if (!text)
		return plx_fail(ENOMEM, "netio_init: out of memory");
	if (wanted) /* as what the program set: it keeps what it owns */
		conf = *wanted;
	memset(conf.origin, 0, sizeof(conf.origin));
	memset(conf.level_origins, 0, sizeof(conf.level_origins));
	conf.owned_count = 0;
	rc = parse(text, &conf);
	if (rc == 0)
		rc = plx_eal_init(&conf);
	if (rc && value)
		plx_fail_in(rc, ENVIRONMENT "='%s': ", value);
	plx_eal_conf_fini(&conf);
	free(text);
	if (rc)
		return rc;
	if (!at_exit && atexit(end_at_exit) == 0)
		at_exit = true;
	ours = true;
	return 0;
}

int netio_process_enter(const struct plx_eal_conf *conf)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (plx_lcore_count() == 0) {
		if (!plx_log_has_sink())
			plx_log_set_sink(plx_log_to_stderr, NULL);
		rc = set_up(conf);
	}
	entered += rc == 0;
	pthread_mutex_unlock(&lock);
	return rc;
}

int netio_process_leave(void)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	entered--;
	if (ours && !entered) {
		rc = plx_eal_fini();
		ours = rc != 0; /* it hangs: the end of the process tries again */
	}
	pthread_mutex_unlock(&lock);
	return rc;
}
