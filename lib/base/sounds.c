/* SPDX-License-Identifier: BSD-3-Clause */
/* Guess the protocol of an unknown peer from its first bytes. */
#include "base_internal.h"

#include <string.h>

struct sound {
	const char *name, *bytes;
	uint8_t at;    /* offset of the bytes */
	uint8_t first; /* byte at offset 0 if the bytes are elsewhere; 0: any */
};

static const struct sound sounds[] = {
	{"HTTP", "GET ", 0, 0},
	{"HTTP", "POST ", 0, 0},
	{"HTTP", "PUT ", 0, 0},
	{"HTTP", "HEAD ", 0, 0},
	{"HTTP", "DELETE ", 0, 0},
	{"HTTP", "OPTIONS ", 0, 0},
	{"HTTP", "PATCH ", 0, 0},
	{"HTTP", "CONNECT ", 0, 0},
	{"HTTP", "TRACE ", 0, 0},
	{"HTTP", "PRI * HTTP/2", 0, 0}, /* RFC 9113, 3.4 */
	{"HTTP", "HTTP/", 0, 0},
	{"HTTP", "<!DOCTYPE HTML", 0, 0},    /* how Python's server answers an invalid request */
	{"TLS", "\x16\x03", 0, 0},           /* a handshake record: RFC 8446, 5.1 */
	{"TLS", "\x15\x03", 0, 0},           /* an alert */
	{"SSH", "SSH-", 0, 0},               /* RFC 4253, 4.2 */
	{"ZeroMQ", "\x7f", 9, 0xff},         /* the ZMTP signature */
	{"a Pollux link", "1XLP", 16, 0x01}, /* the frame type and HELLO's magic */
	{PLX_NAME_NETIO, "NtIO", 4, 0},
	{PLX_NAME_RPC, "PRPC", 0, 0},
};

static bool is_it(const struct sound *sound, const uint8_t *bytes, size_t length)
{
	size_t size = strlen(sound->bytes);

	return length >= sound->at + size && memcmp(bytes + sound->at, sound->bytes, size) == 0 &&
	       (!sound->first || bytes[0] == sound->first);
}

const char *plx_sounds_like(const void *bytes, size_t length)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(sounds); i++) {
		if (is_it(&sounds[i], bytes, length))
			return sounds[i].name;
	}
	return NULL;
}
