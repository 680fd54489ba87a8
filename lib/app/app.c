/* SPDX-License-Identifier: BSD-3-Clause */
/* The start and the end of an application, with all that it prints about its command line. */
#include "app_priv.h"

#include <rdma/fabric.h>
#include <string.h>

#define STATUS_FAILED 1
#define STATUS_USAGE  2

/* Which words are whose. */
struct words {
	int eal_count;     /* from argv[0] on, for plx_eal_parse */
	int own_first;     /* the application's own begin here */
	const char *stray; /* before "--" and no EAL option, or NULL */
};

/* Where "--" is; 0 where there is none. */
static int find_dashes(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return 0;
}

/* Without "--", the first word that is not surely the EAL's begins the application's own. */
static struct words divide(int argc, char **argv, const struct plx_app *app)
{
	int dashes = find_dashes(argc, argv), end = dashes ? dashes : argc, i = 1;

	while (i < end) {
		int taken = plx_eal_option_words(argv[i]);

		if (taken == 0 || (!dashes && app_options_have(app, argv[i])))
			break;
		i += taken;
	}
	if (i > end) /* the last one's value is missing */
		i = end;
	return (struct words){
		.eal_count = i,
		.own_first = dashes ? dashes + 1 : i,
		.stray = dashes && i < end ? argv[i] : NULL,
	};
}

static int fail_stray(const struct plx_app *app, const char *word)
{
	if (app_options_have(app, word))
		return plx_fail(EINVAL, "%.*s: an option of %s itself; give it behind '--'",
				(int)strcspn(word, "="), word, app->name);
	return app_options_fail_unknown(app, word);
}

/* Everything that argv and the configuration file say. Whoever asks for help gets it, whatever is
 * wrong with the words behind. */
static int read_all(int argc, char **argv, const struct plx_app *app, struct plx_eal_conf *conf,
		    struct app_asked *asked)
{
	struct words words = divide(argc, argv, app);
	int rc = plx_eal_parse(words.eal_count, argv, conf);

	asked->help = conf->show_help;
	asked->version = conf->show_version;
	if (asked->help || (rc >= 0 && asked->version))
		return 0;
	if (rc < 0)
		return rc;
	if (words.stray)
		return fail_stray(app, words.stray);
	rc = app_options_parse(argc - words.own_first, argv + words.own_first, app, asked);
	if (rc || asked->help || asked->version)
		return rc;
	rc = app->check ? app->check() : 0;
	return rc ? rc : plx_eal_conf_file(conf);
}

/* Printing --------------------------------------------------------------------------------- */

static void print_help(const struct plx_app *app)
{
	printf("%s: %s\n\nUsage:\n%s%s\n", app->name, app->summary, app->usage,
	       app->usage[0] && app->usage[strlen(app->usage) - 1] == '\n' ? "" : "\n");
	if (app->options && app->options[0].name) {
		printf("Options of %s:\n", app->name);
		app_options_help(app, stdout);
		printf("\n");
	}
	printf("EAL options. They come first; '--' ends them, and may be left out.\n%s",
	       plx_eal_options_help());
}

static void print_version(const struct plx_app *app)
{
	uint32_t fabric = fi_version();

	printf("%s (Pollux) %s, libfabric %u.%u\n", app->name, plx_version(), FI_MAJOR(fabric),
	       FI_MINOR(fabric));
}

int plx_app_fail(const struct plx_app *app)
{
	fprintf(stderr, "%s: %s\n", app->name, plx_error());
	return STATUS_FAILED;
}

static int fail_usage(const struct plx_app *app)
{
	plx_app_fail(app);
	fprintf(stderr, "try %s --help\n", app->name);
	return STATUS_USAGE;
}

/* Start and end ---------------------------------------------------------------------------- */

static int bring_up(const struct plx_app *app, struct plx_eal_conf *conf)
{
	static char text[32768]; /* a line per lcore */
	int rc = plx_eal_init(conf);

	if (rc == -EINVAL)
		return fail_usage(app);
	if (rc)
		return plx_app_fail(app);
	if (!conf->dry_run)
		return PLX_APP_RUN;
	fputs(plx_eal_describe(text, sizeof(text)), stdout);
	return plx_app_finish(app, 0);
}

int plx_app_start(int argc, char **argv, const struct plx_app *app)
{
	struct plx_eal_conf conf = {.idle = app->idle};
	struct app_asked asked = {0};
	int status = 0;

	plx_log_set_sink(plx_log_to_stderr, NULL);
	if (read_all(argc, argv, app, &conf, &asked))
		status = fail_usage(app);
	else if (asked.help)
		print_help(app);
	else if (asked.version)
		print_version(app);
	else
		status = bring_up(app, &conf);
	plx_eal_conf_fini(&conf);
	return status;
}

int plx_app_finish(const struct plx_app *app, int status)
{
	return plx_eal_fini() ? plx_app_fail(app) : status;
}
