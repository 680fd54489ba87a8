/* SPDX-License-Identifier: BSD-3-Clause */
/* Create lcores in a process without any: the thread in main() that calls netio_init becomes an
 * lcore, and all of this runs on it. There is no exit handler: the kernel frees everything. */
#include "netio_priv.h"
#include "plx_eal.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define ENVIRONMENT "NETIO_OPTIONS"
#define WORDS_MAX   64
#define BLANKS      " \t\n"

static unsigned entered; /* loops of the thread that created the lcores; 0: not ours */

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
	if (rc == 0)
		rc = plx_eal_init(&conf);
	if (rc && value)
		plx_fail_in(rc, ENVIRONMENT "='%s': ", value);
	plx_eal_conf_fini(&conf);
	free(text);
	return rc;
}

static bool is_ours(void)
{
	return entered && plx_lcore_id() == plx_lcore_main();
}

int netio_process_enter(const struct plx_eal_conf *conf)
{
	if (plx_lcore_count() == 0) {
		int rc = set_up(conf);

		if (rc)
			return rc;
		entered = 1;
	} else if (plx_lcore_id() == PLX_LCORE_NONE) {
		return plx_fail(ENOENT, "netio_init: this thread is none of the lcores that there "
					"are; call it in a function that plx_lcore_launch started");
	} else if (is_ours()) {
		entered++;
	}
	return 0;
}

int netio_process_leave(void)
{
	int rc;

	if (plx_is_forked())
		return plx_eal_fini();
	if (!is_ours())
		return 0;
	rc = entered > 1 ? 0 : plx_eal_fini();
	if (rc == 0)
		entered--;
	return rc;
}
