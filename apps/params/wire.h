/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol of plx-params. All numbers are little-endian. A record is a parameter, as in
 * replies and in publications:
 *
 *     0 revision (64 bits), 8 id (64), 16 start of the alarm state (64, ns since 1970 UTC),
 *     24 type, 25 alarm state, 26 alarm level (signed), 27 length of the unit, 28 length of the
 *     name (16), 30 length of a text value (16), 32 flags (16), 34 zero (48), 40 value of a number
 *     (64), 48 limits that are set (64 each), unit, name, text
 *
 * Records are rejected if zero fields are not zero, or if a text has a number.
 *
 *     get      the name
 *              reply: a record
 *     set      0 flags, 1 to 7 zero, 8 expected revision (64; else zero), a record: its name and
 *              value; a text is parsed as the parameter's type
 *              reply: the new revision (64)
 *     define   as set: all but the record's revision, id and alarm
 *     remove   as set: the record's name
 *     ack      as remove
 *     list     0 flags, 1 zero, 2 length of the prefix (16), prefix, the name after which to
 *              continue
 *              reply: 0 whether there are more, 1 zero, 2 length of the name after which to
 *              continue (16), 4 zero (32), that name, and records, each after its length (16)
 *     watch    nothing
 *              reply: the port where changes are published (16), by NetIO: records, whose
 *              tags are ids */
#ifndef WIRE_H
#define WIRE_H

#include "param.h"

/** Method ids, "par" and a byte. Other services do not have them by accident, and a client that
 * reaches one gets an error. Ids never change. */
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

/** Error codes, each with a text for people. */
enum params_error {
	PARAMS_NO_SUCH = 1, /**< unknown parameter */
	PARAMS_BAD,         /**< invalid request */
	PARAMS_BEYOND,      /**< the value is out of range */
	PARAMS_CHANGED,     /**< its revision differs from the expected one */
	PARAMS_NOT_WRITTEN, /**< changed, but not on the disk: lost at the next start */
};

#define WIRE_DURABLE     0x01 /* set, define, remove, ack: reply once it is on the disk */
#define WIRE_EXPECT      0x02 /* ... only if the revision matches */
#define WIRE_ALARMS      0x01 /* list: only parameters with an alarm */

#define WIRE_RECORD_MAX  (48 + 8 * LIMIT_COUNT + PARAM_UNIT_MAX + PARAM_NAME_MAX + PARAM_TEXT_MAX)
#define WIRE_ORDER_BYTES 16 /* before the record */
#define WIRE_ORDER_MAX   (WIRE_ORDER_BYTES + WIRE_RECORD_MAX)
#define WIRE_LIST_BYTES  4
#define WIRE_PAGE_BYTES  8 /* before a page's name and records */
#define WIRE_PAGE_MAX    (48u << 10)

/** A request of set, define, remove or ack. */
struct order {
	uint8_t flags;
	uint64_t expected;
	struct param param;
};

struct list_order {
	uint8_t flags;
	const char *prefix, *after;
	uint32_t prefix_length, after_length;
};

/** Write a record; out: WIRE_RECORD_MAX bytes. Return: its length. */
size_t record_write(const struct param *param, uint8_t *out);

/** Parse and check a record; name and text point into it. Return: NULL, or what is wrong. */
const char *record_read(const uint8_t *in, size_t length, struct param *out);

/** Return: its length; out: WIRE_ORDER_MAX bytes. */
size_t order_write(const struct order *order, uint8_t *out);
const char *order_read(const uint8_t *in, size_t length, struct order *out);

/** Return: its length; out: WIRE_LIST_BYTES, prefix and name. */
size_t list_write(const struct list_order *order, uint8_t *out);
const char *list_read(const uint8_t *in, size_t length, struct list_order *out);

/** A page being built. */
struct page {
	uint8_t *bytes; /**< WIRE_PAGE_MAX */
	size_t used;    /**< at first WIRE_PAGE_BYTES */
};

/** Return: whether there was room. */
bool page_add(struct page *page, const struct param *param);
/** Finish the page. after: the last parameter scanned; NULL: there are no more. Return: its
 * length. */
size_t page_end(struct page *page, const struct param *after);

/** Where a list continues: after that name. Zeroed: at the beginning. */
struct list_place {
	char name[PARAM_NAME_MAX];
	uint32_t length;
};

/** Parse a page that started at `place`, and set where the next one continues, if there are more.
 * *offset_out: where its records begin. Return: NULL, or what is wrong. */
const char *page_read(const uint8_t *in, size_t length, struct list_place *place, bool *more_out,
		      size_t *offset_out);
/** Parse the record at *offset and advance. Return: whether there is one; if not, *wrong_out is
 * NULL at the end. */
bool page_next(const uint8_t *in, size_t length, size_t *offset, struct param *out,
	       const char **wrong_out);

#endif
