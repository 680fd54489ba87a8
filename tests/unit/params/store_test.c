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
} model[NAMES];

static uint32_t there;

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

static void put(struct store *store, unsigned i, int64_t number)
{
	struct param param = int_param(model[i].name, 1, 1, number);

	assert_int_equal(find(store, i) != NULL, model[i].there);
	const struct param *kept = store_put(store, &param);
	assert_ptr_equal(kept, find(store, i));
	there += !model[i].there;
	model[i].there = true;
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
	const struct param *param = store_first(store, model[from].name, strlen(model[from].name),
						false);

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
			put(store, i, rand());
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

TEST(the_store_copies_names_and_texts)
{
	struct store *store = *state;
	char name[] = "a", text[] = "first";
	struct param param = int_param(name, 1, 1, 0);

	param.kind.type = PARAM_TEXT;
	param.value = (struct param_value){.type = PARAM_TEXT, .text = {text, 5}};
	const struct param *kept = store_put(store, &param);
	memset(text, 'x', 5);
	name[0] = 'x';
	assert_memory_equal(kept->name, "a", 1);
	assert_memory_equal(kept->value.text.bytes, "first", 5);
	param = *kept; /* the store's own memory */
	param.value.text.bytes++;
	param.value.text.length = 3;
	assert_ptr_equal(store_put(store, &param), kept);
	assert_int_equal(kept->value.text.length, 3);
	assert_memory_equal(kept->value.text.bytes, "irs", 3);
}

PLX_TEST_MAIN()
