/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, and the keyed hash. */
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

PLX_TEST_MAIN()
