/* SPDX-License-Identifier: BSD-3-Clause */
/* Write the percentile table of HdrHistogram (hdrhistogram.org), column for column, so that its
 * plotters read our files. */
#include "plx_stats.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define TICKS_PER_HALF 5 /* lines per halving of the distance to 100 % */

/* The next percentile: a fifth of the way to half the current distance from 100. */
static double next_percent(double percent)
{
	double halvings = floor(log2(100 / (100 - percent)));

	return percent + 100 / (TICKS_PER_HALF * exp2(halvings + 1));
}

static int finish(FILE *file, const char *what)
{
	if (fflush(file) || ferror(file))
		return plx_fail(EIO, "cannot write %s: %s", what, strerror(errno ? errno : EIO));
	return 0;
}

/* How many doublings of the linear range cover every value up to the highest. */
static unsigned doublings(const struct plx_hist *hist)
{
	unsigned count = 1;

	while (hist->sub_bits + count - 1 < 64 && hist->highest >> (hist->sub_bits + count - 1))
		count++;
	return count;
}

static void write_footer(const struct plx_hist *hist, FILE *file, double unit)
{
	assert(hist->sub_bits < 64);
	fprintf(file, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", plx_hist_mean(hist) / unit,
		plx_hist_stddev(hist) / unit);
	fprintf(file, "#[Max     = %12.3f, Total count    = %12llu]\n", (double)hist->max / unit,
		(unsigned long long)hist->count);
	fprintf(file, "#[Buckets = %12u, SubBuckets     = %12llu]\n", doublings(hist),
		1ull << hist->sub_bits);
}

/* The highest value of a non-empty bucket, limited to the recorded maximum. */
static uint64_t bucket_top(const struct plx_hist *hist, size_t index)
{
	uint64_t high = plx_hist_bucket_high(hist, index);
	bool overflown = hist->overflow && index == hist->bucket_count - 1;

	return overflown || high > hist->max ? hist->max : high;
}

static void write_lines(const struct plx_hist *hist, FILE *file, double unit)
{
	uint64_t seen = 0;
	double percent = 0;

	for (size_t i = 0; i < hist->bucket_count && seen < hist->count; i++) {
		if (!hist->buckets[i])
			continue;
		seen += hist->buckets[i];

		double reached = 100 * (double)seen / (double)hist->count;
		double value = (double)bucket_top(hist, i) / unit;
		for (; reached >= percent; percent = next_percent(percent)) {
			fprintf(file, "%12.3f %2.12f %10llu %14.2f\n", value, percent / 100,
				(unsigned long long)seen, 100 / (100 - percent));
			if (seen == hist->count) /* ticks never reach 100 %, so stop when the values
						  * run out */
				break;
		}
	}
	if (hist->count)
		fprintf(file, "%12.3f %2.12f %10llu\n", (double)hist->max / unit, 1.0,
			(unsigned long long)hist->count);
}

int plx_hist_write_hgrm(const struct plx_hist *hist, FILE *file, double unit)
{
	errno = 0;
	fprintf(file, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
		"1/(1-Percentile)");
	write_lines(hist, file, unit);
	write_footer(hist, file, unit);
	return finish(file, "the percentile table");
}

int plx_hist_write_csv(const struct plx_hist *hist, FILE *file)
{
	errno = 0;
	fprintf(file, "low,high,count\n");
	for (size_t i = 0; i < hist->bucket_count; i++) {
		if (hist->buckets[i])
			fprintf(file, "%llu,%llu,%llu\n",
				(unsigned long long)plx_hist_bucket_low(hist, i),
				(unsigned long long)bucket_top(hist, i),
				(unsigned long long)hist->buckets[i]);
	}
	return finish(file, "the histogram");
}
