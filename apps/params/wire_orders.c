/* SPDX-License-Identifier: BSD-3-Clause */
/* Encoding and decoding client requests. */
#include "wire_priv.h"

size_t set_write(const struct set_order *order, uint8_t *out)
{
	bool is_text = !order->is_typed || order->value.type == PARAM_TEXT;
	uint8_t *at = out + WIRE_SET_BYTES;

	memset(out, 0, WIRE_SET_BYTES);
	out[0] = order->flags;
	out[1] = order->is_typed ? (uint8_t)order->value.type : 0;
	put16(out + 2, order->name_length);
	put64(out + 8, order->expected);
	if (!is_text)
		put_number(out + 16, &order->value);
	at = put_bytes(at, order->name, order->name_length);
	if (is_text)
		at = put_bytes(at, order->value.text.bytes, order->value.text.length);
	return (size_t)(at - out);
}

const char *set_read(const uint8_t *in, size_t length, struct set_order *out)
{
	size_t name, rest;
	bool is_text;

	if (length < WIRE_SET_BYTES)
		return "the order is cut off";
	name = get16(in + 2);
	rest = length - WIRE_SET_BYTES;
	if (name > rest)
		return "the name is longer than the order";
	if (in[0] & ~(WIRE_DURABLE | WIRE_EXPECT) || in[1] > PARAM_TEXT || !is_zero(in + 4, 4))
		return "the order has flags or a type that nobody knows";
	if (!(in[0] & WIRE_EXPECT) && !is_zero(in + 8, 8))
		return "the order has a revision, and does not expect it";
	is_text = in[1] == 0 || in[1] == PARAM_TEXT;
	if (!is_text && rest != name)
		return "there is something after the name";
	if (is_text && !is_zero(in + 16, 8))
		return "a text has a number";
	*out = (struct set_order){
		.flags = in[0],
		.expected = get64(in + 8),
		.name = (const char *)in + WIRE_SET_BYTES,
		.name_length = (uint32_t)name,
		.is_typed = in[1] != 0,
	};
	if (!is_text) {
		out->value = get_number(in + 16, in[1]);
	} else {
		out->value.type = PARAM_TEXT;
		out->value.text.bytes = out->name + name;
		out->value.text.length = (uint32_t)(rest - name);
	}
	return param_value_check(&out->value);
}

const char *order_read(const uint8_t *in, size_t length, struct order *out)
{
	if (length < WIRE_ORDER_BYTES)
		return "the order is cut off";
	if (in[0] & ~WIRE_DURABLE || !is_zero(in + 1, WIRE_ORDER_BYTES - 1))
		return "the order has flags that nobody knows";
	*out = (struct order){
		.is_durable = in[0] & WIRE_DURABLE,
		.rest = in + WIRE_ORDER_BYTES,
		.length = (uint32_t)(length - WIRE_ORDER_BYTES),
	};
	return NULL;
}

const char *define_read(const struct order *order, struct param *out)
{
	bool removed;
	const char *wrong = record_read(order->rest, order->length, out, &removed);

	if (wrong)
		return wrong;
	return removed ? "what is defined is not removed" : NULL;
}

size_t list_write(const struct list_order *order, uint8_t *out)
{
	uint8_t *at = out + WIRE_LIST_BYTES;

	out[0] = order->flags;
	out[1] = 0;
	put16(out + 2, order->prefix_length);
	at = put_bytes(at, order->prefix, order->prefix_length);
	at = put_bytes(at, order->after, order->after_length);
	return (size_t)(at - out);
}

const char *list_read(const uint8_t *in, size_t length, struct list_order *out)
{
	size_t prefix;

	if (length < WIRE_LIST_BYTES)
		return "the order is cut off";
	prefix = get16(in + 2);
	if (prefix > length - WIRE_LIST_BYTES)
		return "the prefix is longer than the order";
	if (in[0] & ~WIRE_ALARMS || in[1])
		return "the order has flags that nobody knows";
	*out = (struct list_order){
		.flags = in[0],
		.prefix = (const char *)in + WIRE_LIST_BYTES,
		.prefix_length = (uint32_t)prefix,
		.after = (const char *)in + WIRE_LIST_BYTES + prefix,
		.after_length = (uint32_t)(length - WIRE_LIST_BYTES - prefix),
	};
	return NULL;
}
