/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4, with the names of its paper: see plx_base.h. */
#include "plx_base.h"

#include <endian.h>
#include <string.h>

static uint64_t rotate_left(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static void rounds(uint64_t v[4], unsigned count)
{
	while (count--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate_left(v[1], 13) ^ v[0];
		v[3] = rotate_left(v[3], 16) ^ v[2];
		v[0] = rotate_left(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate_left(v[1], 17) ^ v[2];
		v[3] = rotate_left(v[3], 21) ^ v[0];
		v[2] = rotate_left(v[2], 32);
	}
}

static void compress(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

/* Up to eight bytes, little-endian. */
static uint64_t word_at(const uint8_t *data, size_t length)
{
	uint64_t word = 0;

	memcpy(&word, data, length);
	return le64toh(word);
}

uint64_t plx_siphash(const struct plx_siphash_key *key, const void *data, size_t length)
{
	/* The constants spell "somepseudorandomlygeneratedbytes". */
	uint64_t v[4] = {
		key->k0 ^ UINT64_C(0x736f6d6570736575),
		key->k1 ^ UINT64_C(0x646f72616e646f6d),
		key->k0 ^ UINT64_C(0x6c7967656e657261),
		key->k1 ^ UINT64_C(0x7465646279746573),
	};
	const uint8_t *at = data, *whole_end = at + length / 8 * 8;

	for (; at < whole_end; at += 8)
		compress(v, word_at(at, 8));
	compress(v, (uint64_t)length << 56 | word_at(at, length % 8));
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
