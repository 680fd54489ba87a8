/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists and masks of cores: what they mean, and what is wrong with bad ones. */
#include "plx_test.h"

#include "plx_topo.h"

#include <stdio.h>

static struct plx_topo *topo; /* CPUs 0-3 on node 0, 4-7 on node 1 */

PLX_FIXTURE(open_topo, plx_topo_open("synthetic:numa:2 core:4 pu:1", &topo))
PLX_FIXTURE(close_topo, 0, plx_topo_close(topo))

static int parse_list(const char *text, struct plx_lcore_map *map)
{
	return plx_lcore_map_parse_list("-l", text, topo, map);
}

static int parse_mask(const char *text, struct plx_lcore_map *map)
{
	return plx_lcore_map_parse_mask("-c", text, map);
}

typedef int (*parse_fn)(const char *text, struct plx_lcore_map *map);

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

static void expect_meaning(parse_fn parse, const char *text, const char *expected)
{
	struct plx_lcore_map map;
	char meaning[4096];

	if (parse(text, &map))
		fail_msg("'%s': %s", text, plx_error());
	assert_string_equal(describe(&map, meaning), expected);
	plx_lcore_map_fini(&map);
}

/* Also for a megabyte of text the error is short, and names the option. */
static void expect_error(parse_fn parse, const char *text, const char *error)
{
	struct plx_lcore_map map = {.count = 77};

	if (parse(text, &map) != -EINVAL)
		fail_msg("'%s' was taken", text);
	assert_error_has(error);
	assert_memory_equal(plx_error(), parse == parse_list ? "-l " : "-c ", 3);
	assert_true(strlen(plx_error()) < 250);
	assert_int_equal(map.count, 77);
	assert_null(map.places);
}

struct text_case {
	const char *text, *result;
};

/* A text of that many characters, and an end. Free it. */
static char *text_of(char fill, size_t count, const char *end)
{
	char *text = malloc(count + strlen(end) + 1);

	assert_non_null(text);
	memset(text, fill, count);
	strcpy(text + count, end);
	return text;
}

PLX_TEST(lists_parse_as_the_grammar_says)
{
	static const struct text_case cases[] = {
		{"0", "0@0"},
		{"0-3,8", "0@0;1@1;2@2;3@3;8@8"},
		{"8,0-1", "0@0;1@1;8@8"},
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
		{"2@(5,5,6-7)", "2@5-7"},
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

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++)
		expect_meaning(parse_list, cases[i].text, cases[i].result);
}

PLX_TEST(a_full_list_has_every_lcore)
{
	struct plx_lcore_map map;

	assert_int_equal(plx_lcore_map_parse_list("-l", "0-255", topo, &map), 0);
	assert_int_equal(map.count, PLX_LCORE_MAX);
	for (uint32_t i = 0; i < map.count; i++) {
		assert_int_equal(map.places[i].lcore_id, i);
		assert_int_equal(plx_cpuset_next(&map.places[i].cpus, 0), i);
	}
	plx_lcore_map_fini(&map);
}

