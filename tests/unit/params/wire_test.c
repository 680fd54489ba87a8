/* SPDX-License-Identifier: BSD-3-Clause */
/* Records, orders and pages: written, read, and truncated anywhere. */
#include "plx_test.h"

#include "wire.h"

static struct param number(void)
{
	struct param param = {
		.name = "hv/rack1/voltage",
		.name_length = 16,
		.id = UINT64_C(5) << 32,
		.revision = UINT64_C(1) << 40,
		.kind = {.type = PARAM_REAL, .unit = "V", .latch = true},
		.value = {PARAM_REAL, .real = 1500.25},
		.alarm = {ALARM_LATCHED, -LEVEL_WARNING, UINT64_C(1) << 60},
	};

	param.kind.has[LIMIT_MAX] = param.kind.has[LIMIT_ALARM_HIGH] = true;
	param.kind.limit[LIMIT_MAX] = (struct param_value){PARAM_REAL, .real = 2000};
	param.kind.limit[LIMIT_ALARM_HIGH] = (struct param_value){PARAM_REAL, .real = 1800};
	return param;
}

static void check_same(const struct param *a, const struct param *b)
{
	assert_int_equal(a->name_length, b->name_length);
	assert_memory_equal(a->name, b->name, a->name_length);
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->revision, b->revision);
	assert_int_equal(a->alarm.state, b->alarm.state);
	assert_int_equal(a->alarm.level, b->alarm.level);
	assert_int_equal(a->alarm.since_ns, b->alarm.since_ns);
	assert_int_equal(a->kind.type, b->kind.type);
	assert_int_equal(a->kind.latch, b->kind.latch);
	assert_string_equal(a->kind.unit, b->kind.unit);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		assert_int_equal(a->kind.has[i], b->kind.has[i]);
		if (a->kind.has[i])
			assert_int_equal(param_value_compare(&a->kind.limit[i], &b->kind.limit[i]),
					 0);
	}
	if (a->kind.type == PARAM_TEXT)
		assert_memory_equal(a->value.text.bytes, b->value.text.bytes, a->value.text.length);
	else
		assert_int_equal(param_value_compare(&a->value, &b->value), 0);
}

/* The same bytes in an exact allocation, so that reads past them are found. */
static const char *read_cut(const uint8_t *bytes, size_t length)
{
	uint8_t *exact = malloc(length + (length == 0));
	struct param param;
	bool removed;

	assert_non_null(exact);
	memcpy(exact, bytes, length);
	const char *wrong = record_read(exact, length, &param, &removed);
	free(exact);
	return wrong;
}

PLX_TEST(encoded_records_decode_to_themselves)
{
	struct param params[] = {number(), number()}, back;
	uint8_t bytes[WIRE_RECORD_MAX];
	bool removed;

	params[1].kind = (struct param_kind){.type = PARAM_TEXT};
	params[1].value = (struct param_value){PARAM_TEXT, .text = {"a text", 6}};
	params[1].alarm = (struct param_alarm){0};
	for (int i = 0; i < 2; i++) {
		size_t length = record_write(&params[i], i == 1, bytes);

		assert_null(record_read(bytes, length, &back, &removed));
		assert_int_equal(removed, i == 1);
		check_same(&params[i], &back);
		for (size_t cut = 0; cut < length; cut++)
			assert_non_null(read_cut(bytes, cut));
	}
}

PLX_TEST(invalid_records_are_refused)
{
	static const struct {
		size_t at;
		uint8_t byte;
	} lies[] = {{24, 0},   {24, 9},   {25, 200}, {25, 0}, {26, 0}, {26, 3},   {26, 0xfd},
		    {27, 255}, {28, 255}, {30, 1},   {33, 2}, {34, 1}, {39, 0x80}};
	struct param param = number();
	uint8_t bytes[WIRE_RECORD_MAX];
	size_t length = record_write(&param, false, bytes);

	for (unsigned i = 0; i < PLX_ARRAY_LEN(lies); i++) {
		uint8_t before = bytes[lies[i].at];

		bytes[lies[i].at] = lies[i].byte;
		assert_non_null(read_cut(bytes, length));
		bytes[lies[i].at] = before;
	}
	assert_null(read_cut(bytes, length));
	memset(bytes + 40, 0xff, 8); /* a value that is not a number */
	assert_string_equal(read_cut(bytes, length), "a real is not finite");
	param.kind = (struct param_kind){.type = PARAM_TEXT, .unit = "m\033"};
	param.value = (struct param_value){PARAM_TEXT, .text = {"a text", 6}};
	length = record_write(&param, false, bytes);
	assert_string_equal(read_cut(bytes, length), "a unit has control characters");
	bytes[49] = '\0';
	assert_string_equal(read_cut(bytes, length), "a unit has a NUL in it");
	bytes[49] = 'm';
	assert_null(read_cut(bytes, length));
	bytes[40] = 1;
	assert_string_equal(read_cut(bytes, length), "a text has a number");
}

