/* SPDX-License-Identifier: BSD-3-Clause */
/* The histogram compared with the simplest model: a sorted array of the same values. */
#include "dice.h"
#include "plx_stats.h"
#include "plx_test.h"

#include <math.h>

#define SECONDS_10 (10 * PLX_NS_PER_S)

static struct plx_hist hist_of(uint64_t highest, unsigned digits)
{
	struct plx_hist hist = {0};

	assert_works(plx_hist_init(&hist, highest, digits));
	return hist;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Values of every magnitude: a random number of random bits. */
static uint64_t *random_values(size_t count, uint64_t below, uint64_t seed)
{
	uint64_t *values = malloc(count * sizeof(*values));

	assert_non_null(values);
	for (size_t i = 0; i < count; i++)
		values[i] = (dice_next(&seed) >> (dice_next(&seed) % 63)) % below;
	return values;
}

PLX_TEST(buckets_cover_the_range_without_gap_or_overlap)
{
	for (unsigned digits = 1; digits <= 4; digits++) {
		struct plx_hist hist = hist_of(SECONDS_10, digits);
		uint64_t expected_low = 0;

		for (size_t i = 0; i < hist.bucket_count; i++) {
			uint64_t low = plx_hist_bucket_low(&hist, i);
			uint64_t high = plx_hist_bucket_high(&hist, i);

			assert_int_equal(low, expected_low);
			assert_int_equal(plx_hist_index(&hist, low), i);
			assert_int_equal(plx_hist_index(&hist, high), i);
			expected_low = high + 1;
		}
		assert_true(expected_low > SECONDS_10);
		assert_true(plx_hist_bucket_low(&hist, hist.bucket_count - 1) <= SECONDS_10);
		plx_hist_fini(&hist);
	}
}

PLX_TEST(every_bucket_keeps_the_requested_digits)
{
	double allowed = 1;

	for (unsigned digits = 1; digits <= 4; digits++) {
		struct plx_hist hist = hist_of(UINT64_MAX, digits);

		allowed /= 10;
		for (size_t i = 1; i < hist.bucket_count; i++) {
			double low = (double)plx_hist_bucket_low(&hist, i);
			double width = (double)plx_hist_bucket_high(&hist, i) - low;

			assert_true(width <= low * allowed);
		}
		assert_int_equal(plx_hist_bucket_high(&hist, hist.bucket_count - 1), UINT64_MAX);
		plx_hist_fini(&hist);
	}
}

static void check_quantile(const struct plx_hist *hist, const uint64_t *sorted,
			   uint64_t thousandths)
{
	/* In whole numbers: the rank is thousandths / 1000 of the count, rounded up, at least 1. */
	uint64_t rank = (thousandths * hist->count + 999) / 1000;
	uint64_t exact = sorted[rank ? rank - 1 : 0];
	uint64_t high = plx_hist_bucket_high(hist, plx_hist_index(hist, exact));
	uint64_t expected = high < hist->max ? high : hist->max;

	assert_int_equal(plx_hist_quantile(hist, (double)thousandths / 1000), expected);
}

PLX_TEST(quantiles_agree_with_those_of_the_sorted_values)
{
	const size_t counts[] = {1, 3, 100, 9999, 10000};

	for (size_t c = 0; c < PLX_ARRAY_LEN(counts); c++) {
		size_t count = counts[c];
		uint64_t *values = random_values(count, SECONDS_10, 42 + count);
		struct plx_hist hist = hist_of(SECONDS_10, 3);

		for (size_t i = 0; i < count; i++)
			plx_hist_record(&hist, values[i]);
		qsort(values, count, sizeof(*values), ascending);
		for (uint64_t thousandths = 0; thousandths <= 1000; thousandths++)
			check_quantile(&hist, values, thousandths);
		assert_int_equal(hist.count, count);
		assert_int_equal(hist.min, values[0]);
		assert_int_equal(hist.max, values[count - 1]);
		assert_int_equal(hist.overflow, 0);
		plx_hist_fini(&hist);
		free(values);
	}
}

PLX_TEST(the_mean_is_exact_and_the_deviation_within_the_digits)
{
	const size_t count = 5000;
	uint64_t *values = random_values(count, SECONDS_10, 7);
	struct plx_hist hist = hist_of(SECONDS_10, 3);
	double sum = 0, squares = 0;

	for (size_t i = 0; i < count; i++) {
		plx_hist_record(&hist, values[i]);
		sum += (double)values[i];
	}
	double mean = sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += ((double)values[i] - mean) * ((double)values[i] - mean);
	double deviation = sqrt(squares / (double)count);

	assert_true(fabs(plx_hist_mean(&hist) - mean) <= mean * 1e-12);
	assert_true(fabs(plx_hist_stddev(&hist) - deviation) <= deviation * 1e-3);
	plx_hist_fini(&hist);
	free(values);
}

PLX_TEST(values_above_the_highest_are_counted_and_the_maximum_is_exact)
{
	struct plx_hist hist = hist_of(1000000, 3);

	for (int i = 0; i < 90; i++)
		plx_hist_record(&hist, 500);
	for (int i = 0; i < 10; i++)
		plx_hist_record(&hist, 77000000 + (uint64_t)i);
	assert_int_equal(hist.overflow, 10);
	assert_int_equal(hist.max, 77000009);
	assert_int_equal(hist.buckets[hist.bucket_count - 1], 10);
	assert_int_equal(plx_hist_quantile(&hist, 0.9), 500);
	assert_int_equal(plx_hist_quantile(&hist, 0.91), 77000009);
	assert_true(fabs(plx_hist_mean(&hist) - 7700450.45) < 0.01);
	plx_hist_fini(&hist);
}

PLX_TEST(adding_histograms_equals_recording_into_one)
{
	uint64_t *values = random_values(2000, 100000, 99);
	struct plx_hist one = hist_of(50000, 2), two = hist_of(50000, 2), both = hist_of(50000, 2);

	for (size_t i = 0; i < 2000; i++) {
		plx_hist_record(i % 3 ? &one : &two, values[i]);
		plx_hist_record(&both, values[i]);
	}
	assert_int_equal(plx_hist_add(&one, &two), 0);
	assert_memory_equal(one.buckets, both.buckets, one.bucket_count * sizeof(*one.buckets));
	assert_int_equal(one.count, both.count);
	assert_int_equal(one.min, both.min);
	assert_int_equal(one.max, both.max);
	assert_int_equal(one.overflow, both.overflow);
	assert_true(one.overflow > 0);
	assert_true(one.sum == both.sum);
	plx_hist_reset(&one);
	assert_int_equal(one.count, 0);
	assert_int_equal(one.overflow, 0);
	assert_int_equal(plx_hist_quantile(&one, 0.5), 0);
	assert_true(plx_hist_mean(&one) == 0 && plx_hist_stddev(&one) == 0);
	plx_hist_fini(&one);
	plx_hist_fini(&two);
	plx_hist_fini(&both);
	free(values);
}

PLX_TEST(bad_sizes_and_other_layouts_are_refused)
{
	struct plx_hist hist = {0};

	assert_fails(plx_hist_init(&hist, 1000, 0), -EINVAL,
		     "0 significant digits asked, 1 to 4 allowed");
	assert_fails(plx_hist_init(&hist, 1000, 5), -EINVAL,
		     "5 significant digits asked, 1 to 4 allowed");
	assert_fails(plx_hist_init(&hist, 0, 3), -EINVAL, "highest value 0");
	assert_null(hist.buckets);
	struct plx_hist two = hist_of(1000, 2), three = hist_of(1000, 3);
	assert_fails(plx_hist_add(&three, &two), -EINVAL,
		     "3 digits up to 1000, and 2 digits up to 1000");
	plx_hist_fini(&two);
	plx_hist_fini(&three);
}

PLX_TEST_MAIN()
