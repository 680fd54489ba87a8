/* SPDX-License-Identifier: BSD-3-Clause */
/* A histogram as text: a table of percentiles with bars, the file of HDR plotters, and CSV. */
#include "plx_stats.h"
#include "plx_test.h"

#include <stdio.h>

static struct plx_hist hist;

/* Replaced by the next call. */
static char text[65536];

static void make(uint64_t highest)
{
	assert_works(plx_hist_init(&hist, highest, 3));
}

static void record(const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		plx_hist_record(&hist, values[i]);
}

#define RECORD(...)                             \
	record((const uint64_t[]){__VA_ARGS__}, \
	       sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void assert_has(const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

PLX_FIXTURE(up_to_1_s, 0, make(PLX_NS_PER_S))
PLX_FIXTURE(forget, 0, plx_hist_fini(&hist))

/* From 6 us on, a hundred of each ns, and one of 300 us. */
static void fill(uint64_t count)
{
	for (uint64_t i = 0; i + 1 < count; i++)
		plx_hist_record(&hist, 6000 + i / 100);
	plx_hist_record(&hist, 300000);
}

static const char *print(double unit, unsigned columns)
{
	FILE *file = fmemopen(text, sizeof(text), "w");

	assert_non_null(file);
	plx_hist_print(&hist, file, "call, us", unit, columns);
	fclose(file);
	return text;
}

#define TEST(name) PLX_TEST_WITH(name, up_to_1_s, forget)

TEST(a_table_of_percentiles_comes_before_the_bars)
{
	fill(200000);
	print(1000, 100);
	assert_has(
		"call, us              min      p50      p90      p99    p99.9   p99.99      max\n"
		"                     6.00     7.00     7.80     7.98     8.00     8.00    300.0\n"
		"\n"
		"            call, us     share\n"
		"     6.00 - ");
}

TEST(a_median_needs_twenty_values)
{
	char out[PLX_HIST_TEXT_BYTES];

	fill(19);
	assert_string_equal(plx_hist_quantile_format(&hist, 0.5, 1000, out), "n/a");
	plx_hist_record(&hist, 6000);
	assert_string_equal(plx_hist_quantile_format(&hist, 0.5, 1000, out), "6.00");
	assert_string_equal(plx_hist_quantile_format(&hist, 0.99, 1000, out), "n/a");
}

TEST(values_above_the_range_are_counted_in_the_last_line)
{
	assert_null(strstr(print(1000, 0), "%")); /* empty */
	fill(1000);
	plx_hist_record(&hist, PLX_NS_PER_S); /* the histogram's highest is in its range */
	assert_null(strstr(print(1000, 80), "range"));
	plx_hist_record(&hist, PLX_NS_PER_S + 1);
	print(1000, 80);
	assert_has("|.\n1 value above 1000000 (the histogram's range) counts as "
		   "the maximum\n");
	plx_hist_record(&hist, 5 * PLX_NS_PER_S);
	print(1000000, 80);
	assert_has("|.\n2 values above 1000 (the histogram's range) count as the maximum\n");
}

/* Files ------------------------------------------------------------------------------------ */

static const char *write_hgrm(double unit)
{
	FILE *file = fmemopen(text, sizeof(text), "w");

	assert_non_null(file);
	assert_int_equal(plx_hist_write_hgrm(&hist, file, unit), 0);
	fclose(file);
	return text;
}

#define FILE_TEST(name) PLX_TEST_WITH(name, NULL, forget)

FILE_TEST(the_table_has_the_format_of_hdr_plotters)
{
	/* Worked out by hand: ticks at 0, 10 ... 50, then 55 ... 75, then 77.5 ... 87.5 (five to
	 * each half); with ten values a tick's line shows the first value that reaches it. */
	static const char expected[] = "       Value     Percentile TotalCount 1/(1-Percentile)\n"
				       "\n"
				       "       1.000 0.000000000000          1           1.00\n"
				       "       1.000 0.100000000000          1           1.11\n"
				       "       2.000 0.200000000000          2           1.25\n"
				       "       3.000 0.300000000000          3           1.43\n"
				       "       4.000 0.400000000000          4           1.67\n"
				       "       5.000 0.500000000000          5           2.00\n"
				       "       6.000 0.550000000000          6           2.22\n"
				       "       6.000 0.600000000000          6           2.50\n"
				       "       7.000 0.650000000000          7           2.86\n"
				       "       7.000 0.700000000000          7           3.33\n"
				       "       8.000 0.750000000000          8           4.00\n"
				       "       8.000 0.775000000000          8           4.44\n"
				       "       8.000 0.800000000000          8           5.00\n"
				       "       9.000 0.825000000000          9           5.71\n"
				       "       9.000 0.850000000000          9           6.67\n"
				       "       9.000 0.875000000000          9           8.00\n"
				       "       9.000 0.887500000000          9           8.89\n"
				       "       9.000 0.900000000000          9          10.00\n"
				       "      10.000 0.912500000000         10          11.43\n"
				       "      10.000 1.000000000000         10\n"
				       "#[Mean    =        5.500, StdDeviation   =        2.872]\n"
				       "#[Max     =       10.000, Total count    =           10]\n"
				       "#[Buckets =           23, SubBuckets     =         2048]\n";

	make(8 * PLX_NS_PER_S);
	for (uint64_t value = 1; value <= 10; value++)
		plx_hist_record(&hist, value);
	assert_string_equal(write_hgrm(1), expected);
}

FILE_TEST(csv_has_one_line_per_bucket_in_use)
{
	make(1000000);
	RECORD(7, 7, 4097, 4102, 3000000);
	FILE *file = fmemopen(text, sizeof(text), "w");
	assert_int_equal(plx_hist_write_csv(&hist, file), 0);
	fclose(file);
	assert_string_equal(text, "low,high,count\n"
				  "7,7,2\n"
				  "4096,4099,1\n"
				  "4100,4103,1\n"
				  "999936,3000000,1\n");
	assert_non_null(strstr(write_hgrm(1), "\n#[Above   =  1000000.000, Overflow count ="));
}

FILE_TEST(a_full_disk_is_reported)
{
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	make(1000);
	plx_hist_record(&hist, 1);
	assert_fails(plx_hist_write_hgrm(&hist, full, 1), -EIO,
		     "cannot write the percentile table: No space left on device");
	assert_fails(plx_hist_write_csv(&hist, full), -EIO, "cannot write the histogram");
	fclose(full);
}

PLX_TEST_MAIN()
