/* SPDX-License-Identifier: BSD-3-Clause */
#include "app_priv.h"
#include "option_words.h"
#include "plx_test.h"

#include <stdio.h>

#define WORDS_MAX 16

static const char *const colours[] = {"red", "green", "blue", NULL};

static struct {
	const char *listen;
	uint64_t count, size_bytes, pause_ns;
	unsigned colour;
	bool verify, listen_given, counted;
	int check_result;
	uint64_t port;
	bool quiet;
	struct plx_app_list tags;
	const char *title, *from;
} values;

static const struct plx_option options[] = {
	PLX_TEXT("listen", "ADDR", &values.listen, "an address", .given = &values.listen_given),
	PLX_UINT("count", "N", &values.count, 1, 1000, "a number"),
	PLX_FLAG("counted", &values.counted, "a name that begins as another"),
	PLX_SIZE("size", "BYTES", &values.size_bytes, 0, 1 << 20, "a size"),
	PLX_TIME("pause", "TIME", &values.pause_ns, PLX_NS_PER_MS, 90 * PLX_NS_PER_S, "a time"),
	PLX_CHOICE("colour", "NAME", &values.colour, colours, "a colour"),
	PLX_FLAG("verify", &values.verify, "look at the content"),
	PLX_UINT("port", "PORT", &values.port, 1, 65535, "a number with a letter", .letter = 'p'),
	PLX_FLAG("quiet", &values.quiet, "say less", .letter = 'q'),
	PLX_LIST("tag", "TAG", &values.tags, "several", .letter = 't'),
	PLX_ADDRESS("from", &values.from, "an address that is checked"),
	PLX_TEXT("title", "TEXT", &values.title, "a text", .may_be_empty = true),
	PLX_OPTIONS_END,
};

static int check(void)
{
	return values.check_result ? plx_fail(EINVAL, "the check says no") : 0;
}

static const struct plx_app app = {.name = "prog", .options = options, .check = check};

PLX_FIXTURE(reset, 0, memset(&values, 0, sizeof(values)))

