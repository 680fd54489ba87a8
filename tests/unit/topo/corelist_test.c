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

PLX_TEST(lists_parse_as_the_grammar_says)
{
	static const struct text_case cases[] = {
		{"0-3,8", "0@0;1@1;2@2;3@3;8@8"},
		{"8,0-1", "0@0;1@1;8@8"},
		{"255", "255@255"},
		{"007", "7@7"},
		{"(0,6)", "0@0,6;6@0,6"},
		{"(0-1,6)", "0@0-1,6;1@0-1,6;6@0-1,6"},
		{"(3)", "3@3"},
		{"0@4095", "0@4095"},
		{"0-1@0", "0@0;1@0"},
		{"(0-1)@0", "0@0;1@0"},
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

PLX_TEST(each_bad_list_has_one_clear_error)
{
	static const struct text_case cases[] = {
		{" \t", "-l \" ?\": column 1: the list is empty; give lcores such as 0-3,8 or 2@5"},
		{"0--1", "column 3: found '-' where the number that ends the range"},
		{"0-3-4", "column 4: found '-' where ',', '@' or the end is expected"},
		{"0 1", "-l \"0 1\": column 3: found '1' where ',', '-', '@' or the end"},
		{"0\x01", "-l 0?: column 2: found byte 0x01 where"},
		{"2,(0-1@0", "column 7: found '@' where ',' or ')' is expected; "
			     "the '(' of column 3 is not closed"},
		{"0)", "column 2: found ')' where ',', '-', '@' or the end is expected; "
		       "there is no '(' for it"},
		{"((0,1))@2", "column 2: found '(' where a number is expected; groups do not nest"},
		{"[4-7]@0", "column 1: found '[' where a number or '(' is expected; "
			    "groups are written in ( ), as in (4-7)@0"},
		{"0@1@2", "column 4: found '@' where ',', '-' or the end is expected; "
			  "an item has one '@', as in 2@5"},
		{"0@(1)@2", "column 6: found '@' where ',' or the end is expected"},
		{"2@(5,7-6)", "column 6: the range ends below its start; write the lower number "
			      "first, as in 6-7"},
		{"0-3,2-5", "column 5: lcore 2 is given twice; give each lcore id once"},
		{"300", "-l 300: column 1: 300 is no lcore id (lcore ids are 0 to 255); "
			"to run an lcore on CPU 300 write ID@300, with a free lcore id"},
		{"0-256", "column 3: 256 is no lcore id (lcore ids are 0 to 255)"},
		{"(1,300)@0", "column 4: lcore 300 is out of range; lcore ids are 0 to 255"},
		{"0@(1,7-5000)", "column 8: CPU 5000 is out of range; CPU ids are 0 to 4095"},
		{"4096", "column 1: 4096 is out of range; lcore ids are 0 to 255, CPU ids are 0 "
			 "to 4095"},
		{"abc", "column 1: found 'a' where a number or '(' is expected; names are all, "
			"node:N and near:DEVICE"},
		{"0,node:-1", "column 8: found '-' where the number of a NUMA node is expected; as "
			      "in node:0"},
		{"node:2", "column 1: there is no CPU on NUMA node 2 that this process may use "
			   "(CPUs there: none; allowed: 0-7)"},
		{"node:18446744073709551616", "column 1: there is no CPU on NUMA node 2147483647"},
		{"0-3@1,node:1@2", "column 7: found the name of CPUs where lcore ids stand; names "
				   "stand after '@', as in 0@node:0, or alone"},
		{"near:", "column 6: found the end where a device is expected; as in near:eth0"},
		{"0@near:..", "column 8: there is no such device; give a network interface, an "
			      "RDMA device, or a PCI address"},
		{"near:0123456789012345678901234567890123456789012345678901234567890123456789",
		 "column 6: there is no such device"},
		{"0@99999999999999999999999",
		 "column 3: CPU 99999999999999999999... is out of range"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++)
		expect_error(parse_list, cases[i].text, cases[i].result);
}

/* Masks ------------------------------------------------------------------------------------ */

PLX_TEST(a_mask_selects_the_lcores_of_its_bits)
{
	static const struct text_case cases[] = {
		{"0X8", "3@3"},
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
		{"  ", "column 1: the mask is empty; give hexadecimal digits such as 0x3"},
		{"0x", "-c 0x: column 3: found the end where a hexadecimal digit is expected"},
		{"0x0000", "column 3: no bit is set; give the CPUs' bits, such as 0x3 for"},
		{"f f", "column 3: found 'f' where the end is expected"},
		{"0-3", "column 2: found '-' where a hexadecimal digit or the end is expected; "
			"this is a mask, not a core list"},
		{"f__f", "column 3: found '_' where a hexadecimal digit is expected"},
		{"1,0", "-c 1,0: column 3: a group after ',' has 8 digits, as in f,00000000 for "
			"CPUs 32-35, and this one 1"},
		{"1,000000000", "column 3: a group after ',' has 8 digits, as in f,00000000 for "
				"CPUs 32-35, and this one 9"},
		{"10000000000000000000000000000000000000000000000000000000000000001",
		 "column 1: bit 256 is no lcore id (lcore ids are 0 to 255); to run an lcore on "
		 "CPU 256 give a core list with ID@256, with a free lcore id"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++)
		expect_error(parse_mask, cases[i].text, cases[i].result);
}

/* A megabyte of text gives an ordinary, short error near its position. */
PLX_TEST(huge_texts_get_short_errors)
{
	static const struct {
		parse_fn parse;
		char fill;
		const char *end, *error;
	} cases[] = {
		{parse_list, '9', "", ": column 1: 99999999999999999999... is out of range"},
		{parse_list, '0', "x", "x: column 1000001: found 'x'"},
		{parse_list, '(', "", ": column 2: found '('"},
		{parse_mask, 'f', "", "...: column 1: bit 3999999 is out of range; CPU ids are 0"},
		{parse_mask, 'f', "?", "f?: column 1000001: found '?'"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		static char text[1000002];

		memset(text, cases[i].fill, 1000000);
		strcpy(text + 1000000, cases[i].end);
		expect_error(cases[i].parse, text, cases[i].error);
	}
}

PLX_TEST_MAIN_WITH(open_topo, close_topo)
