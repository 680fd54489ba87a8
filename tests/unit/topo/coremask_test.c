/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_test.h"

#include "plx_topo.h"

PLX_TEST(a_mask_selects_the_lcores_of_its_bits)
{
	static const struct {
		const char *text, *list;
	} cases[] = {
		{"1", "0"},
		{"0x1", "0"},
		{"0X8", "3"},
		{"f", "0-3"},
		{"0xFf", "0-7"},
		{"10", "4"},
		{" 0x5 ", "0,2"},
		{"ff_ff", "0-15"},
		{"f,00000000", "32-35"},
		{"0x1,00000000,00000001", "0,64"},
		{"1,0000_0000", "32"},
		{"8000000000000000000000000000000000000000000000000000000000000000", "255"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct plx_lcore_map map;
		char list[256];

		if (plx_lcore_map_parse_mask("-c", cases[i].text, &map))
			fail_msg("'%s': %s", cases[i].text, plx_error());
		assert_string_equal(plx_lcore_map_format(&map, list, sizeof(list)), cases[i].list);
		plx_lcore_map_fini(&map);
	}
}

PLX_TEST(a_mask_may_have_any_number_of_leading_zeros)
{
	char text[9000], list[64];
	struct plx_lcore_map map;

	memset(text, '0', sizeof(text));
	strcpy(text + sizeof(text) - 4, "101");
	assert_int_equal(plx_lcore_map_parse_mask("-c", text, &map), 0);
	assert_string_equal(plx_lcore_map_format(&map, list, sizeof(list)), "0,8");
	plx_lcore_map_fini(&map);
}

PLX_TEST(each_bad_mask_has_one_clear_error)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
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

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct plx_lcore_map map;

		if (plx_lcore_map_parse_mask("-c", cases[i].text, &map) != -EINVAL)
			fail_msg("'%s' was taken", cases[i].text);
		assert_error_has(cases[i].error);
		assert_true(strncmp(plx_error(), "-c ", 3) == 0);
	}
}

PLX_TEST(a_bit_beyond_the_last_cpu_is_out_of_range)
{
	char text[1026];
	struct plx_lcore_map map;

	memset(text, '0', sizeof(text));
	text[0] = '2';
	text[sizeof(text) - 1] = '\0';
	assert_fails(plx_lcore_map_parse_mask("-c", text, &map), -EINVAL,
		     ": column 1: bit 4097 is out of range; CPU ids are 0 to 4095");
	text[0] = '0';
	text[1] = '8';
	assert_fails(plx_lcore_map_parse_mask("-c", text, &map), -EINVAL,
		     ": column 2: bit 4095 is no lcore id");
}

PLX_TEST(a_huge_mask_gets_a_short_error)
{
	const size_t size = 1000000;
	char *text = malloc(size + 1);
	struct plx_lcore_map map;

	assert_non_null(text);
	memset(text, 'f', size);
	text[size] = '\0';
	assert_fails(plx_lcore_map_parse_mask("-c", text, &map), -EINVAL,
		     "...: column 1: bit 3999999 is out of range");
	text[size - 1] = '?';
	assert_fails(plx_lcore_map_parse_mask("-c", text, &map), -EINVAL,
		     "f?: column 1000000: found '?'");
	assert_true(strlen(plx_error()) < 250);
	free(text);
}

PLX_TEST_MAIN()
