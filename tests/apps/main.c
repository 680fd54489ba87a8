/* SPDX-License-Identifier: BSD-3-Clause */
/* A program as users write it, valid as C and as C++: one option of each kind, and the members that
 * may follow the help, by place. main_test.sh compiles and runs it; it prints what it got. */
#include "plx_app.h"

static const char *const colours[] = {"red", "green", NULL};

static bool is_quiet, count_given;
static const char *title = "none", *address;
static uint64_t count = 1, size_bytes = 64, pause_ns;
static unsigned colour;
static struct plx_app_list tags;

static const struct plx_option options[] = {
	PLX_FLAG("quiet", &is_quiet, "say less", 'q'),
	PLX_TEXT("title", "TEXT", &title, "any text (default none)", 0, false, NULL, true),
	PLX_ADDRESS("listen", &address, "host:port to listen on", 0, true),
	PLX_UINT("count", "N", &count, 1, 100, "a number (default 1)", 'n', false, &count_given),
	PLX_SIZE("size", "BYTES", &size_bytes, 0, 0, "a size (default 64)"),
	PLX_TIME("pause", "TIME", &pause_ns, 0, 0, "a time (default 0)"),
	PLX_CHOICE("colour", "NAME", &colour, colours, "red or green (default red)"),
	PLX_LIST("tag", "TAG", &tags, "several", 't'),
	PLX_OPTIONS_END,
};

static int check(void)
{
	return count_given && count == 13 ? plx_fail(EINVAL, "--count 13: give another") : 0;
}

static void print_options(void)
{
	plx_app_say("quiet %d title '%s' listen %s count %d of %u size %u pause %u colour %s",
		    is_quiet, title, address, count_given, PLX_CAST(unsigned, count),
		    PLX_CAST(unsigned, size_bytes), PLX_CAST(unsigned, pause_ns), colours[colour]);
	for (unsigned i = 0; i < tags.count; i++)
		plx_app_say("tag %s", tags.at[i]);
}

int main(int argc, char **argv)
{
	static struct plx_eal_conf eal; /* the program's own settings */
	static struct plx_app app;
	int status;

	eal.huge = PLX_HUGE_NONE;
	app.version = "1.2";
	app.options = options;
	app.check = check;
	app.eal = &eal;
	status = plx_app_start(argc, argv, &app);
	if (status != PLX_APP_RUN)
		return status;
	print_options();
	plx_fail(EIO, "a failure");
	return plx_app_finish(&app, is_quiet ? 0 : plx_app_fail(&app));
}
