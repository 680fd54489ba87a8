/* SPDX-License-Identifier: BSD-3-Clause */
/* The start and the end of a program, and the messages about its command line. */
#include "app_priv.h"
#include "plx_lcore.h"

#include <rdma/fabric.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS_FAILED   1
#define STATUS_USAGE    2

#define PRINTABLE_BYTES 4096 /* an error text has at most 1023 bytes */

const char *app_name(const struct plx_app *app)
{
	return app->name ?: program_invocation_short_name;
}

/* Read argv, up to --help or --version, and the configuration file. Options of both may be in any
 * order. If both have an option with the same name, the EAL's is the one before "--". first: of the
 * EAL's options. */
static int read_all(int argc, char **argv, const struct plx_app *app, enum eal_option_id first,
		    struct plx_eal_conf *conf)
{
	int mode = app_options_take_mode(app, argc > 1 ? argv[1] : NULL);
	int dashes = 1 + mode, rc; /* dashes: index of "--", or argc */
	uint64_t seen = 0;

	if (mode < 0)
		return mode;
	while (dashes < argc && strcmp(argv[dashes], "--") != 0)
		dashes++;
	for (int i = 1 + mode + (dashes == 1 + mode); i < argc; i += i == dashes) {
		int end = i < dashes ? dashes : argc;

		rc = app_options_own(app, plx_eal_options + first, argv[i],
				     i < dashes && dashes < argc)
			   ? app_options_take(app, end - i, argv + i, &seen)
			   : eal_options_take(first, end - i, argv + i, conf);
		if (rc < 0)
			return rc;
		if (conf->show_help || conf->show_version)
			return 0; /* even if later words are wrong */
		i += rc;
	}
	return app_options_check(app, mode, seen) ?: plx_eal_conf_file(conf);
}

/* Printing --------------------------------------------------------------------------------- */

static void print_usage(const struct plx_app *app, bool takes_eal)
{
	printf("%s%s%s\n\nUsage:\n", app_name(app), app->summary ? ": " : "", app->summary ?: "");
	if (app->usage)
		printf("%s\n", app->usage);
	else
		app_options_print_usage(app, takes_eal);
	printf("\n");
}

static void print_eal_options(const struct plx_app *app, enum eal_option_id first)
{
	static const char both[] =
		". They mix with the program's own in any order. If both have an option\n"
		"of one name, it is the program's, or the EAL's before '--'.";

	if (first == 0)
		printf("EAL options%s\n%s", app->options ? both : ":", plx_eal_options_help());
	else
		printf("It takes no EAL options, because it starts no lcore.\n");
}

static int print_help(const struct plx_app *app, enum eal_option_id first)
{
	bool has_options = app->options && app->options[0].name;

	print_usage(app, first == 0);
	if (has_options || first)
		printf("Options of %s:\n", app_name(app));
	plx_app_print_options(app, stdout);
	if (first)
		plx_app_print_options(&(struct plx_app){.options = plx_eal_options + first},
				      stdout);
	if (has_options || first)
		printf("\n");
	print_eal_options(app, first);
	if (app->examples)
		printf("\nExamples:\n%s\n", app->examples);
	if (app->more)
		printf("\nMore: %s\n", app->more);
	return plx_app_end_output(app, 0);
}

static int print_version(const struct plx_app *app)
{
	uint32_t fabric = fi_version();

	printf("%s%s%s (Pollux %s, libfabric %u.%u)\n", app_name(app), app->version ? " " : "",
	       app->version ?: "", plx_version(), FI_MAJOR(fabric), FI_MINOR(fabric));
	return plx_app_end_output(app, 0);
}

/* The text may quote the command line, and what is on it must not control a terminal. */
int plx_app_fail(const struct plx_app *app)
{
	char printable[PRINTABLE_BYTES];

	fprintf(stderr, "%s: %s\n", app_name(app),
		plx_app_printable(plx_error(), printable, sizeof(printable)));
	return STATUS_FAILED;
}

int plx_app_end_output(const struct plx_app *app, int status)
{
	if (plx_app_flush() == 0)
		return status;
	plx_app_fail(app);
	return status ? status : STATUS_FAILED;
}

int plx_app_fail_usage(const struct plx_app *app)
{
	plx_app_fail(app);
	fprintf(stderr, "try %s --help\n", app_name(app));
	return STATUS_USAGE;
}

/* Start and end ---------------------------------------------------------------------------- */

static int bring_up(const struct plx_app *app, struct plx_eal_conf *conf)
{
	static char text[32768]; /* one line per lcore */
	bool is_short = app->is_short && app->is_short();
	int rc;

	conf->any_cpu = conf->any_cpu || is_short;
	if (is_short && conf->idle == (app->eal ? app->eal->idle : NULL))
		conf->idle = "event";
	rc = plx_eal_init(conf);
	if (rc == -EINVAL)
		return plx_app_fail_usage(app);
	if (rc)
		return plx_app_fail(app);
	if (!conf->dry_run) {
		plx_stop_on_signals(); /* before this, signals end the program at once */
		return PLX_APP_RUN;
	}
	fputs(plx_eal_describe(text, sizeof(text)), stdout);
	return plx_app_finish(app, 0);
}

static void prepare_output(void)
{
	static char output[65536];

	plx_hold_stdio();
	/* Large enough for most output, so that plx_app_flush knows why a write failed. */
	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, output, _IOFBF, sizeof(output));
	/* A write fails instead, and that is reported. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

/* first: of the EAL's options; from OPT_VERSION on there is none that needs the EAL. */
static int start(int argc, char **argv, const struct plx_app *app, enum eal_option_id first)
{
	struct plx_eal_conf conf = {0};
	int status = PLX_APP_RUN;

	prepare_output();
	if (app_options_check_table(app))
		return plx_app_fail(app);
	if (app->eal)
		conf = *app->eal;
	if (read_all(argc, argv, app, first, &conf))
		status = plx_app_fail_usage(app);
	else if (conf.show_help)
		status = print_help(app, first);
	else if (conf.show_version)
		status = print_version(app);
	else if (first == 0)
		status = bring_up(app, &conf);
	plx_eal_conf_fini(&conf);
	return status;
}

int plx_app_start(int argc, char **argv, const struct plx_app *app)
{
	return start(argc, argv, app, 0);
}

int plx_app_start_alone(int argc, char **argv, const struct plx_app *app)
{
	return start(argc, argv, app, OPT_VERSION);
}

int plx_app_finish(const struct plx_app *app, int status)
{
	return plx_app_end_output(app, plx_eal_fini() ? plx_app_fail(app) : status);
}
