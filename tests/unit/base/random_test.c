/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, the keyed hash, and the random times between attempts. */
#include "plx_test.h"

PLX_TEST(random_numbers_differ)
{
	struct plx_siphash_key keys[2] = {0};

	plx_random(keys, sizeof(keys));
	assert_int_not_equal(keys[0].k0, keys[1].k0);
	assert_int_not_equal(keys[0].k1, keys[1].k1);
	assert_int_not_equal(plx_random_id(), plx_random_id());
}

/* Key 00 01 ... 0f, input 00 01 02 ...: from the authors' paper (15 bytes) and reference vectors,
 * https://github.com/veorq/SipHash, vectors.h. */
PLX_TEST(siphash_agrees_with_the_reference_vectors)
{
	static const struct {
		size_t length;
		uint64_t hash;
	} vectors[] = {
		{0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
		{7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
		{15, UINT64_C(0xa129ca6149be45e5)}, {16, UINT64_C(0x3f2acc7f57c29bdb)},
		{63, UINT64_C(0x958a324ceb064572)},
	};
	const struct plx_siphash_key key = {UINT64_C(0x0706050403020100),
					    UINT64_C(0x0f0e0d0c0b0a0908)};
	uint8_t input[64];

	for (size_t i = 0; i < sizeof(input); i++)
		input[i] = (uint8_t)i;
	for (size_t i = 0; i < PLX_ARRAY_LEN(vectors); i++)
		assert_int_equal(plx_siphash(&key, input, vectors[i].length), vectors[i].hash);
}

/* The greatest of many delays after that many attempts. */
static uint64_t greatest(unsigned attempts)
{
	struct plx_backoff backoff;
	uint64_t most = 0;

	for (uint64_t seed = 1; seed <= 2000; seed++) {
		uint64_t last = 0;

		plx_backoff_init(&backoff, 10, 1000, seed * UINT64_C(0x9e3779b97f4a7c15));
		for (unsigned i = 0; i <= attempts; i++)
			last = plx_backoff_next_ns(&backoff);
		if (last > most)
			most = last;
	}
	return most;
}

PLX_TEST(each_attempt_doubles_the_range_and_a_success_resets_it)
{
	struct plx_backoff backoff;

	assert_int_equal(greatest(0), 10);
	assert_true(greatest(1) <= 20 && greatest(1) > 15);
	assert_true(greatest(3) <= 80 && greatest(3) > 70);
	assert_true(greatest(60) <= 1000 && greatest(60) > 990);
	plx_backoff_init(&backoff, 10, 1000, 0); /* a valid seed */
	for (unsigned i = 0; i < 50; i++) {
		plx_backoff_reset(&backoff);
		assert_true(plx_backoff_next_ns(&backoff) <= 10);
	}
}

PLX_TEST(the_longest_ranges_do_not_overflow)
{
	struct plx_backoff backoff;

	plx_backoff_init(&backoff, UINT64_MAX, UINT64_MAX, 7);
	for (unsigned i = 0; i < 100; i++)
		assert_true(plx_backoff_next_ns(&backoff) > 0);
	plx_backoff_init(&backoff, 1, UINT64_MAX, 7);
	for (unsigned i = 0; i < 100; i++)
		plx_backoff_next_ns(&backoff);
	assert_true(plx_backoff_next_ns(&backoff) > UINT64_MAX >> 20);
}

/* The greatest of many delays after refusals on the same host. */
static uint64_t greatest_same_host(struct plx_backoff *backoff)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < 1000; i++) {
		uint64_t next = plx_backoff_next_same_host_ns(backoff);

		most = next > most ? next : most;
	}
	return most;
}

PLX_TEST(the_range_stays_short_after_a_refusal_on_the_same_host)
{
	struct plx_backoff backoff;

	plx_backoff_init(&backoff, PLX_RECONNECT_MIN_NS, PLX_RECONNECT_MAX_NS, 7);
	assert_true(plx_backoff_next_same_host_ns(&backoff) <= PLX_RECONNECT_MIN_NS);
	assert_in_range(greatest_same_host(&backoff), PLX_RECONNECT_SAME_HOST_NS * 9 / 10,
			PLX_RECONNECT_SAME_HOST_NS);
	/* Nor did they lengthen the following ones. */
	assert_true(plx_backoff_next_ns(&backoff) <= 2 * PLX_RECONNECT_SAME_HOST_NS);
}

PLX_TEST_MAIN()
