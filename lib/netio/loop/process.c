/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcores for threads that are none. The first one that calls netio_init starts Pollux, and is the
 * main lcore; others are adopted. The last one that calls netio_fini ends it. */
#include "netio_priv.h"
#include "plx_eal.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ENVIRONMENT "NETIO_OPTIONS"
#define WORDS_MAX   64
#define BLANKS      " \t\n"

/* Parse options as on a command line. Modifies text; conf points into it. */
static int parse(char *text, struct plx_eal_conf *conf)
{
	char name[] = "netio", *words[WORDS_MAX + 1] = {name}, *rest;
	int old_optind = optind, old_opterr = opterr;
	int count = 1, used;

	for (char *word = strtok_r(text, BLANKS, &rest); word;
	     word = strtok_r(NULL, BLANKS, &rest)) {
		if (count == WORDS_MAX)
			return plx_fail(EINVAL, "more than %d words", WORDS_MAX - 1);
		words[count++] = word;
	}
	used = plx_eal_parse(count, words, conf);
	/* Restore getopt's state for the program. */
	optind = old_optind > 1 ? old_optind : 0; /* 0: glibc restarts at argv[1] */
	opterr = old_opterr;
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

static int set_up(const struct plx_eal_conf *wanted)
{
	struct plx_eal_conf conf = {0};
	const char *value = getenv(ENVIRONMENT), *file;
	char *text = strdup(value ? value : "");
	int rc;

	if (!text)
		return plx_fail(ENOMEM, "netio_init: out of memory");
	if (wanted) /* a copy: the caller keeps what it owns */
		conf = *wanted;
	memset(conf.origin, 0, sizeof(conf.origin));
	memset(conf.level_origins, 0, sizeof(conf.level_origins));
	conf.owned_count = 0;
	file = conf.config;
	rc = parse(text, &conf);
	if (conf.config != file)
		conf.config_read = false;
	conf.any_cpu = true; /* unless options name CPUs */
	if (rc == 0)
		rc = plx_eal_init(&conf);
	if (rc && value)
		plx_fail_in(rc, ENVIRONMENT "='%s': ", value);
	plx_eal_conf_fini(&conf);
	free(text);
	return rc;
}

/* The lock guards `is_ours` and `threads`, and lets one thread at a time set up the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_ours;     /* netio_init has set up the process, and ends that */
static unsigned threads; /* that netio_init has made lcores */

static __thread unsigned entered; /* loops of this thread, if netio_init made it an lcore */

/* Under the lock. */
static int become_lcore(const struct plx_eal_conf *conf)
{
	bool is_first = plx_lcore_count() == 0;
	int rc = is_first ? set_up(conf) : plx_lcore_adopt();

	if (rc)
		return rc;
	lcore_leave_by("netio_fini");
	is_ours |= is_first;
	threads++;
	return 0;
}

bool netio_process_is_ours(void)
{
	return entered > 0;
}

/* Also if a C++ callback throws. */
static void unlock(pthread_mutex_t **locked)
{
	pthread_mutex_unlock(*locked);
}

static pthread_mutex_t *take_lock(void)
{
	pthread_mutex_lock(&lock);
	return &lock;
}

static int enter_first(const struct plx_eal_conf *conf)
{
	pthread_mutex_t *locked PLX_CLEANUP(unlock) = take_lock();

	return become_lcore(conf);
}

int netio_process_enter(const struct plx_eal_conf *conf)
{
	int rc;

	if (plx_is_forked())
		return plx_fail_forked("netio_init");
	if (!entered && plx_lcore_id() != PLX_LCORE_NONE) /* the program made it one */
		return 0;
	rc = entered ? 0 : enter_first(conf);
	entered += rc == 0;
	return rc;
}

/* Under the lock, on the last thread. The main lcore also ends the others. Another one must leave
 * before: so it waits for threads that the program has made lcores first. */
static int end_all(void)
{
	int rc = 0;

	if (plx_lcore_id() != plx_lcore_main())
		rc = lcore_wait_adopted("netio_fini", PLX_CLOSE_NS) ?: plx_lcore_leave();
	return rc ?: plx_eal_fini();
}

/* The lcore of a thread that leaves is gone, even if another one does not end. */
static int leave_last(void)
{
	pthread_mutex_t *locked PLX_CLEANUP(unlock) = take_lock();
	bool is_last = is_ours && threads == 1;
	int rc = is_last ? end_all() : plx_lcore_leave();

	if (plx_lcore_id() != PLX_LCORE_NONE)
		return rc;
	entered = 0;
	threads--;
	is_ours &= plx_lcore_count() > 0;
	return rc;
}

int netio_process_leave(void)
{
	if (plx_is_forked())
		return plx_eal_fini();
	if (entered == 1)
		return leave_last();
	entered -= entered > 0;
	return 0;
}
