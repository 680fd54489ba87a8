/* SPDX-License-Identifier: BSD-3-Clause */
/* Little-endian numbers and bytes at any alignment. */
#ifndef WIRE_PRIV_H
#define WIRE_PRIV_H

#include "bytes.h"
#include "wire.h"

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
