/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

static const uint8_t magic[4] = {'N', 't', 'I', 'O'};

void wire_greeting_write(uint8_t out[WIRE_GREETING_BYTES], const struct wire_greeting *greeting)
{
	out[0] = greeting->type;
	out[1] = greeting->version_min;
	out[2] = greeting->version_max;
	out[3] = greeting->role;
	memcpy(out + 4, magic, sizeof(magic));
	wire_put64(out + 8, greeting->message_max);
}

const char *wire_greeting_read(const uint8_t *in, size_t size, enum wire_type type,
			       struct wire_greeting *out)
{
	/* Longer ones are of later versions, which may say more. */
	if (size < WIRE_GREETING_BYTES || memcmp(in + 4, magic, sizeof(magic)) != 0 ||
	    in[0] != type)
		return "it does not speak NetIO";
	*out = (struct wire_greeting){
		.type = in[0],
		.version_min = in[1],
		.version_max = in[2],
		.role = in[3],
		.message_max = wire_get64(in + 8),
	};
	if (out->version_min > out->version_max || out->version_min > WIRE_VERSION_MAX ||
	    out->version_max < WIRE_VERSION_MIN)
		return "it speaks other versions of NetIO's protocol alone";
	if (out->role != WIRE_SENDER && out->role != WIRE_SUBSCRIBER)
		return "it is another kind of socket";
	if (out->message_max < WIRE_MESSAGE_MAX_LEAST || out->message_max > WIRE_MESSAGE_MAX_LIMIT)
		return "its longest message is out of range";
	return NULL;
}

const char *wire_message_read(const uint8_t *in, size_t size, uint64_t *tag_out)
{
	if (size < WIRE_MESSAGE_BYTES)
		return "a message without a header";
	if (wire_get64(in) != WIRE_MESSAGE)
		return "a message with unknown flags";
	*tag_out = wire_get64(in + 8);
	return NULL;
}

const char *wire_page_read(const uint8_t *in, size_t size)
{
	if (size <= WIRE_PAGE_BYTES)
		return "a page without entries";
	if (wire_get64(in) != WIRE_PAGE)
		return "a page with unknown flags";
	return NULL;
}