PLX_TEST(each_bad_list_has_one_clear_error)
{
	static const struct text_case cases[] = {
		{"", "-l \"\": column 1: the list is empty; give lcores such as 0-3,8 or 2@5"},
		{" \t", "-l \" ?\": column 1: the list is empty"},
		{",", "-l ,: column 1: found ',' where a number or '(' is expected"},
		{"0,", "-l 0,: column 3: found the end where a number or '(' is expected"},
		{"1-", "-l 1-: column 3: found the end where the number that ends the range"},
		{"-1", "-l -1: column 1: found '-' where a number"},
		{"0--1", "-l 0--1: column 3: found '-' where the number"},
		{"0-3-4", "column 4: found '-' where ',', '@' or the end is expected"},
		{"0-3x", "column 4: found 'x' where ',', '@' or the end is expected"},
		{"0x3", "column 2: found 'x' where ',', '-', '@' or the end is expected"},
		{"0 1", "-l \"0 1\": column 3: found '1' where ',', '-', '@' or the end"},
		{"x", "column 1: found 'x' where a number or '(' is expected"},
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
		{"@0", "column 1: found '@' where a number"},
		{"0@", "column 3: found the end where a number or '(' is expected"},
		{"0@1@2", "column 4: found '@' where ',', '-' or the end is expected; "
			  "an item has one '@', as in 2@5"},
		{"0@(1)@2", "column 6: found '@' where ',' or the end is expected"},
		{"1-0", "-l 1-0: column 1: the range ends below its start; write the lower number "
			"first, as in 0-1"},
		{"2@(5,7-6)", "column 6: the range ends below its start; "},
		{"0,1,0", "column 5: lcore 0 is given twice; give each lcore id once"},
		{"0-3,2-5", "column 5: lcore 2 is given twice"},
		{"(0,1,0)", "column 6: lcore 0 is given twice"},
		{"(0-2,1)@5", "column 6: lcore 1 is given twice"},
		{"300", "-l 300: column 1: 300 is no lcore id (lcore ids are 0 to 255); "
			"to run an lcore on CPU 300 write ID@300, with a free lcore id"},
		{"0-1,300", "column 5: 300 is no lcore id (lcore ids are 0 to 255)"},
		{"0-256", "column 3: 256 is no lcore id (lcore ids are 0 to 255)"},
		{"256@0", "column 1: lcore 256 is out of range; lcore ids are 0 to 255"},
		{"(1,300)@0", "column 4: lcore 300 is out of range; lcore ids are 0 to 255"},
		{"0@4096", "column 3: CPU 4096 is out of range; CPU ids are 0 to 4095"},
		{"0@(1,7-5000)", "column 8: CPU 5000 is out of range; CPU ids are 0 to 4095"},
		{"4096", "column 1: 4096 is out of range; lcore ids are 0 to 255, CPU ids are 0 "
			 "to 4095"},
		{"abc",
		 "column 1: found 'a' where a number or '(' is expected; names are all, node:N "
		 "and near:DEVICE"},
		{"node:",
		 "column 6: found the end where the number of a NUMA node is expected; as in "
		 "node:0"},
		{"0,node:-1", "column 8: found '-' where the number of a NUMA node"},
		{"node:2", "column 1: there is no CPU on NUMA node 2 that this process may use "
			   "(CPUs there: none; allowed: 0-7)"},
		{"node:18446744073709551616", "column 1: there is no CPU on NUMA node 2147483647"},
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
		{"0-18446744073709551617", "column 3: 18446744073709551617 is out of range"},
		{"0@99999999999999999999999", "column 3: CPU 99999999999999999999... is out of "
					      "range"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++)
		expect_error(parse_list, cases[i].text, cases[i].result);
}

PLX_TEST(an_error_names_the_option_as_the_user_did)
{
	struct plx_lcore_map map;

	assert_fails(plx_lcore_map_parse_list("lcores in a.conf:7", "0,0", topo, &map), -EINVAL,
		     "lcores in a.conf:7 0,0: column 3: lcore 0 is given twice");
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

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		char *text = text_of(cases[i].fill, 1000000, cases[i].end);

		expect_error(parse_list, text, cases[i].error);
		free(text);
	}
}

PLX_TEST(leading_zeros_do_not_overflow)
{
	char *list = text_of('0', 5000, "7"), *mask = text_of('0', 9000, "101");

	expect_meaning(parse_list, list, "7@7");
	expect_meaning(parse_mask, mask, "0@0;8@8");
	free(list);
	free(mask);
}

/* Masks ------------------------------------------------------------------------------------ */

