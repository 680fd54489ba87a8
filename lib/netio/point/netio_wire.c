/* SPDX-License-Identifier: BSD-3-Clause */
#include "netio_wire.h"

/* The wire uses the numbers of the API's enums. */
#define GAP_REASONS (NETIO_GAP_BIT(NETIO_GAP_LOST + 1) - 2)

#define MAGIC       UINT64_C(0x4f49744e) /* "NtIO" */

uint32_t wire_greeting_write(uint8_t out[WIRE_PUBSUB_BYTES], const struct wire_greeting *greeting)
{
	put64(out, greeting->type | (uint64_t)greeting->version_min << 8 |
			   (uint64_t)greeting->version_max << 16 | (uint64_t)greeting->role << 24 |
			   MAGIC << 32);
	put64(out + 8, greeting->message_max);
	if (!greeting->incarnation && !greeting->id)
		return WIRE_GREETING_BYTES;
	put64(out + 16, greeting->incarnation);
	put64(out + 24, greeting->id);
	put64(out + 32, greeting->number);
	return WIRE_PUBSUB_BYTES;
}

void wire_greet(struct plx_link_attr *attr, const struct wire_greeting *greeting)
{
	struct wire_greeting whole = *greeting;

	whole.version_min = WIRE_VERSION_MIN;
	whole.version_max = WIRE_VERSION_MAX;
	attr->protocol = PLX_PROTOCOL_NETIO;
	attr->hello_length = wire_greeting_write(attr->hello, &whole);
}

const char *wire_greeting_read(const uint8_t *in, size_t size, enum wire_type type,
			       struct wire_greeting *out)
{
	/* Longer ones are from later versions, which may add fields. */
	if (size < WIRE_GREETING_BYTES || get64(in) >> 32 != MAGIC || in[0] != type)
		return "the HELLO is not NetIO's";
	*out = (struct wire_greeting){
		.type = in[0],
		.version_min = in[1],
		.version_max = in[2],
		.role = in[3],
		.message_max = get64(in + 8),
	};
	if (out->version_min > out->version_max || out->version_min > WIRE_VERSION_MAX ||
	    out->version_max < WIRE_VERSION_MIN)
		return "there is no version of NetIO's protocol that both sides know";
	if (out->role != WIRE_SENDER && out->role != WIRE_SUBSCRIBER)
		return "the HELLO is of another kind of socket";
	if (out->message_max < WIRE_MESSAGE_MAX_LEAST || out->message_max > WIRE_MESSAGE_MAX_LIMIT)
		return "the longest message is out of range";
	if (size >= WIRE_PUBSUB_BYTES) {
		out->incarnation = get64(in + 16);
		out->id = get64(in + 24);
		out->number = get64(in + 32);
	}
	if (out->number > WIRE_GAP_COUNT_MAX)
		return "the number of messages is out of range";
	return NULL;
}

const char *wire_peer_greeting(const struct plx_link *link, enum wire_type type,
			       struct wire_greeting *out)
{
	uint32_t length;
	const uint8_t *hello = plx_link_hello(link, &length);

	return wire_greeting_read(hello, length, type, out);
}

const char *wire_wrong_role(uint8_t role)
{
	return role == WIRE_SUBSCRIBER ? "the port is a publish socket's, which is subscribed to"
				       : "the port is a listening socket's, which takes messages "
					 "and publishes none";
}

const char *wire_page_read(const uint8_t *in, size_t size, struct wire_gap *gap_out)
{
	if (size < WIRE_PAGE_BYTES)
		return "a page without a header";
	*gap_out = wire_page_gap(in);
	if (gap_out->reasons & ~GAP_REASONS || !gap_out->reasons != !gap_out->count)
		return "a page with a gap that makes no sense";
	if (size == WIRE_PAGE_BYTES && !gap_out->count)
		return "a page without entries";
	return NULL;
}

void wire_list_write(uint8_t out[WIRE_LIST_BYTES], enum wire_type type)
{
	put64(out, type);
}

void wire_request_write(uint8_t out[WIRE_REQUEST_BYTES], const struct wire_request *request)
{
	const struct netio_subscription *what = &request->what;

	put64(out, request->id | (uint64_t)request->kind << 32 | (uint64_t)what->delivery << 40 |
			   (uint64_t)what->policy << 48);
	put64(out + 8, what->tag);
	put64(out + 16,
	      request->kind == WIRE_SUBSCRIBE_MASK ? what->mask : subscription_last(what));
	put64(out + 24, what->backlog_bytes);
}

void wire_answer_write(uint8_t out[WIRE_ANSWER_BYTES], const struct wire_answer *answer)
{
	put64(out, answer->id | (uint64_t)answer->status << 32);
}

const char *wire_list_read(const uint8_t *in, size_t size, enum wire_type type, size_t entry_bytes,
			   uint32_t *count_out)
{
	size_t bytes = size - WIRE_LIST_BYTES;

	if (size < WIRE_LIST_BYTES || get64(in) != type)
		return "what a subscriber and a publisher do not say";
	if (bytes == 0 || bytes % entry_bytes || bytes / entry_bytes > WIRE_LIST_MAX)
		return "a list of requests or answers of a wrong length";
	*count_out = (uint32_t)(bytes / entry_bytes);
	return NULL;
}

const char *wire_request_read(const uint8_t in[WIRE_REQUEST_BYTES], struct wire_request *out)
{
	uint64_t word = get64(in), first = get64(in + 8), last = get64(in + 16);
	uint8_t kind = (uint8_t)(word >> 32), delivery = (uint8_t)(word >> 40);
	uint8_t policy = (uint8_t)(word >> 48);

	out->id = (uint32_t)word;
	out->kind = kind;
	out->what = (struct netio_subscription){
		.tag = first,
		.last = kind == WIRE_SUBSCRIBE_RANGE && last != first ? last : 0,
		.mask = kind == WIRE_SUBSCRIBE_MASK ? last : 0,
		.delivery = delivery,
		.policy = policy,
		.backlog_bytes = get64(in + 24),
	};
	if (kind < WIRE_SUBSCRIBE_RANGE || kind > WIRE_UNSUBSCRIBE ||
	    delivery > NETIO_DELIVERY_BUFFERED || policy >= NETIO_POLICY_COUNT || word >> 56)
		return "a request that is unknown";
	if (kind == WIRE_SUBSCRIBE_MASK && (first & ~last || last == 0))
		return "a request for a mask that is 0, or leaves out bits of its value";
	if (kind == WIRE_SUBSCRIBE_RANGE && first > last)
		return "a request for a range whose last tag is less than its first";
	if (kind == WIRE_UNSUBSCRIBE && (first || last || word >> 40 || out->what.backlog_bytes))
		return "a request to unsubscribe that says more";
	return NULL;
}

const char *wire_answer_read(const uint8_t in[WIRE_ANSWER_BYTES], struct wire_answer *out)
{
	uint64_t word = get64(in);

	*out = (struct wire_answer){.id = (uint32_t)word, .status = (uint8_t)(word >> 32)};
	if (word >> 40 || out->status < WIRE_SUBSCRIBED || out->status >= WIRE_STATUS_COUNT)
		return "an answer that is unknown";
	return NULL;
}
