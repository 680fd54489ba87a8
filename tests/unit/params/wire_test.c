/* SPDX-License-Identifier: BSD-3-Clause */
/* Records, requests and pages: written, read, and with wrong bytes. fuzz_params reads any bytes. */
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
		.value = {PARAM_REAL, .real = 90000},
		.alarm = {ALARM_LATCHED, -LEVEL_WARNING, UINT64_C(1) << 60},
	};

	param.kind.has[LIMIT_MAX] = param.kind.has[LIMIT_ALARM_HIGH] = true;
	param.kind.limit[LIMIT_MAX] = (struct param_value){PARAM_REAL, .real = 2000};
	param.kind.limit[LIMIT_ALARM_HIGH] = (struct param_value){PARAM_REAL, .real = 1800};
	return param;
}

static struct param text(void)
{
	return (struct param){
		.name = "t",
		.name_length = 1,
		.removed = true,
		.kind = {.type = PARAM_TEXT, .unit = "mm"},
		.value = {PARAM_TEXT, .text = {"a text", 6}},
	};
}

static void check_same(const struct param *a, const struct param *b)
{
	assert_int_equal(a->name_length, b->name_length);
	assert_memory_equal(a->name, b->name, a->name_length);
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->revision, b->revision);
	assert_int_equal(a->removed, b->removed);
	assert_memory_equal(&a->alarm, &b->alarm, sizeof(a->alarm));
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

/* What is wrong with bytes, by each reader. */
static const char *check_record(const uint8_t *bytes, size_t length)
{
	struct param param;

	return record_read(bytes, length, &param);
}

static const char *check_set(const uint8_t *bytes, size_t length)
{
	struct set_order order;

	return set_read(bytes, length, &order);
}

static const char *check_list(const uint8_t *bytes, size_t length)
{
	struct list_order order;

	return list_read(bytes, length, &order);
}

static const char *check_define(const uint8_t *bytes, size_t length)
{
	struct order order;
	struct param param;
	const char *wrong = order_read(bytes, length, &order);

	return wrong ? wrong : define_read(&order, &param);
}

/* After the name "a". */
static const char *check_page(const uint8_t *bytes, size_t length)
{
	struct list_place place = {.name = "a", .length = 1};
	const char *wrong;
	struct param param;
	size_t offset;
	bool more;

	wrong = page_read(bytes, length, &place, &more, &offset);
	while (!wrong && page_next(bytes, length, &offset, &param, &wrong))
		;
	return wrong;
}

typedef const char *(*check_fn)(const uint8_t *bytes, size_t length);

/* In an exact allocation, so that reads past it are found. */
static const char *read_exactly(check_fn check, const uint8_t *bytes, size_t length)
{
	uint8_t *exact = malloc(length + (length == 0));

	assert_non_null(exact);
	memcpy(exact, bytes, length);
	const char *wrong = check(exact, length);
	free(exact);
	return wrong;
}

/* Valid bytes of each kind. Return: their length. */
enum kind { NUMBER, TEXT, SET_TEXT, SET_NUMBER, LIST, DEFINE, PAGE, KIND_COUNT };

static size_t write_kind(enum kind kind, uint8_t bytes[WIRE_PAGE_MAX])
{
	struct set_order set = {.name = "a/b", .name_length = 3};
	struct list_order list = {WIRE_ALARMS, "a/b", "a/b/c", 3, 5};
	struct param param = kind == TEXT ? text() : number();
	struct page page;
	struct iovec whole;

	switch (kind) {
	case NUMBER:
	case TEXT:
		return record_write(&param, bytes);
	case SET_TEXT:
		set.value = (struct param_value){PARAM_TEXT, .text = {"12.5", 4}};
		return set_write(&set, bytes);
	case SET_NUMBER:
		set.is_typed = true;
		set.flags = WIRE_DURABLE | WIRE_EXPECT;
		set.expected = 77;
		set.value = (struct param_value){PARAM_INT, .integer = -5};
		return set_write(&set, bytes);
	case LIST:
		return list_write(&list, bytes);
	case DEFINE:
		memset(bytes, 0, WIRE_ORDER_BYTES);
		bytes[0] = WIRE_DURABLE;
		return WIRE_ORDER_BYTES + record_write(&param, bytes + WIRE_ORDER_BYTES);
	default:
		page_begin(&page, bytes);
		assert_true(page_add(&page, &param));
		whole = page_end(&page, &param);
		memmove(bytes, whole.iov_base, whole.iov_len);
		return whole.iov_len;
	}
}