PLX_TEST(a_mask_selects_the_lcores_of_its_bits)
{
	static const struct text_case cases[] = {
		{"1", "0@0"},
		{"0x1", "0@0"},
		{"0X8", "3@3"},
		{"f", "0@0;1@1;2@2;3@3"},
		{"0xFf", "0@0;1@1;2@2;3@3;4@4;5@5;6@6;7@7"},
		{"10", "4@4"},
		{" 0x5 ", "0@0;2@2"},
		{"ff_ff",
		 "0@0;1@1;2@2;3@3;4@4;5@5;6@6;7@7;8@8;9@9;10@10;11@11;12@12;13@13;14@14;15@15"},
		{"f,00000000", "32@32;33@33;34@34;35@35"},
		{"0x1,00000000,00000001", "0@0;64@64"},
		{"1,0000_0000", "32@32"},
		{"8000000000000000000000000000000000000000000000000000000000000000", "255@255"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++)
		expect_meaning(parse_mask, cases[i].text, cases[i].result);
}

PLX_TEST(each_bad_mask_has_one_clear_error)
{
	static const struct text_case cases[] = {
		{"", "-c \"\": column 1: the mask is empty; give hexadecimal digits such as 0x3"},
		{"  ", "the mask is empty"},
		{"0x", "-c 0x: column 3: found the end where a hexadecimal digit is expected"},
		{"0", "-c 0: column 1: no bit is set; give the CPUs' bits, such as 0x3 for"},
		{"0x0000", "column 3: no bit is set"},
		{"0xfg", "-c 0xfg: column 4: found 'g' where a hexadecimal digit or the end"},
		{"x3", "column 1: found 'x' where a hexadecimal digit is expected"},
		{"0x0x3", "column 4: found 'x'"},
		{"f f", "column 3: found 'f' where the end is expected"},
		{"0-3", "column 2: found '-' where a hexadecimal digit or the end is expected; "
			"this is a mask, not a core list"},
		{"2@5", "column 2: found '@'"},
		{"-1", "column 1: found '-' where a hexadecimal digit is expected; this is a mask"},
		{"_f", "column 1: found '_'"},
		{"f_", "column 3: found the end where a hexadecimal digit is expected"},
		{"f__f", "column 3: found '_' where a hexadecimal digit is expected"},
		{",f", "column 1: found ','"},
		{"f,", "column 3: found the end"},
		{"1,0", "-c 1,0: column 3: a group after ',' has 8 digits, as in f,00000000 for "
			"CPUs 32-35, and this one 1"},
		{"1,000000000", "column 3: a group after ',' has 8 digits, as in f,00000000 for "
				"CPUs 32-35, and this one 9"},
		{"1,0,00000000", "column 3: a group after ','"},
		{"10000000000000000000000000000000000000000000000000000000000000001",
		 "column 1: bit 256 is no lcore id (lcore ids are 0 to 255); to run an lcore on "
		 "CPU 256 give a core list with ID@256, with a free lcore id"},
		{"0x060000000000000000000000000000000000000000000000000000000000000000",
		 "column 4: bit 258 is no lcore id"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++)
		expect_error(parse_mask, cases[i].text, cases[i].result);
}

/* A bit beyond the last CPU; one that is no lcore; a megabyte. */
PLX_TEST(long_masks_get_short_errors)
{
	static const struct {
		size_t count;
		char fill;
		const char *start, *end, *error;
	} cases[] = {
		{1024, '0', "2", "", ": column 1: bit 4097 is out of range; CPU ids are 0 to 4095"},
		{1023, '0', "08", "", ": column 2: bit 4095 is no lcore id"},
		{1000000, 'f', "", "", "...: column 1: bit 3999999 is out of range"},
		{999999, 'f', "", "?", "f?: column 1000000: found '?'"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		char *text = text_of(cases[i].fill, strlen(cases[i].start) + cases[i].count,
				     cases[i].end);

		memcpy(text, cases[i].start, strlen(cases[i].start));
		expect_error(parse_mask, text, cases[i].error);
		free(text);
	}
}

PLX_TEST_MAIN_WITH(open_topo, close_topo)
