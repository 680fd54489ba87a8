/* SPDX-License-Identifier: BSD-3-Clause */
#include "dice.h"
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
		{"1-3", "1-3"},
		{"0@0,1@1", "0-1"},
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

/* Each lcore with probability 1/`rarity`: on the CPU of its number, next to its neighbour's, or on
 * up to four arbitrary CPUs. */
static struct plx_lcore_map random_map(uint64_t *seed, unsigned rarity)
{
	struct plx_lcore_map map = {.places = calloc(PLX_LCORE_MAX, sizeof(*map.places))};

	assert_non_null(map.places);
	for (unsigned id = 0; id < PLX_LCORE_MAX; id++) {
		struct plx_lcore_place *place = &map.places[map.count];
		unsigned kind = (unsigned)(dice_next(seed) % 4);

		if (dice_next(seed) % rarity && (map.count || id < PLX_LCORE_MAX - 1))
			continue;
		place->lcore_id = id;
		if (kind == 1 && map.count)
			place->cpus = place[-1].cpus;
		else if (kind <= 1)
			plx_cpuset_add(&place->cpus, id);
		for (unsigned n = 0; kind > 1 && n < 1 + dice_next(seed) % 4; n++)
			plx_cpuset_add(&place->cpus, dice_next(seed) % PLX_CPU_MAX);
		map.count++;
	}
	return map;
}

static void assert_same_map(const struct plx_lcore_map *a, const struct plx_lcore_map *b)
{
	assert_int_equal(a->count, b->count);
	for (uint32_t i = 0; i < a->count; i++) {
		assert_int_equal(a->places[i].lcore_id, b->places[i].lcore_id);
		assert_true(plx_cpuset_equal(&a->places[i].cpus, &b->places[i].cpus));
	}
}

PLX_TEST(a_formatted_map_parses_back_to_itself)
{
	static const unsigned rarities[] = {1, 2, 8, 64, 1000};
	static char out[1 << 16];
	uint64_t seed = 0x9e3779b97f4a7c15;

	for (size_t i = 0; i < 500; i++) {
		struct plx_lcore_map again, map;

		map = random_map(&seed, rarities[i % PLX_ARRAY_LEN(rarities)]);
		plx_lcore_map_format(&map, out, sizeof(out));
		assert_works(plx_lcore_map_parse_list("-l", out, eight, &again));
		assert_same_map(&map, &again);
		plx_lcore_map_fini(&again);
		plx_lcore_map_fini(&map);
	}
}

PLX_TEST(a_map_that_does_not_fit_never_parses)
{
	struct plx_lcore_map map, again;
	char whole[64], out[64];

	assert_works(plx_lcore_map_parse_list("-l", "0-3,5@(7,9),(10-11)@3,20", eight, &map));
	size_t len = strlen(plx_lcore_map_format(&map, whole, sizeof(whole)));

	for (size_t size = 1; size <= len; size++) {
		plx_lcore_map_format(&map, out, size);
		assert_true(strlen(out) < size);
		assert_int_equal(plx_lcore_map_parse_list("-l", out, eight, &again), -EINVAL);
	}
	assert_string_equal(plx_lcore_map_format(&map, out, 12), "0-3,...");
	assert_string_equal(plx_lcore_map_format(&map, out, len + 1), whole);
	plx_lcore_map_fini(&map);
}

PLX_TEST(an_empty_map_is_an_empty_text)
{
	const struct plx_lcore_map none = {0};
	char out[16];

	memset(out, ',', sizeof(out));
	assert_string_equal(plx_lcore_map_format(&none, out, sizeof(out)), "");
}

PLX_TEST(single_is_lcore_0_on_any_cpu)
{
	struct plx_lcore_map map;
	char out[64];

	assert_int_equal(plx_lcore_map_single(300, &map), 0);
	assert_string_equal(plx_lcore_map_format(&map, out, sizeof(out)), "0@300");
	plx_lcore_map_fini(&map);
	assert_fails(plx_lcore_map_single(PLX_CPU_MAX, &map), -EINVAL,
		     "CPU 4096 is out of range; CPU ids are 0 to 4095");
}

PLX_TEST(fini_accepts_a_zeroed_map_and_leaves_one)
{
	struct plx_lcore_map map = {0};

	plx_lcore_map_fini(&map);
	assert_int_equal(plx_lcore_map_single(0, &map), 0);
	plx_lcore_map_fini(&map);
	assert_int_equal(map.count, 0);
	assert_null(map.places);
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

PLX_TEST(maps_on_allowed_cpus_pass)
{
	static const char *const texts[] = {"0-7", "(0,6)", "200@7", "(0-255)@0", "3@(5-7)"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(texts); i++)
		assert_int_equal(check(EIGHT, "-l", texts[i]), 0);
	assert_int_equal(check(EIGHT, "-c", "ff"), 0);
}

PLX_TEST(a_missing_cpu_is_reported_with_a_map_that_works)
{
	static const struct {
		const char *option, *text, *error;
	} cases[] = {
		{"--lcores", "0-9",
		 "--lcores 0-9: CPU 8 does not exist or is offline (allowed: 0-7); give -l 0-7"},
		{"-l", "6,9,7",
		 "-l 6,9,7: CPU 9 does not exist or is offline (allowed: 0-7); "
		 "give -l 6-7"},
		{"-l", "20-30", "; give -l 0"},
		{"-l", "2@9",
		 "-l 2@9: CPU 9 does not exist or is offline (allowed: 0-7); "
		 "give -l 2@0"},
		{"-l", "9@9", "; give -l 9@0"},
		{"-l", "0@0,1@9", "; give -l 0-1"},
		{"-l", "5@(3,9)", "CPU 9 does not exist or is offline (allowed: 0-7); give -l 5@3"},
		{"-l", "(0-3)@9", "; give -l 0-3"},
		{"-l", "(0-1)@(9,10),7@0", "; give -l 0@1,1@2,7@0"},
		{"-l", "0@8,1@9,2@10,3@8", "; give -l 0-3"},
		{"-l", "(0-6)@(0-6),7@8,8@9", "; give -l '(0-6)@(0-6),7'"},
		{"lcores in a.conf:7", "(0-3)@9", "lcores in a.conf:7 (0-3)@9: CPU 9 does"},
		{"lcores in a.conf:7", "(0-3)@9", "; give -l 0-3"},
		{"-c", "ff0",
		 "-c ff0: CPU 8 does not exist or is offline (allowed: 0-7); "
		 "give -l 4-7"},
		{"-c", "0x100", "; give -l 0"},
		{"-c", "10", NULL},
		{"-l", "10", "; give -l 0"},
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
	strcat(text, ")");
	assert_int_equal(check("synthetic:core:256 pu:1", "-l", text), 0);
	strcpy(text + strlen(text) - 1, ",999)");
	assert_int_equal(check("synthetic:core:256 pu:1", "-l", text), -EINVAL);
	assert_error_has("CPU 999 does not exist or is offline (allowed: 0-255); give -l 0");
	assert_error_has("-l 0@(9,0,2,4,6,");
	assert_error_has("...: CPU 999");
}

PLX_TEST_MAIN_WITH(open_topo, close_topo)