static const check_fn checks[KIND_COUNT] = {check_record, check_record, check_set, check_set,
					    check_list,   check_define, check_page};

PLX_TEST(what_is_written_is_read)
{
	struct param param = number(), other = text(), back;
	uint8_t bytes[WIRE_PAGE_MAX];
	struct set_order set;
	struct list_order list;
	struct order order;

	assert_null(record_read(bytes, write_kind(NUMBER, bytes), &back));
	check_same(&param, &back);
	assert_null(record_read(bytes, write_kind(TEXT, bytes), &back));
	check_same(&other, &back);
	assert_null(set_read(bytes, write_kind(SET_TEXT, bytes), &set));
	assert_false(set.is_typed);
	assert_memory_equal(set.name, "a/b", 3);
	assert_int_equal(set.value.text.length, 4);
	assert_memory_equal(set.value.text.bytes, "12.5", 4);
	assert_null(set_read(bytes, write_kind(SET_NUMBER, bytes), &set));
	assert_int_equal(set.flags, WIRE_DURABLE | WIRE_EXPECT);
	assert_int_equal(set.expected, 77);
	assert_int_equal(set.value.integer, -5);
	assert_null(list_read(bytes, write_kind(LIST, bytes), &list));
	assert_int_equal(list.flags, WIRE_ALARMS);
	assert_memory_equal(list.prefix, "a/b", 3);
	assert_int_equal(list.after_length, 5);
	assert_memory_equal(list.after, "a/b/c", 5);
	assert_null(order_read(bytes, write_kind(DEFINE, bytes), &order));
	assert_true(order.is_durable);
	assert_null(define_read(&order, &back));
	check_same(&param, &back);
}

PLX_TEST(wrong_bytes_are_refused)
{
	static const struct {
		enum kind kind;
		uint8_t at, byte;
		const char *wrong; /* NULL: any */
	} rows[] = {
		{NUMBER, 24, 0, NULL},
		{NUMBER, 25, 200, "its alarm is none that there is"},
		{NUMBER, 25, 0, "its alarm is none that there is"},
		{NUMBER, 26, 0xfd, "its alarm is none that there is"},
		{NUMBER, 27, 255, "the parts of a record are not its length"},
		{NUMBER, 33, 2, "a record has flags that nobody knows"},
		{NUMBER, 47, 0x7f, "a real is not finite"},
		{NUMBER, 64, 0x1b, "a unit has control characters"},
		{TEXT, 40, 1, "a text has a number"},
		{TEXT, 49, '\0', "a unit has a NUL in it"},
		{TEXT, 51, '\0', "a text has a NUL in it"},
		{SET_TEXT, 0, 0x80, "the order has flags or a type that nobody knows"},
		{SET_TEXT, 2, 8, "the name is longer than the order"},
		{SET_TEXT, 8, 1, "the order has a revision, and does not expect it"},
		{SET_NUMBER, 0, WIRE_DURABLE, "the order has a revision, and does not expect it"},
		{SET_NUMBER, 2, 2, "there is something after the name"},
		{LIST, 0, 2, "the order has flags that nobody knows"},
		{LIST, 2, 9, "the prefix is longer than the order"},
		{DEFINE, 8 + 33, 1, "what is defined is not removed"},
		{PAGE, 0, 2, "a page does not say where to continue"},
		{PAGE, 1, 1, "a page has flags that nobody knows"},
		{PAGE, 3, 2, "a page's name is longer than the page"},
		{PAGE, 8, 'A', "a page does not start after the previous one"},
		{PAGE, 25, 1, "a record is longer than its page"},
	};
	uint8_t bytes[WIRE_PAGE_MAX];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		size_t length = write_kind(rows[i].kind, bytes);
		const char *wrong;

		bytes[rows[i].at] = rows[i].byte;
		wrong = read_exactly(checks[rows[i].kind], bytes, length);
		if (!wrong || (rows[i].wrong && !strstr(wrong, rows[i].wrong)))
			fail_msg("row %u: %s", i, wrong ? wrong : "it was taken");
	}
}

PLX_TEST_MAIN()
