/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal_priv.h"
#include "folder.h"

#include <fcntl.h>
#include <unistd.h>

static char dir[FOLDER_BYTES], path[FOLDER_BYTES + 2];
static struct plx_eal_conf conf;

static int setup(void **state)
{
	folder_make(dir);
	snprintf(path, sizeof(path), "%s/f", dir);
	return 0;
}

PLX_FIXTURE(teardown, folder_remove(dir), plx_eal_conf_fini(&conf))

static void write_file(const void *text, size_t len)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	conf.config = path;
}

/* Write the text and read it into conf, which has the command line's settings. */
static int read_text(const char *text)
{
	write_file(text, strlen(text));
	return plx_eal_conf_file(&conf);
}

static void parse(int argc, const char **argv)
{
	assert_int_equal(plx_eal_parse(argc, (char **)argv, &conf), argc - 1);
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

TEST(settings_are_the_options_with_underscores)
{
	assert_works(read_text("lcores = \"0@1,1@0\";\nmain_lcore = \"1\"; # a comment\n"
			       "numa : \"any\";\nlinks_per_host = \"none\"; heartbeat = \"off\"\n"
			       "log_level = [\"info\", \"eal:debug\"];\n"));
	assert_string_equal(conf.lcores, "0@1,1@0");
	assert_int_equal(conf.main_lcore, 1);
	assert_int_equal(conf.numa, PLX_NUMA_ANY);
	assert_int_equal(conf.admission.links_per_host_max, PLX_NO_LIMIT);
	assert_true(conf.heartbeat_ns == PLX_NEVER);
	assert_int_equal(conf.log_level_count, 2);
	assert_string_equal(conf.log_levels[0], "info");
	assert_string_equal(conf.log_levels[1], "eal:debug");
	plx_eal_conf_fini(&conf);
	/* A byte order mark is skipped. */
	assert_works(read_text("\xef\xbb\xbf"
			       "coremask = \"0xf\"\nlog_level = \"debug\"\n"));
	assert_string_equal(conf.coremask, "0xf");
	assert_int_equal(conf.log_level_count, 1);
	assert_string_equal(conf.log_levels[0], "debug");
}

TEST(the_command_line_overrides_the_file_which_overrides_the_program)
{
	const char *argv[] = {"program", "-l",          "1",        "--numa",
			      "strict",  "--log-level", "eal:info", NULL};

	parse(7, argv);
	conf.huge = PLX_HUGE_1G; /* the program's, which the file overrides */
	assert_works(read_text("coremask = \"f\"; numa = \"any\"; huge = \"none\";\n"
			       "log_level = (\"debug\", \"error\");"));
	assert_string_equal(conf.lcores, "1");
	assert_null(conf.coremask);
	assert_int_equal(conf.numa, PLX_NUMA_STRICT);
	assert_int_equal(conf.huge, PLX_HUGE_NONE);
	/* Levels apply in order: the command line's come last. */
	assert_int_equal(conf.log_level_count, 3);
	assert_string_equal(conf.log_levels[0], "debug");
	assert_string_equal(conf.log_levels[1], "error");
	assert_string_equal(conf.log_levels[2], "eal:info");
	assert_string_equal(conf.level_origins[2], "--log-level");
}

TEST(bad_content_is_reported_with_its_line)
{
	static const struct {
		const char *text, *error; /* error: after the path */
	} rows[] = {
		{"huge = \"2M\";\nlcore = \"0\";\n", ":2: lcore: unknown setting; did you mean "
						     "lcores?"},
		{"frobnicate = 1;",
		 ":1: frobnicate: unknown setting; there are: lcores, coremask, main_lcore, "
		 "lane_slots, "
		 "idle, socket_mem, huge, numa, dump_memory, provider, tcp, require, receive_mem, "
		 "partial_mem, turn_max, turn_time, links_max, links_per_host, accepts_per_s, "
		 "handshakes_max, "
		 "heartbeat, dead_after_max, "
		 "self_test, log_level, descriptors"},
		{"\nlcores = 3;", ":2: lcores is a number; it must be a string, in double quotes"},
		{"huge = { a = 1; };", ":1: huge is a group; it must be a string"},
		{"numa = [\"any\"];", ":1: numa is a list; it must be a string"},
		{"log_level = 3;", ":1: log_level is a number; it must be a string or a list of "
				   "strings"},
		{"log_level = (\"info\",\n 3);", ":2: an entry of log_level is a number; it must "
						 "be a string"},
		{"log_level = [];\nhuge = \"\";", ":2: huge is empty; give it a value or take it "
						  "out"},
		{"lcores = \"0\"\nhuge = ;", ":2: syntax error; a setting is written lcores = "
					     "\"0-3\";"},
		{"lcores = \"0\";\n\nlcores = \"1\";", ":3: duplicate setting name"},
		{"\nlcores = \"\\x1b[31m\";",
		 ":2 \"\\x1b[31m\": a control character, or not UTF-8"},
		{"lcores = \"0\";\ncoremask = \"1\";", ":2 1: give one of them, a list or a mask"},
		{"huge = \"2M\";\n  @include \"other\"\n", ":2: @include is not supported; put all "
							   "settings into one file"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		char wanted[256];

		assert_int_equal(read_text(rows[i].text), -EINVAL);
		snprintf(wanted, sizeof(wanted), "%s%s", path, rows[i].error);
		assert_error_has(wanted);
		plx_eal_conf_fini(&conf);
	}
}

TEST(levels_of_the_file_and_the_command_line_are_counted_together)
{
	const char *argv[] = {"program", "--log-level", "info", NULL};
	char text[512] = "log_level = [\"info\"";

	for (int i = 1; i < PLX_EAL_LEVELS_MAX; i++)
		strcat(text, ", \"info\"");
	strcat(text, "];");
	assert_works(read_text(text));
	plx_eal_conf_fini(&conf);
	parse(3, argv);
	assert_fails(read_text(text), -EINVAL,
		     "--log-level info: too many log levels; at most 16 are allowed");
}

/* In the example, a commented-out setting has "#" right before its name. */
TEST(every_line_of_the_example_file_is_valid)
{
	char example[512], line[256], text[8192] = "";
	const char *root = getenv("PLX_SOURCE_ROOT");

	snprintf(example, sizeof(example), "%s/config/pollux.conf", root ? root : ".");
	conf.config = example;
	assert_int_equal(plx_eal_conf_file(&conf), 0);
	plx_eal_conf_fini(&conf);

	FILE *file = fopen(example, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		strcat(text, line[0] == '#' && line[1] >= 'a' && line[1] <= 'z' ? line + 1 : line);
	fclose(file);
	assert_works(read_text(text));
	for (unsigned id = 0; id < OPT_COUNT; id++) {
		if (plx_eal_options[id].kind != PLX_APP_FLAG && id != OPT_CONFIG &&
		    id != OPT_LOG_LEVEL && id != OPT_COREMASK)
			assert_non_null(conf.origin[id]);
	}
	assert_true(conf.log_level_count > 0);
}

TEST(a_path_that_is_no_file_is_reported)
{
	const char *argv[] = {"program", "--config", path, NULL};

	parse(3, argv);
	assert_fails(plx_eal_conf_file(&conf), -ENOENT, "--config /tmp/plx-test-");
	assert_error_has("no such file; give the path of one");

	conf.config = "/dev/null/file";
	assert_fails(plx_eal_conf_file(&conf), -ENOTDIR, "Not a directory");

	conf.config = dir;
	assert_fails(plx_eal_conf_file(&conf), -EINVAL, "a directory; give the path of a file");

	conf.config = "/dev/zero";
	assert_fails(plx_eal_conf_file(&conf), -EINVAL,
		     "--config /dev/zero: not a regular file; give the path of one");

	assert_int_equal(mkfifo(path, 0600), 0);
	conf.config = path;
	assert_fails(plx_eal_conf_file(&conf), -EINVAL, "not a regular file");
}

TEST(binary_and_huge_files_are_refused)
{
	static char big[70000];

	write_file("lcores=\"0\";\0huge=\"1G\";", 23);
	assert_fails(plx_eal_conf_file(&conf), -EINVAL,
		     "not a text file: it has a byte of value 0");
	memset(big, '\n', sizeof(big));
	write_file(big, sizeof(big));
	assert_fails(plx_eal_conf_file(&conf), -EINVAL, "longer than 64 KiB");
	write_file(big, 65536);
	assert_int_equal(plx_eal_conf_file(&conf), 0);
}

TEST(an_unterminated_item_is_reported_with_its_line)
{
	assert_int_equal(read_text("huge = \"1G\"; # a /* here is none\n/* one */\n\n/* two\n"
				   "lcores = \"0-3\";\n"),
			 -EINVAL);
	assert_error_has(":4: a comment begins here and has no end");
	assert_int_equal(read_text("\nhuge = \"1G;\nlcores = 7;\n"), -EINVAL);
	assert_error_has(":2: a string begins here and has no end");
	assert_int_equal(read_text("/*\n@include \"x\"\n*/ huge = \"1G\"; // /* x\n"
				   "idle = \"/* \\\" */\";"),
			 0);
	assert_int_equal(conf.huge, PLX_HUGE_1G);
	assert_string_equal(conf.idle, "/* \" */");
}

PLX_TEST_MAIN()
