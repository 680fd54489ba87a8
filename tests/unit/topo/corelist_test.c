/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_test.h"

#include "plx_topo.h"

#include <stdio.h>

static struct plx_topo *topo; /* CPUs 0-3 on node 0, 4-7 on node 1 */

PLX_FIXTURE(open_topo, plx_topo_open("synthetic:numa:2 core:4 pu:1", &topo))
PLX_FIXTURE(close_topo, 0, plx_topo_close(topo))

/* The meaning of a list, without any short forms: "lcore@cpus;..." */
static char *describe(const struct plx_lcore_map *map, char out[4096])
{
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < map->count; i++) {
		char cpus[256];

		used += (size_t)snprintf(
			out + used, 4096 - used, "%s%u@%s", i ? ";" : "", map->places[i].lcore_id,
			plx_cpuset_format(&map->places[i].cpus, cpus, sizeof(cpus)));
	}
	return out;
}

PLX_TEST(lists_parse_as_the_grammar_says)
{
	static const struct {
		const char *text, *meaning;
	} cases[] = {
		{"0", "0@0"},
		{"0-3,8", "0@0;1@1;2@2;3@3;8@8"},
		{"8,0-1", "0@0;1@1;8@8"},
		{"3-1", "1@1;2@2;3@3"},
		{"255", "255@255"},
		{"007", "7@7"},
		{"(0,6)", "0@0,6;6@0,6"},
		{"(0-1,6)", "0@0-1,6;1@0-1,6;6@0-1,6"},
		{"(3)", "3@3"},
		{"2@5", "2@5"},
		{"0@300", "0@300"},
		{"0@4095", "0@4095"},
		{"0-1@0", "0@0;1@0"},
		{"(0-1)@0", "0@0;1@0"},
		{"2@(5-7)", "2@5-7"},
		{"2@5-7", "2@5-7"},
		{"2@(5,5,7-6)", "2@5-7"},
		{"(1,3)@(7,0)", "1@0,7;3@0,7"},
		{"0@1,1@0", "0@1;1@0"},
		{"all", "0@0;1@1;2@2;3@3;4@4;5@5;6@6;7@7"},
		{"node:1", "4@4;5@5;6@6;7@7"},
		{"node:01, 0", "0@0;4@4;5@5;6@6;7@7"},
		{"(node:0)", "0@0-3;1@0-3;2@0-3;3@0-3"},
		{"9@node:1", "9@4-7"},
		{"0-1@all,2@3", "0@0-7;1@0-7;2@3"},
		{"0 @ ( node:0 , 6 )", "0@0-3,6"},
		{" 0 - 1 , ( 2 , 3 ) @ ( 4 ) ,\t5 ", "0@0;1@1;2@4;3@4;5@5"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct plx_lcore_map map;
		char meaning[4096];
		int rc = plx_lcore_map_parse_list("-l", cases[i].text, topo, &map);

		if (rc)
			fail_msg("'%s': %s", cases[i].text, plx_error());
		assert_string_equal(describe(&map, meaning), cases[i].meaning);
		plx_lcore_map_fini(&map);
	}
}

PLX_TEST(a_full_list_has_every_lcore)
{
	struct plx_lcore_map map;

	assert_int_equal(plx_lcore_map_parse_list("-l", "255-0", topo, &map), 0);
	assert_int_equal(map.count, PLX_LCORE_MAX);
	for (uint32_t i = 0; i < map.count; i++) {
		assert_int_equal(map.places[i].lcore_id, i);
		assert_int_equal(plx_cpuset_next(&map.places[i].cpus, 0), i);
	}
	plx_lcore_map_fini(&map);
}

PLX_TEST(each_bad_list_has_one_clear_error)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"", "-l \"\": column 1: the list is empty; give lcores such as 0-3,8 or 2@5"},
		{" \t", "-l \" ?\": column 1: the list is empty"},
		{",", "-l ,: column 1: found ',' where a number or '(' is expected"},
		{"0,", "-l 0,: column 3: found the end where a number or '(' is expected"},
		{"0-1,,2", "-l 0-1,,2: column 5: found ',' where a number or '(' is expected"},
		{"1-", "-l 1-: column 3: found the end where the number that ends the range"},
		{"1-,2", "-l 1-,2: column 3: found ',' where the number that ends the range"},
		{"-1", "-l -1: column 1: found '-' where a number"},
		{"0--1", "-l 0--1: column 3: found '-' where the number"},
		{"0-3-4", "column 4: found '-' where ',', '@' or the end is expected"},
		{"0-3x", "column 4: found 'x' where ',', '@' or the end is expected"},
		{"0x3", "column 2: found 'x' where ',', '-', '@' or the end is expected"},
		{"0 1", "-l \"0 1\": column 3: found '1' where ',', '-', '@' or the end"},
		{"x", "column 1: found 'x' where a number or '(' is expected"},
		{"1.5", "column 2: found '.'"},
		{"+1", "column 1: found '+'"},
		{"\xc3\xa9", "column 1: found byte 0xc3 where"},
		{"0\x01", "-l 0?: column 2: found byte 0x01 where"},
		{"(0-1", "column 5: found the end where ',' or ')' is expected; "
			 "the '(' of column 1 is not closed"},
		{"2,(0-1@0", "column 7: found '@' where ',' or ')' is expected; "
			     "the '(' of column 3 is not closed"},
		{"(0", "column 3: found the end where ',', '-' or ')' is expected"},
		{"0)", "column 2: found ')' where ',', '-', '@' or the end is expected; "
		       "there is no '(' for it"},
		{"()", "column 2: found ')' where a number is expected"},
		{"(0,)", "column 4: found ')' where a number is expected"},
		{"((0,1))@2", "column 2: found '(' where a number is expected; groups do not nest"},
		{"0@(1,(2))", "column 6: found '(' where a number is expected; groups do not nest"},
		{"[4-7]@0", "-l [4-7]@0: column 1: found '[' where a number or '(' is expected; "
			    "groups are written in ( ), as in (4-7)@0"},
		{"0@[4-7]", "column 3: found '['"},
		{"@0", "column 1: found '@' where a number"},
		{"0@", "column 3: found the end where a number or '(' is expected"},
		{"0@1@2", "column 4: found '@' where ',', '-' or the end is expected; "
			  "an item has one '@', as in 2@5"},
		{"0@(1)@2", "column 6: found '@' where ',' or the end is expected"},
		{"0,1,0", "column 5: lcore 0 is given twice; give each lcore id once"},
		{"0-3,2-5", "column 5: lcore 2 is given twice"},
		{"(0,1,0)", "column 6: lcore 0 is given twice"},
		{"(0-2,1)@5", "column 6: lcore 1 is given twice"},
		{"0@1,0@2", "column 5: lcore 0 is given twice"},
		{"300", "-l 300: column 1: 300 is no lcore id (lcore ids are 0 to 255); "
			"to run an lcore on CPU 300 write ID@300, with a free lcore id"},
		{"0-1,300", "column 5: 300 is no lcore id (lcore ids are 0 to 255)"},
		{"250-260", "column 5: 260 is no lcore id"},
		{"0-256", "column 3: 256 is no lcore id (lcore ids are 0 to 255)"},
		{"(1,300)", "column 4: 300 is no lcore id"},
		{"256@0", "column 1: lcore 256 is out of range; lcore ids are 0 to 255"},
		{"(1,300)@0", "column 4: lcore 300 is out of range; lcore ids are 0 to 255"},
		{"0@4096", "column 3: CPU 4096 is out of range; CPU ids are 0 to 4095"},
		{"0@(1,7-5000)", "column 8: CPU 5000 is out of range; CPU ids are 0 to 4095"},
		{"4096", "column 1: 4096 is out of range; lcore ids are 0 to 255, CPU ids are 0 "
			 "to 4095"},
		{"abc",
		 "column 1: found 'a' where a number or '(' is expected; names are all, node:N "
		 "and near:DEVICE"},
		{"alle", "column 4: found 'e' where ',', '@' or the end is expected"},
		{"all-3", "column 4: found '-' where"},
		{"node:",
		 "column 6: found the end where the number of a NUMA node is expected; as in "
		 "node:0"},
		{"0,node:-1", "column 8: found '-' where the number of a NUMA node"},
		{"node:2", "column 1: there is no CPU on NUMA node 2 that this process may use "
			   "(CPUs there: none; allowed: 0-7)"},
		{"node:18446744073709551616", "column 1: there is no CPU on NUMA node 2147483647"},
		{"node:0x", "column 7: found 'x'"},
		{"node:0-1", "column 7: found '-' where ',', '@' or the end is expected"},
		{"3,node:0", "column 3: lcore 3 is given twice"},
		{"all,all", "column 5: lcore 0 is given twice"},
		{"0-3@1,node:1@2", "column 7: found the name of CPUs where lcore ids stand; names "
				   "stand after '@', as in 0@node:0, or alone"},
		{"0@node:1@2", "an item has one '@'"},
		{"near:", "column 6: found the end where a device is expected; as in near:eth0"},
		{"near:/etc", "column 6: there is no such device"},
		{"near:,1", "column 6: found ',' where a device"},
		{"0@near:..",
		 "column 8: there is no such device; give a network interface, an RDMA "
		 "device, or a PCI address"},
		{"near:none0,1", "column 6: there is no such device"},
		{"near:0123456789012345678901234567890123456789012345678901234567890123456789",
		 "column 6: there is no such device"},
		{"4294967296", "column 1: 4294967296 is out of range"},
		{"0-18446744073709551617", "column 3: 18446744073709551617 is out of range"},
		{"0@99999999999999999999999", "column 3: CPU 99999999999999999999... is out of "
					      "range"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct plx_lcore_map map;

		if (plx_lcore_map_parse_list("-l", cases[i].text, topo, &map) != -EINVAL)
			fail_msg("'%s' was taken", cases[i].text);
		assert_error_has(cases[i].error);
		assert_true(strncmp(plx_error(), "-l ", 3) == 0);
	}
}

