/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal_priv.h"
#include "plx_fabric_driver.h"
#include "plx_test.h"

#include <stdio.h>

#define WORDS_MAX 32

static struct plx_eal_conf conf;

PLX_FIXTURE(forget, 0, plx_eal_conf_fini(&conf))

/* Parse the NULL-terminated words after an argv[0]. */
static int parse(const char *const *words)
{
	const char *argv[WORDS_MAX] = {"program"};
	int argc = 1;

	for (; *words; words++)
		argv[argc++] = *words;
	return plx_eal_parse(argc, (char **)argv, &conf);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})
#define TEST(name) PLX_TEST_WITH(name, NULL, forget)

TEST(every_form_of_an_option_is_read)
{
	static const char *const forms[][3] = {
		{"-l", "0-3"},    {"-l0-3"},         {"--lcores", "0-3"},
		{"--lcores=0-3"}, {"--lcor", "0-3"}, {"--lc=0-3"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(forms); i++) {
		assert_int_equal(parse(forms[i]), forms[i][1] ? 2 : 1);
		assert_string_equal(conf.lcores, "0-3");
		plx_eal_conf_fini(&conf);
	}
}

TEST(all_options_reach_their_fields)
{
	assert_int_equal(PARSE("-c", "f", "--main-lcore", "1", "--socket-mem", "64,32", "--huge",
			       "1G", "--numa", "strict", "--provider", "net", "--config", "x.conf",
			       "--log-level", "eal:debug", "--log-level", "info", "--dry-run",
			       "--version", "--help"),
			 21);
	assert_null(conf.lcores);
	assert_string_equal(conf.coremask, "f");
	assert_int_equal(conf.main_lcore, 1);
	assert_int_equal(conf.node_bytes[1], 32 << 20);
	assert_int_equal(conf.huge, PLX_HUGE_1G);
	assert_int_equal(conf.numa, PLX_NUMA_STRICT);
	assert_string_equal(conf.provider, "net");
	assert_string_equal(conf.config, "x.conf");
	assert_int_equal(conf.log_level_count, 2);
	assert_string_equal(conf.log_levels[0], "eal:debug");
	assert_string_equal(conf.log_levels[1], "info");
	assert_true(conf.dry_run && conf.show_version && conf.show_help);
}

TEST(parsing_ends_at_the_options_of_the_application)
{
	assert_int_equal(PARSE("-l", "0", "--", "--huge", "none"), 3);
	assert_int_equal(conf.huge, PLX_HUGE_2M);
	plx_eal_conf_fini(&conf);
	assert_int_equal(PARSE("-l", "0", "word", "--huge", "none"), 2);
	assert_int_equal(conf.huge, PLX_HUGE_2M);
	plx_eal_conf_fini(&conf);
	assert_int_equal(PARSE("--"), 1);
	assert_int_equal(parse((const char *const[]){NULL}), 0);
	assert_int_equal(plx_eal_parse(0, (char *[]){NULL}, &conf), 0);
}

TEST(values_are_not_taken_for_options)
{
	assert_int_equal(PARSE("--config=-x", "-l", "xlcores"), 3);
	assert_string_equal(conf.config, "-x");
	assert_string_equal(conf.lcores, "xlcores"); /* not an option without its dash */
}

TEST(argv_is_not_reordered)
{
	const char *argv[] = {"program", "-l", "0", "word", "--huge", "none", NULL};
	const char *before[PLX_ARRAY_LEN(argv)];

	memcpy(before, argv, sizeof(argv));
	assert_int_equal(plx_eal_parse(6, (char **)argv, &conf), 2);
	assert_memory_equal(before, argv, sizeof(argv));
}

TEST(bad_options_are_reported)
{
	static const struct {
		const char *words[6];
		const char *text;
	} rows[] = {
		{{"--lcore-list", "0"},
		 "--lcore-list: unknown option; did you mean --lcores? (--help lists all)"},
		{{"--frobnicate=1"}, "--frobnicate: unknown option (--help lists all)"},
		{{"-lcores", "0"}, "-lcores: a long option has two dashes; give --lcores"},
		{{"-x"}, "-x: unknown option (--help lists all)"},
		{{"--co", "1"}, "--co: ambiguous; give --coremask or --config"},
		{{"--lcores"}, "--lcores: a value is missing; give --lcores LIST"},
		{{"-l"}, "-l: a value is missing; give -l LIST"},
		{{"-l", "--", "x"}, "-l: a value is missing, and '--' follows; give -l LIST"},
		{{"--huge", "--dry-run"},
		 "--huge: a value is missing, and '--dry-run' follows; give --huge 2M|1G|none"},
		{{"--lcores="}, "--lcores: a value is missing; give --lcores LIST"},
		{{"-l", ""}, "-l: a value is missing; give -l LIST"},
		{{"--dry-run=yes"}, "--dry-run=yes: takes no value; give --dry-run alone"},
		{{"-l", "0", "--lcores", "1"}, "--lcores 1: given before as -l; give one of them"},
		{{"--numa", "any", "--numa=any"},
		 "--numa any: given before as --numa; give one of them"},
		{{"--dry-run", "--dry-run"}, "--dry-run: given twice; give it once"},
		{{"-l", "0", "-c", "1"},
		 "-l 0 and -c 1: give one of them, a list or a mask, not both"},
		{{"--coremask=3", "--lcores=0"},
		 "--lcores 0 and --coremask 3: give one of them, a list or a mask, not both"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_int_equal(parse(rows[i].words), -EINVAL);
		assert_string_equal(plx_error(), rows[i].text);
		plx_eal_conf_fini(&conf);
	}
}

TEST(too_many_log_levels_are_refused)
{
	const char *argv[2 + PLX_EAL_LEVELS_MAX] = {"program"};

	for (int i = 1; i <= PLX_EAL_LEVELS_MAX + 1; i++)
		argv[i] = "--log-level=info";
	assert_int_equal(plx_eal_parse(2 + PLX_EAL_LEVELS_MAX, (char **)argv, &conf), -EINVAL);
	assert_string_equal(plx_error(),
			    "--log-level info: too many log levels; at most 16 are allowed");
}

TEST(the_command_line_overrides_the_program)
{
	conf = (struct plx_eal_conf){.coremask = "ff", .huge = PLX_HUGE_NONE};
	assert_int_equal(PARSE("-l", "2", "--huge", "1G"), 4);
	assert_string_equal(conf.lcores, "2");
	assert_null(conf.coremask);
	assert_int_equal(conf.huge, PLX_HUGE_1G);
}

PLX_TEST(the_help_describes_every_option)
{
	const char *help = plx_eal_options_help();
	char wanted[64];

	for (size_t i = 0; i < OPT_COUNT; i++) {
		const struct plx_option *option = &plx_eal_options[i];

		snprintf(wanted, sizeof(wanted), "--%s %s", option->name,
			 option->placeholder ? option->placeholder : "");
		assert_non_null(strstr(help, wanted));
	}
	assert_non_null(strstr(help, "(default: auto)"));
	assert_ptr_equal(plx_eal_options_help(), help);
}

PLX_TEST(the_help_names_each_setting_of_tcp)
{
	const char *help = plx_eal_options_help(), *key;
	char keys[256];
	unsigned count = 0;

	assert_int_equal(plx_fabric_check_tcp(plx_drivers, "--tcp", "x=1"), -EINVAL);
	key = strstr(plx_error(), "keys from ");
	assert_non_null(key);
	snprintf(keys, sizeof(keys), "%s", key + strlen("keys from "));
	for (char *word = strtok(keys, ", "); word; word = strtok(NULL, ", ")) {
		if (!strstr(help, word))
			fail_msg("--help lacks the setting '%s' of --tcp", word);
		count++;
	}
	assert_true(count > 5);
}

PLX_TEST(the_help_fits_eighty_columns)
{
	for (const char *line = plx_eal_options_help(); *line; line += strspn(line, "\n")) {
		size_t len = strcspn(line, "\n");

		assert_in_range(len, 1, 80);
		line += len;
	}
}

PLX_TEST_MAIN()
