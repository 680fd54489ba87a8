/* SPDX-License-Identifier: BSD-3-Clause */
/* The store compared with a simple model: an array of all possible names. */
#include "int_param.h"
#include "plx_test.h"

#include "store.h"

#include <stdio.h>

#define NAMES 3000
#define STEPS 60000

static struct {
	char name[16];
	bool there;
	int64_t value;
	uint64_t id;
} model[NAMES];

static uint32_t there;
static const struct param_kind whole = {.type = PARAM_INT};

static int by_name(const void *a, const void *b)
{
	return strcmp((const char *)a, (const char *)b);
}

static int start(void **state)
{
	struct store *store;

	there = 0;
	for (unsigned i = 0; i < NAMES; i++) {
		memset(&model[i], 0, sizeof(model[i]));
		snprintf(model[i].name, sizeof(model[i].name), "%c/%u", 'a' + i % 7, i);
	}
	qsort(model, NAMES, sizeof(model[0]), by_name);
	assert_int_equal(store_create(&store), 0);
	*state = store;
	return 0;
}

PLX_FIXTURE(stop, 0, store_destroy(*state))

/* The parameter with the i-th name of the model. */
static const struct param *find(struct store *store, unsigned i)
{
	return store_find(store, model[i].name, strlen(model[i].name));
}

static const struct param *first(struct store *store, unsigned i, bool after)
{
	return store_first(store, model[i].name, strlen(model[i].name), after);
}

static void define_or_set(struct store *store, unsigned i, int64_t number)
{
	struct param_value value = {.type = PARAM_INT, .integer = number};
	const struct param *param = find(store, i);
	uint64_t revision = store_revision(store);

	assert_int_equal(param != NULL, model[i].there);
	if (param && number % 2) {
		assert_int_equal(store_set(store, param, &value, 1), 0);
	} else {
		assert_works(store_define(store, model[i].name, strlen(model[i].name), &whole,
					  &value, 1, &param));
		assert_true(!model[i].there || param->id == model[i].id);
	}
	assert_int_equal(param->revision, revision + 1);
	there += !model[i].there;
	model[i].there = true;
	model[i].id = param->id;
	model[i].value = number;
}

static void take_away(struct store *store, unsigned i)
{
	const struct param *param = find(store, i);

	assert_int_equal(param != NULL, model[i].there);
	if (!param)
		return;
	store_remove(store, param);
	model[i].there = false;
	there--;
}