PLX_TEST(an_error_names_the_option_as_the_user_did)
{
	struct plx_lcore_map map;

	assert_fails(plx_lcore_map_parse_list("lcores in a.conf:7", "0,0", topo, &map), -EINVAL,
		     "lcores in a.conf:7 0,0: column 3: lcore 0 is given twice");
}

PLX_TEST(a_failed_parse_leaves_the_map_alone)
{
	struct plx_lcore_map map = {.count = 77};

	assert_int_equal(plx_lcore_map_parse_list("-l", "0,1,x", topo, &map), -EINVAL);
	assert_int_equal(map.count, 77);
	assert_null(map.places);
}

/* A megabyte of digits, blanks or brackets gives an ordinary, short error near its position. */
PLX_TEST(huge_texts_get_short_errors)
{
	static const struct {
		char fill;
		const char *end, *error;
	} cases[] = {
		{'9', "", ": column 1: 99999999999999999999... is out of range"},
		{'0', "x", "x: column 1000001: found 'x'"},
		{' ', "x", "x\": column 1000001: found 'x'"},
		{'(', "", ": column 2: found '('"},
		{',', "", ": column 1: found ','"},
		{'-', "", ": column 1: found '-'"},
		{'@', "", ": column 1: found '@'"},
	};
	const size_t size = 1000000;
	char *text = malloc(size + 2);

	assert_non_null(text);
	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct plx_lcore_map map;

		memset(text, cases[i].fill, size);
		strcpy(text + size, cases[i].end);
		assert_fails(plx_lcore_map_parse_list("-l", text, topo, &map), -EINVAL,
			     cases[i].error);
		assert_true(strlen(plx_error()) < 250);
	}
	free(text);
}

PLX_TEST(leading_zeros_do_not_overflow)
{
	struct plx_lcore_map map;
	char text[5002], meaning[4096];

	memset(text, '0', 5000);
	strcpy(text + 5000, "7");
	assert_int_equal(plx_lcore_map_parse_list("-l", text, topo, &map), 0);
	assert_string_equal(describe(&map, meaning), "7@7");
	plx_lcore_map_fini(&map);
}

PLX_TEST_MAIN_WITH(open_topo, close_topo)
