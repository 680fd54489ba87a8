/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Histograms of durations, log-linear like HdrHistogram: every recorded value keeps a fixed number
 * of significant digits, whatever its size.
 */
#ifndef PLX_STATS_H
#define PLX_STATS_H

#include "plx_base.h"

#include <stdio.h>

PLX_BEGIN_DECLS

/** A histogram of unsigned values (nanoseconds, by custom). One writer at a time, no locks.
 * Layout after HdrHistogram (Gil Tene, hdrhistogram.org): 2^(sub_bits) linear buckets up to
 * 2^sub_bits, then half as many for each further power of two. */
struct plx_hist {
	uint64_t count;      /**< values recorded */
	uint64_t min;        /**< least value; UINT64_MAX while empty */
	uint64_t max;        /**< greatest value, exact even above `highest` */
	uint64_t overflow;   /**< values above `highest`, counted in the last bucket */
	double sum;          /**< for the mean, of the exact values */
	uint64_t highest;    /**< greatest value that keeps its digits */
	unsigned sub_bits;   /**< log2 of the linear part */
	unsigned digits;     /**< significant digits kept: 1 to 4 */
	size_t bucket_count; /**< of buckets */
	uint64_t *buckets;
};

/** Make an empty histogram of values up to highest with the given significant digits (1 to 4).
 * 3 digits up to 10 s take 200 KiB. Return: 0; -EINVAL; -ENOMEM. */
int plx_hist_init(struct plx_hist *hist, uint64_t highest, unsigned digits);

/** Free the buckets. Accepts one that was never initialised, if zeroed. */
void plx_hist_fini(struct plx_hist *hist);

/** Forget all values. */
void plx_hist_reset(struct plx_hist *hist);

/** The bucket that value falls into. */
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

/** The greatest value that falls into bucket `index` (buckets are [low, high], both inside). */
uint64_t plx_hist_bucket_high(const struct plx_hist *hist, size_t index);

/** The least value that falls into bucket `index`. */
uint64_t plx_hist_bucket_low(const struct plx_hist *hist, size_t index);

/** The value below or at which `fraction` (0 to 1) of all values lie, never above max; 0 while
 * empty. */
uint64_t plx_hist_quantile(const struct plx_hist *hist, double fraction);

/** Whether there are enough values for that quantile to mean something: at least 10 above it, so
 * 1 000 for p99, 100 000 for p99.99. */
bool plx_hist_quantile_known(const struct plx_hist *hist, double fraction);

/** sum / count; 0 while empty. */
double plx_hist_mean(const struct plx_hist *hist);

/** Standard deviation from the buckets' middles; 0 while empty. */
double plx_hist_stddev(const struct plx_hist *hist);

/** Add all values of `from` to `to`. Return: 0; -EINVAL where their layouts differ. */
int plx_hist_add(struct plx_hist *to, const struct plx_hist *from);

/** Write the percentile table that HdrHistogram's plotters read (.hgrm: Value, Percentile,
 * TotalCount, 1/(1-Percentile), and the #[Mean ...] footer), values divided by `unit` (1000: in
 * microseconds for nanoseconds recorded). Return: 0; -EIO. */
int plx_hist_write_hgrm(const struct plx_hist *hist, FILE *file, double unit);

/** Write "low,high,count" lines with a header, for every bucket that is not empty, in the values'
 * own unit. Return: 0; -EIO. */
int plx_hist_write_csv(const struct plx_hist *hist, FILE *file);

PLX_END_DECLS

#endif
