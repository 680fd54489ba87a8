/* SPDX-License-Identifier: BSD-3-Clause */
/* What plx-params says to its clients and they to it. All numbers are little-endian. A record is a
 * parameter as it is in replies, in what is published, and on its way to the disk:
 *
 *     0 revision (64 bits), 8 id (64), 16 since when the alarm is what it is (64, ns since 1970
 * UTC), 24 type, 25 state of the alarm, 26 its level (signed), 27 bytes of the unit, 28 bytes of
 * the name (16), 30 bytes of a text value (16), 32 flags (16), 34 zero (48), 40 value of a number
 * (64), 48 limits that there are (64 each), unit, name, text
 *
 * What is zero, or is of a number where there is a text, is not taken if it is not zero.
 *
 *     get      the name
 *              reply: a record
 *     set      0 flags, 1 type (0: a text, read as what the parameter is),
 *              2 bytes of the name (16), 4 zero (32), 8 revision that is expected (64; else zero),
 *              16 value of a number (64), name, text
 *              reply: the new revision (64)
 *     define   0 flags, 1 to 7 zero, a record: its revision, id and alarm are not looked at
 *              reply: the new revision (64)
 *     remove   0 flags, 1 to 7 zero, the name
 *              reply: the revision of that (64)
 *     ack      the same
 *     list     0 flags, 1 zero, 2 bytes of the prefix (16), prefix, the name behind which to
 *              go on
 *              reply: 0 whether there are more, 1 zero, 2 bytes of the name behind which to
 *              go on (16), 4 zero (32), that name, and records, each behind its length (16)
 *     watch    nothing
 *              reply: the port where changes are published (16), by NetIO: records, whose
 *              tags are ids */
#ifndef WIRE_H
#define WIRE_H

#include "param.h"

#include <sys/uio.h>

/** Their ids, "par" and a byte: a service of something else has none of them by accident, and a
 * client that reaches one is told so. Once given they stay. */
#define PARAMS_METHODS 0x70617200u

enum params_method {
	PARAMS_GET = PARAMS_METHODS + 1,
	PARAMS_SET,
	PARAMS_DEFINE,
	PARAMS_REMOVE,
	PARAMS_ACK,
	PARAMS_LIST,
	PARAMS_WATCH,
};

/** Codes of errors, each with a text for people. */
enum params_error {
	PARAMS_NO_SUCH = 1, /**< no such parameter */
	PARAMS_BAD,         /**< the request is wrong */
	PARAMS_BEYOND,      /**< the value is beyond the parameter's limits */
	PARAMS_CHANGED,     /**< it has another revision than was expected */
	PARAMS_NOT_WRITTEN, /**< it was changed, and is not on the disk: a start does not know it */
};

#define WIRE_DURABLE     0x01 /* set, define, remove, ack: reply when it is on the disk */
#define WIRE_EXPECT      0x02 /* set: only if it has that revision */
#define WIRE_ALARMS      0x01 /* list: those that have an alarm */

#define WIRE_RECORD_MAX  (48 + 8 * LIMIT_COUNT + PARAM_UNIT_MAX + PARAM_NAME_MAX + PARAM_TEXT_MAX)
#define WIRE_ORDER_BYTES 8
#define WIRE_SET_BYTES   24
#define WIRE_LIST_BYTES  4
#define WIRE_PAGE_BYTES  8 /* before the name and the records of a page */
#define WIRE_PAGE_MAX    (48u << 10)

struct set_order {
	uint8_t flags;
	uint64_t expected;
	const char *name;
	uint32_t name_length;
	bool is_typed; /* else the value is a text, to be read as what the parameter is */
	struct param_value value; /* its text points into the request */
};

struct order {
	bool is_durable;
	const uint8_t *rest; /* a record, or a name, in the request */
	uint32_t length;
};

struct list_order {
	uint8_t flags;
	const char *prefix, *after;
	uint32_t prefix_length, after_length;
};

/** Write a record: WIRE_RECORD_MAX bytes of room. removed: of one that is no more. Return: its
 * length. */
size_t record_write(const struct param *param, bool removed, uint8_t *out);

/** Read and check one: name and text point into it. Return: NULL, or what is wrong. */
const char *record_read(const uint8_t *in, size_t length, struct param *out, bool *removed_out);

/** Return: its length; room for WIRE_SET_BYTES, name and text. */
size_t set_write(const struct set_order *order, uint8_t *out);
const char *set_read(const uint8_t *in, size_t length, struct set_order *out);

/** Of define, remove and ack: what it is about is not looked at. */
const char *order_read(const uint8_t *in, size_t length, struct order *out);

/** What an order to define is about. */
const char *define_read(const struct order *order, struct param *out);

/** Return: its length; room for WIRE_LIST_BYTES, prefix and name. */
size_t list_write(const struct list_order *order, uint8_t *out);
const char *list_read(const uint8_t *in, size_t length, struct list_order *out);

/** A page in the making: WIRE_PAGE_MAX bytes at `bytes`, of which the first ones are left for its
 * head. */
struct page {
	uint8_t *bytes;
	size_t used;
};

void page_begin(struct page *page, uint8_t *bytes);
/** Return: whether there was room for it. */
bool page_add(struct page *page, const struct param *param);
/** The bytes to be sent. after: the last one that was looked at; NULL: there are no more. */
struct iovec page_end(struct page *page, const struct param *after);

/** Where a list goes on: after that name. Zeroed: at its beginning. */
struct list_place {
	char name[PARAM_NAME_MAX];
	uint32_t length;
};

/** A page that has come from that place on, and where the next one goes on, if there is more.
 * *offset_out is where its records begin. Return: NULL, or what is wrong. */
const char *page_read(const uint8_t *in, size_t length, struct list_place *place, bool *more_out,
		      size_t *offset_out);
/** The record at *offset, and the offset of the next one. Return: whether there is one; if not,
 * *wrong_out is NULL at the end. */
bool page_next(const uint8_t *in, size_t length, size_t *offset, struct param *out,
	       const char **wrong_out);

#endif