PLX_TEST(set_requests_are_encoded_and_checked)
{
	struct set_order order = {.flags = WIRE_DURABLE | WIRE_EXPECT,
				  .expected = 77,
				  .name = "a/b",
				  .name_length = 3,
				  .value = {PARAM_TEXT, .text = {"12.5", 4}}},
			 back;
	uint8_t bytes[128];
	size_t length = set_write(&order, bytes);

	assert_null(set_read(bytes, length, &back));
	assert_int_equal(back.flags, order.flags);
	assert_int_equal(back.expected, 77);
	assert_false(back.is_typed);
	assert_memory_equal(back.name, "a/b", 3);
	assert_int_equal(back.value.text.length, 4);
	assert_memory_equal(back.value.text.bytes, "12.5", 4);
	for (size_t cut = 0; cut < WIRE_SET_BYTES + 3; cut++)
		assert_non_null(set_read(bytes, cut, &back));
	order.is_typed = true;
	order.value = (struct param_value){PARAM_INT, .integer = -5};
	length = set_write(&order, bytes);
	assert_null(set_read(bytes, length, &back));
	assert_true(back.is_typed);
	assert_int_equal(back.value.integer, -5);
	assert_non_null(set_read(bytes, length + 1, &back));
	for (size_t at = 4; at < 8; at++) {
		bytes[at] = 1;
		assert_string_equal(set_read(bytes, length, &back),
				    "the order has flags or a type that nobody knows");
		bytes[at] = 0;
	}
	bytes[0] = WIRE_DURABLE; /* together with a revision */
	assert_string_equal(set_read(bytes, length, &back),
			    "the order has a revision, and does not expect it");
	bytes[0] = 0x80;
	assert_non_null(set_read(bytes, length, &back));
	order = (struct set_order){
		.name = "a/b", .name_length = 3, .value = {PARAM_TEXT, .text = {"12.5", 4}}};
	length = set_write(&order, bytes);
	assert_null(set_read(bytes, length, &back));
	bytes[23] = 1;
	assert_string_equal(set_read(bytes, length, &back), "a text has a number");
}

PLX_TEST(list_requests_are_encoded_and_checked)
{
	struct list_order order = {.flags = WIRE_ALARMS,
				   .prefix = "a/b",
				   .prefix_length = 3,
				   .after = "a/b/c",
				   .after_length = 5},
			  back;
	uint8_t bytes[64];
	size_t length = list_write(&order, bytes);

	assert_null(list_read(bytes, length, &back));
	assert_int_equal(back.flags, WIRE_ALARMS);
	assert_memory_equal(back.prefix, "a/b", 3);
	assert_int_equal(back.after_length, 5);
	assert_memory_equal(back.after, "a/b/c", 5);
	for (size_t cut = 0; cut < WIRE_LIST_BYTES + 3; cut++)
		assert_non_null(list_read(bytes, cut, &back));
	bytes[1] = 1;
	assert_string_equal(list_read(bytes, length, &back),
			    "the order has flags that nobody knows");
}

PLX_TEST(define_remove_and_acknowledge_requests_are_encoded_and_checked)
{
	struct param param = number(), back;
	uint8_t bytes[WIRE_ORDER_BYTES + WIRE_RECORD_MAX] = {WIRE_DURABLE};
	size_t length = WIRE_ORDER_BYTES + record_write(&param, false, bytes + WIRE_ORDER_BYTES);
	struct order order;

	assert_null(order_read(bytes, length, &order));
	assert_true(order.is_durable);
	assert_ptr_equal(order.rest, bytes + WIRE_ORDER_BYTES);
	assert_null(define_read(&order, &back));
	check_same(&param, &back);
	for (size_t cut = 0; cut < WIRE_ORDER_BYTES; cut++)
		assert_string_equal(order_read(bytes, cut, &order), "the order is cut off");
	for (size_t at = 0; at < WIRE_ORDER_BYTES; at++) {
		uint8_t before = bytes[at];

		bytes[at] = 2;
		assert_string_equal(order_read(bytes, length, &order),
				    "the order has flags that nobody knows");
		bytes[at] = before;
	}
	length = WIRE_ORDER_BYTES + record_write(&param, true, bytes + WIRE_ORDER_BYTES);
	assert_null(order_read(bytes, length, &order));
	assert_string_equal(define_read(&order, &back), "what is defined is not removed");
}

PLX_TEST(pages_hold_as_many_records_as_fit)
{
	static uint8_t bytes[WIRE_PAGE_MAX];
	struct param param = number(), back;
	struct page page;
	unsigned count = 0, seen = 0;
	struct list_place place = {.length = 0}, again;
	const char *wrong;
	size_t offset;
	bool more;

	page_begin(&page, bytes);
	while (page_add(&page, &param))
		count++;
	assert_true(count > 300);
	struct iovec whole = page_end(&page, &param);
	assert_null(page_read(whole.iov_base, whole.iov_len, &place, &more, &offset));
	assert_true(more);
	assert_int_equal(place.length, param.name_length);
	assert_memory_equal(place.name, param.name, place.length);
	again = place;
	assert_string_equal(page_read(whole.iov_base, whole.iov_len, &again, &more, &offset),
			    "a page does not start after the previous one");
	while (page_next(whole.iov_base, whole.iov_len, &offset, &back, &wrong)) {
		check_same(&param, &back);
		seen++;
	}
	assert_null(wrong);
	assert_int_equal(seen, count);
	for (size_t at = 1; at < 8; at = at == 1 ? 4 : at + 1) {
		((uint8_t *)whole.iov_base)[at] = 1;
		assert_string_equal(
			page_read(whole.iov_base, whole.iov_len, &place, &more, &offset),
			"a page has flags that nobody knows");
		((uint8_t *)whole.iov_base)[at] = 0;
	}
	for (size_t cut = 0; cut < 8u + param.name_length; cut++)
		assert_non_null(page_read(whole.iov_base, cut, &place, &more, &offset));
	page_begin(&page, bytes);
	whole = page_end(&page, NULL);
	assert_null(page_read(whole.iov_base, whole.iov_len, &place, &more, &offset));
	assert_false(more);
	assert_false(page_next(whole.iov_base, whole.iov_len, &offset, &back, &wrong));
	assert_null(wrong);
}

PLX_TEST_MAIN()
