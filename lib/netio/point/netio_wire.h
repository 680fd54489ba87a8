/* SPDX-License-Identifier: BSD-3-Clause */
/* The NetIO wire format. All numbers are little-endian; doc/design/netio-wire.md has the reasons. A
 * greeting, and the start of each message of the link:
 *
 *     greeting   0 type, 1 minimum and 2 maximum version, 3 role, 4 "NtIO",
 *                8 longest message accepted (64 bits); of publishers and subscribers also
 *                16 the publisher's incarnation, 24 its start time, or the subscriber's id,
 *                32 messages of that publisher that the subscriber got or knows it missed
 *     message    0 type, 1 to 7 zero, 8 tag (64 bits), 16 payload
 *     page       0 type, 1 why and 2 to 7 how many messages were lost before it (48 bits),
 *                8 entries, each at a multiple of 8
 *     request    0 type, 1 to 7 zero, 8 entries of 32 bytes: 0 id (32 bits), 4 kind, 5 delivery,
 *                6 policy, 7 zero, 8 first tag or value, 16 last tag or mask, 24 backlog limit
 *                in bytes
 *     answer     0 type, 1 to 7 zero, 8 entries of 8 bytes: 0 id (32 bits), 4 status, 5 to 7 zero
 *     entry      0 length (32 bits), 4 flags, 5 to 7 zero, [tag], payload, padding to a multiple
 *                of 8
 *
 * Greetings are the private data of the link's HELLOs: the connecting side sends HELLO, the
 * accepting side answers WELCOME. Subscribers send requests, and get one answer per entry. A
 * message longer than a page gets a page to itself, as long as needed. */
#ifndef NETIO_WIRE_H
#define NETIO_WIRE_H

#include "bytes.h"
#include "netio_pubsub.h"

#define WIRE_VERSION_MIN    3 /* in version 2, messages longer than a page were split */
#define WIRE_VERSION_MAX    3

#define WIRE_GREETING_BYTES 16
#define WIRE_PUBSUB_BYTES   40 /* of a greeting with the fields of publishers and subscribers */
#define WIRE_MESSAGE_BYTES  16 /* of the header */
#define WIRE_PAGE_BYTES     8
#define WIRE_ENTRY_BYTES    8
/* A message of one page's size fits into one page with its headers and padding (32 bytes). A
 * message of n times that fits into n pages, filled in whole cache lines. */
#define WIRE_PAGE_OVERHEAD     64

#define WIRE_MESSAGE_MAX_LEAST 256                          /* minimum that a side may announce */
#define WIRE_MESSAGE_MAX_LIMIT ((UINT64_C(1) << 30) - 4096) /* leaves room in links for headers */

enum wire_type { WIRE_HELLO = 1, WIRE_WELCOME, WIRE_MESSAGE, WIRE_PAGE, WIRE_REQUEST, WIRE_ANSWER };

/* The purpose of the connecting side; the answer states the role wanted. */
enum wire_role { WIRE_SENDER = 1, WIRE_SUBSCRIBER };

#define WIRE_TAG 1 /* flag of an entry: a tag follows the header */

struct wire_greeting {
	uint8_t type, version_min, version_max, role;
	uint64_t message_max;
	uint64_t incarnation; /* HELLO: that the subscriber knows; 0: none */
	union {
		uint64_t started_ns; /* WELCOME: CLOCK_REALTIME */
		uint64_t id;         /* HELLO: of the subscriber, random; 0: it has none */
	};
	uint64_t number; /* HELLO */
};

/* Return: its length. */
uint32_t wire_greeting_write(uint8_t out[WIRE_PUBSUB_BYTES], const struct wire_greeting *greeting);

/* Make it the private data of a link's HELLO; its versions are filled in. */
void wire_greet(struct plx_link_attr *attr, const struct wire_greeting *greeting);
/* Read that of the peer's HELLO. Return: NULL; or the error as text. */
const char *wire_peer_greeting(const struct plx_link *link, enum wire_type type,
			       struct wire_greeting *out);
const char *wire_greeting_read(const uint8_t *in, size_t size, enum wire_type type,
			       struct wire_greeting *out);
/* The error text when a socket accepts only `role`. */
const char *wire_wrong_role(uint8_t role);

/* Messages ----------------------------------------------------------------------------------- */

static inline void wire_message_write(uint8_t out[WIRE_MESSAGE_BYTES], uint64_t tag)
{
	put64(out, WIRE_MESSAGE); /* and seven zero bytes */
	put64(out + 8, tag);
}

/* Pages -------------------------------------------------------------------------------------- */

static inline uint64_t wire_round_up(uint64_t bytes)
{
	return (bytes + 7) & ~UINT64_C(7);
}

/* Bytes that an entry takes in a page. */
static inline uint64_t wire_entry_bytes(uint64_t length, uint8_t flags)
{
	return WIRE_ENTRY_BYTES + (flags & WIRE_TAG ? 8 : 0) + wire_round_up(length);
}

/* Write an entry's header. Return: where the payload goes. */
static inline uint8_t *wire_entry_begin(uint8_t *out, uint32_t length, uint8_t flags, uint64_t tag)
{
	put64(out, length | (uint64_t)flags << 32);
	if (!(flags & WIRE_TAG))
		return out + WIRE_ENTRY_BYTES;
	put64(out + WIRE_ENTRY_BYTES, tag);
	return out + WIRE_ENTRY_BYTES + 8;
}

