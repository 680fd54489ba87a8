/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_test.h"

#include "plx_topo.h"

#include <stdio.h>

#define EIGHT "synthetic:numa:2 core:4 pu:1"

static struct plx_topo *eight;

PLX_FIXTURE(open_topo, plx_topo_open(EIGHT, &eight))
PLX_FIXTURE(close_topo, 0, plx_topo_close(eight))

PLX_TEST(maps_are_formatted_in_short_form)
{
	static const struct {
		const char *text, *written;
	} cases[] = {
		{"0,1,2,3,8", "0-3,8"},
		{"2@5", "2@5"},
		{"0@2,1@2,2@2,3@3", "(0-2)@2,3"},
		{"0@0,1@0", "(0-1)@0"},
		{"2@5-7", "2@(5-7)"},
		{"(0,6)", "(0,6)@(0,6)"},
		{"0-1,2@9,3-4,7", "0-1,2@9,3-4,7"},
		{"0@1,1@0", "0@1,1@0"},
		{"(1,3)@(7,0),2", "1@(0,7),2,3@(0,7)"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct plx_lcore_map map;
		char out[128];

		assert_int_equal(plx_lcore_map_parse_list("-l", cases[i].text, eight, &map), 0);
		assert_string_equal(plx_lcore_map_format(&map, out, sizeof(out)), cases[i].written);
		plx_lcore_map_fini(&map);
	}
}

PLX_TEST(single_is_lcore_0_on_any_cpu)
{
	struct plx_lcore_map map;
	char out[64];

	assert_int_equal(plx_lcore_map_single(300, &map), 0);
	assert_string_equal(plx_lcore_map_format(&map, out, sizeof(out)), "0@300");
	plx_lcore_map_fini(&map);
	assert_null(map.places);
	assert_fails(plx_lcore_map_single(PLX_CPU_MAX, &map), -EINVAL,
		     "CPU 4096 is out of range; CPU ids are 0 to 4095");
}

/* Parse as a list, or as a mask if the option is -c, and check it on that topology. */
static int check(const char *source, const char *option, const char *text)
{
	struct plx_topo *topo;
	struct plx_lcore_map map;

	assert_int_equal(plx_topo_open(source, &topo), 0);
	if (strcmp(option, "-c") == 0)
		assert_int_equal(plx_lcore_map_parse_mask(option, text, &map), 0);
	else
		assert_int_equal(plx_lcore_map_parse_list(option, text, topo, &map), 0);
	int rc = plx_lcore_map_check(option, text, topo, &map);

	plx_lcore_map_fini(&map);
	plx_topo_close(topo);
	return rc;
}

PLX_TEST(a_missing_cpu_is_reported_with_a_map_that_works)
{
	static const struct {
		const char *option, *text, *error;
	} cases[] = {
		{"--lcores", "0-9",
		 "--lcores 0-9: CPU 8 does not exist or is offline (allowed: 0-7); give -l 0-7"},
		{"-l", "6,9,7", "; give -l 6-7"},
		{"-l", "20-30", "; give -l 0"},
		{"-l", "2@9", "; give -l 2@0"},
		{"-l", "5@(3,9)", "; give -l 5@3"},
		{"-l", "(0-1)@(9,10),7@0", "; give -l 0@1,1@2,7@0"},
		{"-l", "0@8,1@9,2@10,3@8", "; give -l 0-3"},
		{"-l", "(0-6)@(0-6),7@8,8@9", "; give -l '(0-6)@(0-6),7'"},
		{"lcores in a.conf:7", "(0-3)@9", "lcores in a.conf:7 (0-3)@9: CPU 9 does"},
		{"-c", "ff0", "; give -l 4-7"},
		{"-c", "10", NULL},
		{"-l", "3@(5-7)", NULL},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		int rc = check(EIGHT, cases[i].option, cases[i].text);

		assert_int_equal(rc, cases[i].error ? -EINVAL : 0);
		if (!rc)
			continue;
		assert_error_has(cases[i].error);
		/* The advice ends the text: nothing may follow it. */
		if (strncmp(cases[i].error, "; give", 6) == 0)
			assert_string_equal(strstr(plx_error(), "; give"), cases[i].error);
	}
}

PLX_TEST(advice_gives_lcore_0_a_cpu_beyond_the_lcore_ids)
{
	/* PU indexes may be given: one package whose CPUs are 300 and 301. */
	static const char source[] = "synthetic:pack:1 core:2 pu:1(indexes=300,301)";

	assert_int_equal(check(source, "-l", "0-1"), -EINVAL);
	assert_error_has("CPU 0 does not exist or is offline (allowed: 300-301); give -l 0@300");
	assert_fails(check(source, "-c", "3"), -EINVAL, "; give -l 0@300");
}

PLX_TEST(advice_that_would_be_too_long_names_one_lcore)
{
	char text[1024] = "0@(9,0";

	for (unsigned cpu = 2; cpu < 200; cpu += 2)
		sprintf(text + strlen(text), ",%u", cpu);
	strcat(text, ",999)");
	assert_int_equal(check("synthetic:core:256 pu:1", "-l", text), -EINVAL);
	assert_error_has("...: CPU 999 does not exist or is offline (allowed: 0-255); give -l 0");
}

PLX_TEST_MAIN_WITH(open_topo, close_topo)
