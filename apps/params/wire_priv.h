/* SPDX-License-Identifier: BSD-3-Clause */
/* Little-endian numbers and bytes at any alignment. */
#ifndef WIRE_PRIV_H
#define WIRE_PRIV_H

#include "wire.h"

#include <endian.h>
#include <string.h>

static inline void put16(uint8_t *out, uint32_t value)
{
	uint16_t little = htole16((uint16_t)value);

	memcpy(out, &little, sizeof(little));
}

static inline void put32(uint8_t *out, uint32_t value)
{
	uint32_t little = htole32(value);

	memcpy(out, &little, sizeof(little));
}

static inline void put64(uint8_t *out, uint64_t value)
{
	uint64_t little = htole64(value);

	memcpy(out, &little, sizeof(little));
}

static inline uint32_t get16(const uint8_t *in)
{
	uint16_t little;

	memcpy(&little, in, sizeof(little));
	return le16toh(little);
}

static inline uint32_t get32(const uint8_t *in)
{
	uint32_t little;

	memcpy(&little, in, sizeof(little));
	return le32toh(little);
}

static inline uint64_t get64(const uint8_t *in)
{
	uint64_t little;

	memcpy(&little, in, sizeof(little));
	return le64toh(little);
}

static inline void put_number(uint8_t *out, const struct param_value *value)
{
	uint64_t bits = 0;

	if (value->type == PARAM_REAL)
		memcpy(&bits, &value->real, sizeof(bits));
	else if (value->type != PARAM_TEXT)
		bits = (uint64_t)value->integer;
	put64(out, bits);
}

static inline struct param_value get_number(const uint8_t *in, enum param_type type)
{
	struct param_value value = {.type = type};
	uint64_t bits = get64(in);

	if (type == PARAM_REAL)
		memcpy(&value.real, &bits, sizeof(bits));
	else
		value.integer = (int64_t)bits;
	return value;
}

static inline uint8_t *put_bytes(uint8_t *out, const void *bytes, size_t length)
{
	if (length)
		memcpy(out, bytes, length);
	return out + length;
}

/** Fields that must be zero may get a meaning later. */
static inline bool is_zero(const uint8_t *in, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (in[i])
			return false;
	}
	return true;
}

#endif