/* Zero the padding before the end of the payload is written: it must not leak old contents. */
static inline void wire_entry_pad(uint8_t *out, uint64_t length)
{
	if (length % 8)
		put64(out + length / 8 * 8, 0);
}

struct wire_entry {
	const uint8_t *payload;
	uint32_t length;
	uint64_t tag; /* 0: none */
};

/* Read the entry at *at, before `end`, and move *at past it. Return: NULL; or the error as text. */
static inline const char *wire_entry_read(const uint8_t **at, const uint8_t *end,
					  struct wire_entry *out)
{
	size_t left = (size_t)(end - *at);
	const uint8_t *in = *at;
	uint64_t word;
	uint8_t flags;

	if (plx_unlikely(left < WIRE_ENTRY_BYTES))
		return "an entry without a header";
	word = get64(in);
	flags = (uint8_t)(word >> 32);
	if (plx_unlikely(word >> 32 & ~(uint64_t)WIRE_TAG))
		return "an entry with unknown flags";
	if (plx_unlikely(wire_entry_bytes((uint32_t)word, flags) > left))
		return "an entry that is longer than its page";
	*out = (struct wire_entry){.length = (uint32_t)word};
	in += WIRE_ENTRY_BYTES;
	if (flags & WIRE_TAG) {
		out->tag = get64(in);
		in += 8;
	}
	out->payload = in;
	*at = in + wire_round_up(out->length);
	return NULL;
}

/* Messages that a publisher did not send; reasons: a set of enum netio_gap_reason. */
struct wire_gap {
	uint64_t count; /* 0: none */
	uint8_t reasons;
};

#define WIRE_GAP_COUNT_MAX ((UINT64_C(1) << 48) - 1)

static inline void wire_gap_widen(struct wire_gap *gap, uint64_t count, uint32_t reasons)
{
	uint64_t room = WIRE_GAP_COUNT_MAX - gap->count;

	gap->count += count < room ? count : room;
	if (count)
		gap->reasons |= (uint8_t)reasons;
}

/* gap: before the page's contents. */
static inline void wire_page_write(uint8_t out[WIRE_PAGE_BYTES], const struct wire_gap *gap)
{
	put64(out, WIRE_PAGE | (uint64_t)gap->reasons << 8 | gap->count << 16);
}

static inline struct wire_gap wire_page_gap(const uint8_t in[WIRE_PAGE_BYTES])
{
	uint64_t word = get64(in);

	return (struct wire_gap){.count = word >> 16, .reasons = (uint8_t)(word >> 8)};
}

/* Check the start of a page. With a gap it may have no entries. Return: NULL; the error as text. */
const char *wire_page_read(const uint8_t *in, size_t size, struct wire_gap *gap_out);

/* Subscriptions ------------------------------------------------------------------------------ */

#define WIRE_LIST_BYTES    8 /* in front of requests and answers */
#define WIRE_REQUEST_BYTES 32
#define WIRE_ANSWER_BYTES  8
#define WIRE_LIST_MAX      100 /* entries of one message */

enum wire_kind { WIRE_SUBSCRIBE_RANGE = 1, WIRE_SUBSCRIBE_MASK, WIRE_UNSUBSCRIBE };

enum wire_status {
	WIRE_SUBSCRIBED = 1,
	WIRE_UNSUBSCRIBED,
	WIRE_UNKNOWN,   /* answer to WIRE_UNSUBSCRIBE: unknown id */
	WIRE_TOO_MANY,  /* refused: too many subscriptions */
	WIRE_TOO_MASKS, /* refused: too many different masks */
	WIRE_NO_MEMORY, /* refused */
	WIRE_NO_BLOCK,  /* refused: the policy would block the publisher */
	WIRE_RESUMED,   /* subscribed, and all that was missed since it was lost is in gaps */
	WIRE_STATUS_COUNT,
};

struct wire_request {
	uint32_t id; /* chosen by the subscriber; in use until the answer to WIRE_UNSUBSCRIBE */
	uint8_t kind;
	struct netio_subscription what; /* in WIRE_UNSUBSCRIBE, all is 0 */
};

/* The last tag of its range. */
static inline netio_tag_t subscription_last(const struct netio_subscription *what)
{
	return what->last ?: what->tag;
}

struct wire_answer {
	uint32_t id;
	uint8_t status;
};

void wire_list_write(uint8_t out[WIRE_LIST_BYTES], enum wire_type type);
void wire_request_write(uint8_t out[WIRE_REQUEST_BYTES], const struct wire_request *request);
void wire_answer_write(uint8_t out[WIRE_ANSWER_BYTES], const struct wire_answer *answer);
/* Return the number of entries of that size in *count_out. Return: NULL; or the error as text. */
const char *wire_list_read(const uint8_t *in, size_t size, enum wire_type type, size_t entry_bytes,
			   uint32_t *count_out);
/* Return: NULL; or the error as text. */
const char *wire_request_read(const uint8_t in[WIRE_REQUEST_BYTES], struct wire_request *out);
const char *wire_answer_read(const uint8_t in[WIRE_ANSWER_BYTES], struct wire_answer *out);

#endif