static int parse(const char *const *words)
{
	const char *argv[WORDS_MAX];
	int argc = 0;

	for (; *words; words++)
		argv[argc++] = *words;
	return plx_app_parse(argc, (char **)argv, &app);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

#define TEST(name) PLX_TEST_WITH(name, reset, NULL)

TEST(an_option_of_every_kind_is_stored)
{
	values.colour = 7;
	assert_int_equal(PARSE("--listen", "a:1", "--count=7", "--size", "4K", "--pause", "1.5s",
			       "--verify", "--from", "b:2"),
			 0);
	assert_string_equal(values.listen, "a:1");
	assert_true(values.listen_given);
	assert_int_equal(values.count, 7);
	assert_int_equal(values.size_bytes, 4096);
	assert_int_equal(values.pause_ns, 1500 * PLX_NS_PER_MS);
	assert_true(values.verify);
	assert_string_equal(values.from, "b:2");
	/* Not given: the default. */
	assert_int_equal(values.colour, 7);
	assert_false(values.quiet);
	assert_int_equal(PARSE("--colour", "blue"), 0);
	assert_int_equal(values.colour, 2);
	assert_int_equal(parse((const char *const[]){NULL}), 0);
}

TEST(a_value_is_the_rest_of_the_word_or_the_next_word)
{
	static const struct {
		const char *words[2];
		const char *title; /* NULL: the word is no title */
		unsigned port;
	} rows[] = {
		{{"--title", "x"}, "x", 0},     {{"--title=x"}, "x", 0},
		{{"--title=a=b"}, "a=b", 0},    {{"--tit=x"}, "x", 0},
		{{"--title", ""}, "", 0},       {{"--title="}, "", 0},
		{{"--title", "-"}, "-", 0},     {{"--title", "-.5"}, "-.5", 0},
		{{"--title=-x"}, "-x", 0},      {{"--title", "\x1b"}, "\x1b", 0}, /* any text */
		{{"-p", "12345"}, NULL, 12345}, {{"-p7"}, NULL, 7},
		{{"--port=8"}, NULL, 8},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		const char *const words[] = {rows[i].words[0], rows[i].words[1], NULL};

		reset(NULL);
		assert_works(parse(words));
		assert_int_equal(values.port, rows[i].port);
		if (rows[i].title)
			assert_string_equal(values.title, rows[i].title);
	}
}

TEST(a_whole_name_is_preferred_to_a_longer_one)
{
	assert_int_equal(PARSE("--count=3"), 0);
	assert_int_equal(values.count, 3);
	assert_false(values.counted);
	assert_int_equal(PARSE("--counted", "-q"), 0);
	assert_true(values.counted && values.quiet);
}

TEST(a_list_takes_several_values_in_order_up_to_a_limit)
{
	assert_int_equal(PARSE("-t", "1", "--tag=2", "--verify", "--tag", "3", "-t4"), 0);
	assert_int_equal(values.tags.count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(values.tags.at[i][0], '1' + i);
	for (int i = 4; i < PLX_APP_LIST_MAX; i++)
		assert_int_equal(PARSE("-t", "7"), 0);
	assert_int_equal(values.tags.count, PLX_APP_LIST_MAX);
	assert_fails(PARSE("--tag", "8"), -EINVAL,
		     "--tag 8: it was given 64 times already; give at most 64");
	assert_int_equal(values.tags.count, PLX_APP_LIST_MAX);
}

TEST(bad_options_are_reported)
{
	static const struct {
		const char *words[5];
		const char *text;
	} rows[] = {
		{{"--lissen", "x"}, "--lissen: unknown option; did you mean --listen?"},
		{{"--lcore-list=1"}, "--lcore-list: unknown option; did you mean --lcores?"},
		{{"--lcores=0"}, "--lcores: an EAL option; prog takes none"},
		{{"-l", "0"}, "-l: an EAL option; prog takes none"},
		{{"-x"}, "-x: unknown option (--help lists all)"},
		{{"-verify"}, "-verify: a long option has two dashes; give --verify"},
		{{"listen"}, "listen: not an option; did you mean --listen? (--help lists all)"},
		{{"--"}, "--: not an option (--help lists all)"},
		{{""}, ": not an option"},
		{{"--co=1"}, "--co: ambiguous; give --count or --counted or --colour"},
		{{"--title"}, "--title: a value is missing; give --title TEXT"},
		{{"--title", "-.x"}, "--title: a value is missing, and '-.x' follows"},
		{{"--listen="}, "--listen: a value is missing"},
		{{"--verify=1"}, "--verify=1: takes no value; give --verify alone"},
		{{"--count=1", "--count=2"}, "--count: given twice; give it once"},
		{{"--colour=pink"}, "--colour pink: unknown value; give one of: red, green, blue"},
		{{"--count=0"}, "--count 0: out of range; give 1 to 1000"},
		{{"--size=2M"}, "--size 2M: out of range; give 0 to 1M"},
		{{"--size=-4K"}, "--size -4K: out of range; give 0 to 1M"},
		{{"--pause", "-1.5s"}, "--pause -1.5s: out of range; give 1ms to 90s"},
		{{"--count", "-x"},
		 "--count: a value is missing, and '-x' follows; give --count N"},
		{{"-p", "-q"}, "-p: a value is missing, and '-q' follows; give -p PORT"},
		{{"-p=7"}, "-p =7: not a whole number"},
		{{"-p", "1", "--port=2"}, "--port: given twice; give it once"},
		{{"-qp"}, "-qp: unknown option"},
		{{"--from", "a"}, "--from a: "},
		{{"--from", "\x1b[31m:1"}, "--from \"\\x1b[31m:1\": a control character"},
		{{"--help"}, "--help: an EAL option"}, /* plx_app_start handles it */
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		assert_fails(parse(rows[i].words), -EINVAL, rows[i].text);
}

TEST(the_check_function_may_refuse_the_options)
{
	values.check_result = 1;
	assert_int_equal(PARSE("--verify"), -EINVAL);
	assert_string_equal(plx_error(), "the check says no");
}

TEST(a_program_may_do_what_its_first_word_says)
{
	static const char *const modes[] = {"send", "push", "receive", NULL};
	static const struct plx_option own[] = {
		PLX_FLAG("verify", &values.verify, "", .modes = 1 << 0 | 1 << 2),
		PLX_FLAG("quiet", &values.quiet, ""),
		PLX_ADDRESS("from", &values.from, "", .required = true, .modes = 1 << 1),
		PLX_OPTIONS_END,
	};
	static const struct {
		const char *words[3], *text; /* text: NULL: taken */
		unsigned mode;
	} rows[] = {
		{{"send", "--verify"}, NULL, 0},
		{{"push", "--from=a:1"}, NULL, 1},
		{{"push", "--quiet"}, "--from ADDR is missing", 0},
		{{"receive", "--verify", "--quiet"}, NULL, 2},
		{{"push", "--verify"}, "--verify: not for push; leave it out", 0},
		{{"receve"},
		 "receve: unknown word; give send, push or receive; did you mean receive?",
		 0},
		{{"zzz"}, "zzz: unknown word; give send, push or receive", 0},
		{{"--quiet"},
		 "what to do is missing; give send, push or receive as the first word",
		 0},
		{{"send", "push"}, "push: not an option", 0},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		unsigned mode = 7;
		const struct plx_app several = {.options = own, .modes = modes, .mode = &mode};
		int count = rows[i].words[2] ? 3 : rows[i].words[1] ? 2 : 1;

		if (rows[i].text) {
			assert_fails(plx_app_parse(count, (char **)rows[i].words, &several),
				     -EINVAL, rows[i].text);
		} else {
			assert_works(plx_app_parse(count, (char **)rows[i].words, &several));
			assert_int_equal(mode, rows[i].mode);
		}
	}
}

/* Faults of the programmer, found at the first start. */
TEST(a_faulty_row_is_refused_before_any_word)
{
	bool flag = false;
	const struct {
		struct plx_option row;
		const char *text;
	} rows[] = {
		{PLX_FLAG("-dash", &flag, ""), "row 2, '-dash': a name has no dash"},
		{{.name = "x", .kind = (enum plx_app_kind)99}, "its kind is none of enum"},
		{{.name = "x", .placeholder = "N", .to = &flag, .help = ""}, "a flag has no pla"},
		{PLX_TEXT("x", NULL, &values.title, ""), "row 2, 'x': it has no placeholder"},
		{PLX_FLAG("x", NULL, ""), "row 2, 'x': it has nowhere to store its value"},
		{PLX_FLAG("x", &flag, NULL), "row 2, 'x': it has no help"},
		{PLX_CHOICE("x", "NAME", &values.colour, NULL, ""), "it has no choices"},
		{PLX_FLAG("x", &flag, "", .required = true), "a flag cannot be required"},
		{PLX_FLAG("x", &flag, "", .modes = 1), "but the program has none"},
		{PLX_FLAG("x", &flag, "", .letter = '-'), "neither a letter nor a digit"},
		{PLX_FLAG("x", &flag, "", .letter = 'l'), "belongs to an option of the EAL"},
		{PLX_FLAG("x", &flag, "", .letter = 'f'), "another row has the same letter"},
		{PLX_FLAG("first", &flag, ""), "row 2, 'first': another row has the same name"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		const struct plx_option table[] = {
			PLX_FLAG("first", &values.verify, "", .letter = 'f'), rows[i].row,
			PLX_OPTIONS_END};
		const struct plx_app faulty = {.name = "faulty", .options = table};

		assert_fails(plx_app_parse(0, NULL, &faulty), -EINVAL, rows[i].text);
	}
}

TEST(faulty_modes_are_refused)
{
	static const char *const modes[34] = {[0 ... 32] = "m"};
	unsigned mode;
	const char *word = "m";

	assert_fails(plx_app_parse(1, (char **)&word, &(struct plx_app){.modes = modes}), -EINVAL,
		     "nowhere to store");
	assert_fails(
		plx_app_parse(1, (char **)&word, &(struct plx_app){.modes = modes, .mode = &mode}),
		-EINVAL, "give at most 32");
}

TEST(a_table_that_is_too_long_is_refused)
{
	static char names[PLX_OPTIONS_MAX + 1][8];
	struct plx_option table[PLX_OPTIONS_MAX + 2] = {0};
	const struct plx_app large = {.name = "large", .options = table};
	const char *word = "--o0";

	for (unsigned i = 0; i <= PLX_OPTIONS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "o%u", i);
		table[i] = (struct plx_option)PLX_FLAG(names[i], &values.verify, "");
	}
	assert_fails(plx_app_parse(1, (char **)&word, &large), -EINVAL,
		     "table of options is too long; give at most 64, then PLX_OPTIONS_END");
	table[PLX_OPTIONS_MAX].name = NULL;
	assert_int_equal(plx_app_parse(1, (char **)&word, &large), 0);
	assert_true(values.verify);
}

TEST(options_of_the_program_are_separated_from_those_of_the_eal)
{
	static const char *const own[] = {
		"--listen",   "--lis=3", "--co", /* ambiguous, but both options are the program's */
		"-listen",                       /* not -l with the value "isten" */
		"-p",         "-p12345", "-q",   "listen",
		"--nonsense", "-",       "" /* unknown: the program refuses them */
	};
	static const char *const eals[] = {"--lcores", "--lcor=0", "-l",    "-l0",
					   "--help",   "-V",       "--turn"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(own); i++)
		assert_true(app_options_own(&app, plx_eal_options, own[i], false));
	for (size_t i = 0; i < PLX_ARRAY_LEN(eals); i++)
		assert_false(app_options_own(&app, plx_eal_options, eals[i], false));
}

TEST(a_name_that_both_have_is_the_programs_except_before_the_dashes)
{
	static const struct plx_option both[] = {
		PLX_FLAG("provider", &values.verify, ""),
		PLX_FLAG("heartbeat-log", &values.quiet, ""),
		PLX_OPTIONS_END,
	};
	const struct plx_app clash = {.name = "clash", .options = both};

	assert_true(app_options_own(&clash, plx_eal_options, "--provider", false));
	assert_false(app_options_own(&clash, plx_eal_options, "--provider", true));
	assert_true(app_options_own(&clash, plx_eal_options, "--provi", false));
	/* A full name is not an abbreviation of the other. */
	assert_false(app_options_own(&clash, plx_eal_options, "--heartbeat", false));
	assert_true(app_options_own(&clash, plx_eal_options, "--heartbeat-log", true));
}

TEST(the_nearest_name_is_suggested)
{
	static const char longer[] =
		"a-word-that-is-much-longer-than-any-option-of-any-program-has-ever-had";
	static const char *const names[] = {"lcores", "coremask", "huge", "log-level", "bacd"};
	static const struct {
		const char *word, *name; /* name: NULL: none is near */
	} rows[] = {
		{"--lcore-list", "lcores"},
		{"--locres=0-3", "lcores"},
		{"mask", "coremask"},
		{"--log_level", "log-level"},
		{"LCORES", "lcores"},
		{"abcd", "bacd"}, /* swapped letters are one edit */
		{"", NULL},
		{"--", NULL},
		{"x", NULL},
		{"frobnicate", NULL},
		{longer, NULL},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		const char *found = plx_suggest(rows[i].word, names, PLX_ARRAY_LEN(names));

		if (!rows[i].name)
			assert_null(found);
		else if (!found || strcmp(found, rows[i].name) != 0)
			fail_msg("%s: %s", rows[i].word, found);
	}
}

TEST(an_option_of_the_program_is_suggested_before_one_of_the_eal)
{
	static const struct plx_option near[] = {
		PLX_FLAG("hugo", &values.verify, ""),
		PLX_OPTIONS_END,
	};
	const struct plx_app apps[] = {{.name = "near", .options = near}, {.name = "far"}};
	const char *word = "--huge-x", *file = "--file";

	assert_fails(plx_app_parse(1, (char **)&word, &apps[0]), -EINVAL, "did you mean --hugo?");
	assert_fails(plx_app_parse(1, (char **)&word, &apps[1]), -EINVAL, "did you mean --huge?");
	/* A common ending, as in --idle, is not similarity. */
	assert_int_equal(plx_app_parse(1, (char **)&file, &apps[1]), -EINVAL);
	assert_string_equal(plx_error(), "--file: unknown option (--help lists all)");
}

PLX_TEST(help_is_made_from_the_table)
{
	static const char *const modes[] = {"send", "recv", NULL};
	static const struct plx_option both[] = {
		PLX_LIST("to", "ADDR", &values.tags, "where", .required = true, .modes = 1),
		PLX_FLAG("a-name-that-is-longer-than-its-column", &values.quiet, "a flag"),
		PLX_OPTIONS_END,
	};
	const struct plx_app two = {.name = "prog", .options = both, .modes = modes};
	FILE *terminal = stdout;
	char *text = NULL;
	size_t size;

	stdout = open_memstream(&text, &size);
	app_options_print_usage(&two, true);
	plx_app_print_options(&two, stdout);
	fclose(stdout);
	stdout = terminal;
	assert_string_equal(
		text, "  prog send [EAL options] -- --to ADDR...\n"
		      "           [--a-name-that-is-longer-than-its-column]\n"
		      "  prog recv [EAL options] -- [--a-name-that-is-longer-than-its-column]\n"
		      "  --to ADDR                   where\n"
		      "  --a-name-that-is-longer-than-its-column \n"
		      "                              a flag\n");
	free(text);
}

PLX_TEST_MAIN()
