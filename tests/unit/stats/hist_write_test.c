/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_stats.h"
#include "plx_test.h"

#include <stdio.h>

static struct plx_hist hist;

PLX_FIXTURE(forget, 0, plx_hist_fini(&hist))

#define TEST(name) PLX_TEST_WITH(name, NULL, forget)

static char *written_hgrm(double unit)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	assert_int_equal(plx_hist_write_hgrm(&hist, file, unit), 0);
	fclose(file);
	return text;
}

static void expect_in_hgrm(double unit, const char *part)
{
	char *text = written_hgrm(unit);

	assert_non_null(strstr(text, part));
	free(text);
}

static void make(uint64_t highest)
{
	hist = (struct plx_hist){0};
	assert_int_equal(plx_hist_init(&hist, highest, 3), 0);
}

TEST(the_table_has_the_format_of_hdr_plotters)
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
	char *text = written_hgrm(1);
	assert_string_equal(text, expected);
	free(text);
}

TEST(the_unit_divides_every_value)
{
	make(100000);
	plx_hist_record(&hist, 1500);
	expect_in_hgrm(1000, "       1.500 0.000000000000          1           1.00\n");
	expect_in_hgrm(1000, "       1.500 1.000000000000          1\n");
	expect_in_hgrm(1000, "#[Mean    =        1.500, StdDeviation   =        0.000]\n");
	expect_in_hgrm(1000, "#[Max     =        1.500, Total count    =            1]\n");
}

TEST(no_value_above_the_maximum_is_shown)
{
	make(1000000);
	plx_hist_record(&hist, 900001); /* its bucket ends at 900095 */
	plx_hist_record(&hist, 5000000);
	expect_in_hgrm(1, "  900095.000 0.500000000000          1");
	expect_in_hgrm(1, " 5000000.000 1.000000000000          2\n");
	expect_in_hgrm(1, "#[Max     =  5000000.000");
	plx_hist_reset(&hist);

	plx_hist_record(&hist, 900001);
	char *text = written_hgrm(1);
	assert_null(strstr(text, "900095"));
	free(text);
}

TEST(values_above_the_range_are_counted_in_the_footer)
{
	make(1000000);
	plx_hist_record(&hist, 1000000);
	char *text = written_hgrm(1000);
	assert_null(strstr(text, "Overflow"));
	free(text);
	plx_hist_record(&hist, 1000001);
	plx_hist_record(&hist, 7000000);
	expect_in_hgrm(1000,
		       "]\n#[Above   =     1000.000, Overflow count =            2]\n#[Buckets");
}

TEST(an_empty_histogram_has_only_header_and_footer)
{
	make(1000);
	char *text = written_hgrm(1);
	assert_string_equal(text, "       Value     Percentile TotalCount 1/(1-Percentile)\n"
				  "\n"
				  "#[Mean    =        0.000, StdDeviation   =        0.000]\n"
				  "#[Max     =        0.000, Total count    =            0]\n"
				  "#[Buckets =            1, SubBuckets     =         2048]\n");
	free(text);
}

TEST(csv_has_one_line_per_bucket_in_use)
{
	char *text = NULL;
	size_t size = 0;

	make(1000000);
	plx_hist_record(&hist, 7);
	plx_hist_record(&hist, 7);
	plx_hist_record(&hist, 4097);
	plx_hist_record(&hist, 4102);
	plx_hist_record(&hist, 3000000);
	FILE *file = open_memstream(&text, &size);
	assert_int_equal(plx_hist_write_csv(&hist, file), 0);
	fclose(file);
	assert_string_equal(text, "low,high,count\n"
				  "7,7,2\n"
				  "4096,4099,1\n"
				  "4100,4103,1\n"
				  "999936,3000000,1\n");
	free(text);
}

TEST(a_full_disk_is_reported)
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
