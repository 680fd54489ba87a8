/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_stats.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX     4
#define SAMPLES_LEAST  10 /* needed above a quantile to report it */
#define TICKS_PER_HALF 5  /* lines per halving of the distance to 100 % */

/* A bucket of the upper half of 2^bits is at most 1 / 2^(bits - 1) of its values wide, so 2^bits >=
 * 2 * 10^digits keeps `digits` digits. */
static unsigned sub_bits_for(unsigned digits)
{
	uint64_t needed = 2;
	unsigned bits = 0;

	while (digits--)
		needed *= 10;
	while ((UINT64_C(1) << bits) < needed)
		bits++;
	return bits;
}

int plx_hist_init(struct plx_hist *hist, uint64_t highest, unsigned digits)
{
	if (digits < 1 || digits > DIGITS_MAX)
		return plx_fail(EINVAL, "histogram: %u significant digits asked, 1 to %u allowed",
				digits, DIGITS_MAX);
	if (!highest)
		return plx_fail(EINVAL, "histogram: highest value 0 given; at least 1 is needed");

	struct plx_hist made = {
		.highest = highest,
		.digits = digits,
		.sub_bits = sub_bits_for(digits),
	};
	made.bucket_count = plx_hist_index(&made, highest) + 1;
	made.buckets = calloc(made.bucket_count, sizeof(*made.buckets));
	if (!made.buckets)
		return plx_fail(ENOMEM, "histogram: no memory for %zu buckets", made.bucket_count);
	made.min = UINT64_MAX;
	*hist = made;
	return 0;
}

void plx_hist_fini(struct plx_hist *hist)
{
	free(hist->buckets);
	hist->buckets = NULL;
	hist->bucket_count = 0;
}

void plx_hist_reset(struct plx_hist *hist)
{
	memset(hist->buckets, 0, hist->bucket_count * sizeof(*hist->buckets));
	hist->count = 0;
	hist->overflow = 0;
	hist->min = UINT64_MAX;
	hist->max = 0;
	hist->sum = 0;
}

/* Right shift that maps a value of bucket `index` to its place. */
static unsigned bucket_shift(const struct plx_hist *hist, size_t index)
{
	/* index / half - 1; half is a power of two */
	return index >> hist->sub_bits ? (unsigned)(index >> (hist->sub_bits - 1)) - 1 : 0;
}

uint64_t plx_hist_bucket_low(const struct plx_hist *hist, size_t index)
{
	unsigned shift = bucket_shift(hist, index);
	size_t half = (size_t)1 << (hist->sub_bits - 1);

	return (uint64_t)(index - shift * half) << shift;
}

uint64_t plx_hist_bucket_high(const struct plx_hist *hist, size_t index)
{
	return plx_hist_bucket_low(hist, index) + ((UINT64_C(1) << bucket_shift(hist, index)) - 1);
}

/* The rank of the quantile, counted from 1 in ascending order. 0.07 * 100 is slightly more than 7
 * in binary, so values within rounding error above an integer round down. */
static uint64_t quantile_rank(const struct plx_hist *hist, double fraction)
{
	double place = fraction * (double)hist->count;

	place = ceil(place - place * 4 * DBL_EPSILON);
	if (!(place >= 1))
		return 1;
	return place >= (double)hist->count ? hist->count : (uint64_t)place;
}

uint64_t plx_hist_quantile(const struct plx_hist *hist, double fraction)
{
	if (!hist->count)
		return 0;

	uint64_t rank = quantile_rank(hist, fraction);
	if (rank > hist->count - hist->overflow)
		return hist->max;

	size_t i = 0;
	for (uint64_t seen = hist->buckets[0]; seen < rank; seen += hist->buckets[i])
		i++;
	uint64_t high = plx_hist_bucket_high(hist, i);
	return high < hist->max ? high : hist->max;
}

bool plx_hist_quantile_known(const struct plx_hist *hist, double fraction)
{
	/* The slack covers fractions without an exact binary form, such as 0.9999. */
	return (double)hist->count * (1 - fraction) >= SAMPLES_LEAST - 1e-6;
}

double plx_hist_mean(const struct plx_hist *hist)
{
	return hist->count ? hist->sum / (double)hist->count : 0;
}

double plx_hist_stddev(const struct plx_hist *hist)
{
	double mean = plx_hist_mean(hist);
	double squares = 0;

	if (!hist->count)
		return 0;
	for (size_t i = 0; i < hist->bucket_count; i++) {
		if (!hist->buckets[i])
			continue;
		double low = (double)plx_hist_bucket_low(hist, i);
		double away = (low + (double)plx_hist_bucket_high(hist, i)) / 2 - mean;

		squares += away * away * (double)hist->buckets[i];
	}
	return sqrt(squares / (double)hist->count);
}

int plx_hist_add(struct plx_hist *to, const struct plx_hist *from)
{
	if (to->sub_bits != from->sub_bits || to->highest != from->highest)
		return plx_fail(EINVAL,
				"histograms differ: %u digits up to %" PRIu64
				", and %u digits up to %" PRIu64,
				to->digits, to->highest, from->digits, from->highest);

	for (size_t i = 0; i < to->bucket_count; i++)
		to->buckets[i] += from->buckets[i];
	to->count += from->count;
	to->overflow += from->overflow;
	to->sum += from->sum;
	if (from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	return 0;
}

/* Writing ----------------------------------------------------------------------------------- */

/* The percentile table of HdrHistogram (hdrhistogram.org), column for column, so that its plotters
 * read our files. */

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
			fprintf(file, "%12.3f %2.12f %10" PRIu64 " %14.2f\n", value, percent / 100,
				seen, 100 / (100 - percent));
			if (seen == hist->count) /* ticks never reach 100 % */
				break;
		}
	}
	if (hist->count)
		fprintf(file, "%12.3f %2.12f %10" PRIu64 "\n", (double)hist->max / unit, 1.0,
			hist->count);
}

int plx_hist_write_hgrm(const struct plx_hist *hist, FILE *file, double unit)
{
	assert(hist->sub_bits < 64);
	errno = 0;
	fprintf(file, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
		"1/(1-Percentile)");
	write_lines(hist, file, unit);
	fprintf(file, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", plx_hist_mean(hist) / unit,
		plx_hist_stddev(hist) / unit);
	fprintf(file, "#[Max     = %12.3f, Total count    = %12" PRIu64 "]\n",
		(double)hist->max / unit, hist->count);
	if (hist->overflow) /* not in HdrHistogram, which refuses such values; readers skip it */
		fprintf(file, "#[Above   = %12.3f, Overflow count = %12" PRIu64 "]\n",
			(double)hist->highest / unit, hist->overflow);
	/* HdrHistogram counts doublings of the linear range that reach the highest value. */
	fprintf(file, "#[Buckets = %12u, SubBuckets     = %12llu]\n",
		bucket_shift(hist, hist->bucket_count - 1) + 1, 1ull << hist->sub_bits);
	return finish(file, "the percentile table");
}

int plx_hist_write_csv(const struct plx_hist *hist, FILE *file)
{
	errno = 0;
	fprintf(file, "low,high,count\n");
	for (size_t i = 0; i < hist->bucket_count; i++) {
		if (hist->buckets[i])
			fprintf(file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
				plx_hist_bucket_low(hist, i), bucket_top(hist, i),
				hist->buckets[i]);
	}
	return finish(file, "the histogram");
}
