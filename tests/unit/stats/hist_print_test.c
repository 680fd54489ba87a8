/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_stats.h"
#include "plx_test.h"

#include <stdio.h>

static struct plx_hist hist;

PLX_FIXTURE(make, 0, assert_works(plx_hist_init(&hist, PLX_NS_PER_S, 3)))
PLX_FIXTURE(forget, 0, plx_hist_fini(&hist))

#define TEST(name) PLX_TEST_WITH(name, make, forget)

/* From 6 us on, a hundred of each ns, and one of 300 us. */
static void fill(uint64_t count)
{
	for (uint64_t i = 0; i + 1 < count; i++)
		plx_hist_record(&hist, 6000 + i / 100);
	plx_hist_record(&hist, 300000);
}

/* Valid until the next call. */
static const char *printed(double unit, unsigned columns)
{
	static char text[65536];
	FILE *file = fmemopen(text, sizeof(text), "w");

	assert_non_null(file);
	plx_hist_print(&hist, file, "call, us", unit, columns);
	fclose(file);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static size_t widest_line(const char *text)
{
	size_t widest = 0;

	while (*text) {
		size_t length = strcspn(text, "\n");

		widest = length > widest ? length : widest;
		text += length + (text[length] == '\n');
	}
	return widest;
}

TEST(a_table_of_percentiles_comes_before_the_bars)
{
	fill(200000);
	assert_has(
		printed(1000, 100),
		"call, us              min      p50      p90      p99    p99.9   p99.99      max\n"
		"                     6.00     7.00     7.80     7.98     8.00     8.00    300.0\n"
		"\n"
		"            call, us     share\n"
		"     6.00 - ");
}

TEST(too_few_values_print_as_not_available)
{
	fill(1000);
	assert_has(printed(1000, 80), "    6.01      n/a      n/a    300.0\n");
}

TEST(a_median_needs_twenty_values)
{
	char text[PLX_HIST_TEXT_BYTES];

	fill(19);
	assert_string_equal(plx_hist_quantile_format(&hist, 0.5, 1000, text), "n/a");
	plx_hist_record(&hist, 6000);
	assert_string_equal(plx_hist_quantile_format(&hist, 0.5, 1000, text), "6.00");
	assert_string_equal(plx_hist_quantile_format(&hist, 0.99, 1000, text), "n/a");
}

TEST(the_recorded_unit_has_no_fractions)
{
	char text[PLX_HIST_TEXT_BYTES];

	for (int i = 0; i < 20; i++)
		plx_hist_record(&hist, 42);
	assert_string_equal(plx_hist_quantile_format(&hist, 0.5, 1, text), "42");
	assert_string_equal(plx_hist_quantile_format(&hist, 0.5, 10, text), "4.20");
}

TEST(bars_fit_the_width_and_fill_it)
{
	fill(200000);
	for (unsigned width = 80; width <= 200; width += 40)
		assert_int_equal(widest_line(printed(1000, width)), width);
	assert_int_equal(widest_line(printed(1000, 0)), 80); /* not a terminal */
}

/* Shares are printed with three decimals: they add up to 100 within rounding. */
TEST(rows_count_every_value_once)
{
	double sum = 0;
	unsigned rows = 0;

	fill(50000);
	plx_hist_record(&hist, 5 * PLX_NS_PER_S); /* above the histogram's highest */
	const char *text = printed(1000, 80);
	for (const char *at = strchr(text, '%'); at; at = strchr(at + 1, '%')) {
		if (at[1] != ' ' || at[2] != '|')
			continue;
		sum += strtod(at - 8, NULL);
		rows++;
	}
	assert_true(sum > 99.98 && sum < 100.02);
	assert_in_range(rows, 8, 22);
	assert_has(text, "  0.002% |.\n");
}

TEST(values_above_the_range_are_counted_in_the_last_line)
{
	fill(1000);
	assert_null(strstr(printed(1000, 80), "range"));
	plx_hist_record(&hist, PLX_NS_PER_S); /* the histogram's highest is in its range */
	assert_null(strstr(printed(1000, 80), "range"));
	plx_hist_record(&hist, PLX_NS_PER_S + 1);
	assert_has(printed(1000, 80), "|.\n1 value above 1000000 (the histogram's range) counts as "
				      "the maximum\n");
	plx_hist_record(&hist, 5 * PLX_NS_PER_S);
	assert_has(printed(1000000, 80),
		   "|.\n2 values above 1000 (the histogram's range) count as the maximum\n");
}

TEST(equal_values_share_one_row)
{
	for (int i = 0; i < 100; i++)
		plx_hist_record(&hist, 7000);
	assert_has(printed(1000, 80), "100.000% |####");
}

TEST(a_zero_can_be_printed)
{
	plx_hist_record(&hist, 0);
	assert_has(printed(1000, 80), "100.000% |####");
}

TEST(an_empty_histogram_prints_no_figures_and_no_bars)
{
	assert_string_equal(
		printed(1000, 80),
		"call, us              min      p50      p90      p99    p99.9   p99.99      max\n"
		"                      n/a      n/a      n/a      n/a      n/a      n/a      "
		"n/a\n");
}

PLX_TEST_MAIN()
