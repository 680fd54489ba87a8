/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Histograms of durations, log-linear like HdrHistogram: every value keeps a fixed number of
 * significant digits, whatever its size.
 */
#ifndef PLX_STATS_H
#define PLX_STATS_H

#include "plx_base.h"

#include <stdio.h>

PLX_BEGIN_DECLS

/** A histogram of unsigned values, usually ns. One writer at a time, no locks.
 * Layout after HdrHistogram (Gil Tene, hdrhistogram.org): 2^(sub_bits) linear buckets up to
 * 2^sub_bits, then half as many for each further power of two. */
struct plx_hist {
	uint64_t count;    /**< recorded values */
	uint64_t min;      /**< smallest value; UINT64_MAX while empty */
	uint64_t max;      /**< largest value, exact even above `highest` */
	uint64_t overflow; /**< values above `highest`, in the last bucket: see plx_hist_quantile */
	double sum;        /**< of the exact values, for the mean */
	uint64_t highest;  /**< largest value that keeps its digits */
	unsigned sub_bits; /**< log2 of the number of linear buckets */
	unsigned digits;   /**< significant digits kept: 1 to 4 */
	size_t bucket_count; /**< number of buckets */
	uint64_t *buckets;
};

/** Create an empty histogram of values up to highest with `digits` significant digits (1 to 4). 3
 * digits up to 10 s take 200 KiB.
 * Ownership: free with plx_hist_fini.
 * Return: 0; -EINVAL; -ENOMEM. */
int plx_hist_init(struct plx_hist *hist, uint64_t highest, unsigned digits);

/** Free the buckets. Accepts a zeroed histogram. */
void plx_hist_fini(struct plx_hist *hist);

/** Clear all values. */
void plx_hist_reset(struct plx_hist *hist);

/** The bucket of a value. */
static inline size_t plx_hist_index(const struct plx_hist *hist, uint64_t value)
{
	unsigned top = 63 - PLX_CAST(unsigned, __builtin_clzll(value | 1));
	unsigned shift = top < hist->sub_bits ? 0 : top - hist->sub_bits + 1;
	size_t half = PLX_CAST(size_t, 1) << (hist->sub_bits - 1);

	return PLX_CAST(size_t, shift) * half + PLX_CAST(size_t, value >> shift);
}

/** Record one value. Thread: the writer. */
static inline void plx_hist_record(struct plx_hist *hist, uint64_t value)
{
	size_t index = plx_hist_index(hist, value);

	if (plx_unlikely(value > hist->highest)) {
		index = hist->bucket_count - 1;
		hist->overflow++;
	}
	hist->buckets[index]++;
	hist->count++;
	hist->sum += PLX_CAST(double, value);
	if (value < hist->min)
		hist->min = value;
	if (value > hist->max)
		hist->max = value;
}

/** Largest value of bucket `index` (buckets are [low, high], both inclusive). */
uint64_t plx_hist_bucket_high(const struct plx_hist *hist, size_t index);

/** Smallest value of bucket `index`. */
uint64_t plx_hist_bucket_low(const struct plx_hist *hist, size_t index);

/** Smallest value that `fraction` (0 to 1) of all values do not exceed, at most max; 0: empty. A
 * value above `highest` counts as max, so a quantile among such values is max. */
uint64_t plx_hist_quantile(const struct plx_hist *hist, double fraction);

/** Whether there are enough values for that quantile: at least 10 above it, so 1 000 for p99 and
 * 100 000 for p99.99. */
bool plx_hist_quantile_known(const struct plx_hist *hist, double fraction);

/** sum / count; 0 while empty. */
double plx_hist_mean(const struct plx_hist *hist);

/** Standard deviation computed from the middle of each bucket; 0 while empty. */
double plx_hist_stddev(const struct plx_hist *hist);

/** Add all values of `from` to `to`. Return: 0; -EINVAL different layouts. */
int plx_hist_add(struct plx_hist *to, const struct plx_hist *from);

/** Write a percentile table for HdrHistogram's plotters (.hgrm: Value, Percentile, TotalCount,
 * 1/(1-Percentile), and the #[Mean ...] footer). Values are divided by `unit`: 1000 writes
 * microseconds if ns were recorded; plx_hist_write_csv does not divide. The footer counts the
 * values above `highest`, if any: #[Above = ..., Overflow count = ...]. An empty histogram has only
 * header and footer.
 * Return: 0; -EIO. */
int plx_hist_write_hgrm(const struct plx_hist *hist, FILE *file, double unit);

/** Write a header and "low,high,count" for every bucket that is not empty, in the unit that was
 * recorded: ns if ns were recorded, also if the .hgrm file of the same histogram has microseconds.
 * Return: 0; -EIO. */
int plx_hist_write_csv(const struct plx_hist *hist, FILE *file);

#define PLX_HIST_TEXT_BYTES 32 /**< room for a formatted quantile */

/** Format a quantile for people: divided by `unit`, with about three significant digits; "n/a" if
 * there are too few values (plx_hist_quantile_known). Return: out. */
const char *plx_hist_quantile_format(const struct plx_hist *hist, double fraction, double unit,
				     char out[PLX_HIST_TEXT_BYTES]);

/* Printing for people. Values are divided by `unit`, more than 0: 1000 prints microseconds if ns
 * were recorded. Write errors stay in the stream: see ferror(3). */

/** Print a table of percentiles (plx_hist_print_quantiles), an empty line, and the distribution
 * (plx_hist_print_bars).
 * title: of both, with the unit: "round trip, us". Up to 16 characters keep the columns aligned. */
void plx_hist_print(const struct plx_hist *hist, FILE *file, const char *title, double unit,
		    unsigned columns);

/** Print one line: title, min, p50, p90, p99, p99.9, p99.99 and max; "n/a" for percentiles with too
 * few values. hist NULL: the line with the names of the columns. For tables that compare
 * histograms. */
void plx_hist_print_quantiles(const struct plx_hist *hist, FILE *file, const char *title,
			      double unit);

/** Print a bar for each range of values: up to 14 from the minimum to p99, and up to 8 from there
 * to the maximum. A dot is a value or more, too few for a mark. If there are values above
 * `highest`, a last line counts them. Prints nothing while empty.
 * columns: width of the lines, at least 48; 0: that of the terminal, or 80. */
void plx_hist_print_bars(const struct plx_hist *hist, FILE *file, const char *title, double unit,
			 unsigned columns);

PLX_END_DECLS

#endif