/* All existing parameters, in name order, starting from any name. */
static void check_order(struct store *store, unsigned from)
{
	const struct param *param = first(store, from, false);

	for (unsigned i = from; i < NAMES; i++) {
		if (!model[i].there)
			continue;
		assert_non_null(param);
		assert_string_equal(param->name, model[i].name);
		assert_int_equal(param->value.integer, model[i].value);
		param = store_next(param);
	}
	assert_null(param);
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

TEST(the_store_agrees_with_the_model)
{
	struct store *store = *state;

	srand(1);
	for (int step = 0; step < STEPS; step++) {
		unsigned i = (unsigned)rand() % NAMES;

		if (rand() % 3)
			define_or_set(store, i, rand());
		else
			take_away(store, i);
		assert_int_equal(store_count(store), there);
		if (step % 5000 == 0)
			check_order(store, (unsigned)rand() % NAMES);
	}
	check_order(store, 0);
	for (unsigned i = 0; i < NAMES; i++)
		take_away(store, i);
	assert_null(store_first(store, "", 0, false));
}

TEST(store_first_returns_the_next_name)
{
	struct store *store = *state;

	define_or_set(store, 1, 0);
	define_or_set(store, 2, 0);
	assert_string_equal(first(store, 1, false)->name, model[1].name);
	assert_string_equal(first(store, 1, true)->name, model[2].name);
	assert_null(first(store, 2, true));
	assert_string_equal(first(store, 0, true)->name, model[1].name);
}

TEST(the_store_copies_texts)
{
	struct store *store = *state;
	struct param_kind kind = {.type = PARAM_TEXT};
	char text[] = "first";
	struct param_value value = {.type = PARAM_TEXT, .text = {text, 5}};
	const struct param *param;

	assert_int_equal(store_define(store, "a", 1, &kind, &value, 1, &param), 0);
	memset(text, 'x', 5);
	assert_memory_equal(param->value.text.bytes, "first", 5);
	value.text.bytes = param->value.text.bytes + 1; /* its own memory */
	value.text.length = 3;
	assert_int_equal(store_set(store, param, &value, 1), 0);
	assert_int_equal(param->value.text.length, 3);
	assert_memory_equal(param->value.text.bytes, "irs", 3);
}

TEST(loaded_parameters_keep_their_numbers)
{
	struct store *store = *state;
	struct param old = int_param("a", 7, 70, 1);

	assert_int_equal(store_restore(store, &old), 0);
	assert_int_equal(store_restore(store, &old), -EEXIST);
	store_set_revision(store, 70, 7);
	store_set_revision(store, 60, 5); /* never backwards */
	define_or_set(store, 0, 2);
	const struct param *param = find(store, 0);
	assert_int_equal(param->id, 8);
	assert_int_equal(param->revision, 71);
	assert_int_equal(store_find(store, "a", 1)->revision, 70);
}

TEST(alarms_depend_on_the_previous_value)
{
	const struct param_kind kind = {
		.type = PARAM_INT,
		.has = {[LIMIT_ALARM_LOW] = true, [LIMIT_ALARM_HIGH] = true},
		.limit = {[LIMIT_ALARM_LOW] = {PARAM_INT, .integer = 3},
			  [LIMIT_ALARM_HIGH] = {PARAM_INT, .integer = 8}},
	};
	struct param_value value = {PARAM_INT, .integer = 1};
	const struct param *param;

	assert_int_equal(store_define(*state, "a", 1, &kind, &value, 1, &param), 0);
	assert_int_equal(param->alarm.state, ALARM_ACTIVE);
	store_acknowledge(*state, param, 3);
	value.integer = 2;
	assert_int_equal(store_set(*state, param, &value, 1), 0);
	assert_int_equal(param->alarm.state, ALARM_ACKNOWLEDGED);
	value.integer = 99;
	assert_int_equal(store_set(*state, param, &value, 1), 0);
	assert_int_equal(param->alarm.state, ALARM_ACTIVE);
}

/* Not even after 2^32 ids. */
TEST(no_id_is_used_twice)
{
	struct store *store = *state;

	define_or_set(store, 0, 2);
	store_set_revision(store, 5, UINT32_MAX);
	store_remove(store, find(store, 0));
	model[0].there = false;
	define_or_set(store, 0, 2);
	assert_int_equal(model[0].id, UINT64_C(1) << 32);
}

TEST(an_acknowledgement_without_an_alarm_changes_nothing)
{
	struct store *store = *state;
	struct param_kind kind = {.type = PARAM_INT, .has = {[LIMIT_ALARM_HIGH] = true}};
	struct param_value low = {PARAM_INT, .integer = 0}, high = {PARAM_INT, .integer = 9};
	const struct param *param;

	kind.limit[LIMIT_ALARM_HIGH] = (struct param_value){PARAM_INT, .integer = 5};
	assert_int_equal(store_define(store, "a", 1, &kind, &low, 1, &param), 0);
	assert_false(store_acknowledge(store, param, 3));
	assert_int_equal(param->revision, 1);
	assert_int_equal(store_revision(store), 1);
	assert_int_equal(store_set(store, param, &high, 2), 0);
	assert_true(store_acknowledge(store, param, 3));
	assert_int_equal(param->alarm.state, ALARM_ACKNOWLEDGED);
	assert_int_equal(param->revision, 3);
	assert_false(store_acknowledge(store, param, 3));
	assert_int_equal(store_revision(store), 3);
}

PLX_TEST_MAIN()
