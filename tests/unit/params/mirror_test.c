/* SPDX-License-Identifier: BSD-3-Clause */
/* News for a watcher: within one run of the service, after a restart, and disappeared
 * parameters. */
#include "plx_test.h"

#include "mirror.h"

#include <stdio.h>

static struct mirror *mirror;
static char gone[256]; /* "NAME:REVISION " of each */

static int start(void **state)
{
	gone[0] = '\0';
	return mirror_create(&mirror);
}

static int stop(void **state)
{
	mirror_destroy(mirror);
	return 0;
}

static struct param number(const char *name, uint64_t revision)
{
	return (struct param){
		.name = name,
		.name_length = (uint32_t)strlen(name),
		.id = 1,
		.revision = revision,
		.kind = {.type = PARAM_INT},
		.value = {PARAM_INT, .integer = (int64_t)revision},
	};
}

static bool takes(const char *name, uint64_t revision, bool removed)
{
	struct param param = number(name, revision);
	int rc = mirror_take(mirror, &param, removed);

	assert_in_range(rc, 0, 1);
	return rc;
}

static bool is_news(const char *name, uint64_t revision)
{
	return takes(name, revision, false);
}

static bool is_removal(const char *name, uint64_t revision)
{
	return takes(name, revision, true);
}

static void on_gone(const struct param *param, void *arg)
{
	size_t used = strlen(gone);

	snprintf(gone + used, sizeof(gone) - used, "%.*s:%d ", (int)param->name_length, param->name,
		 (int)param->revision);
}

static const char *end(void)
{
	gone[0] = '\0';
	mirror_end(mirror, on_gone, NULL);
	return gone;
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

TEST(the_newest_revision_is_news)
{
	assert_true(is_news("a", 5));
	assert_false(is_news("a", 5));
	assert_false(is_news("a", 4));
	assert_true(is_news("a", 6));
	assert_true(is_news("a/b", 1));
	assert_int_equal(mirror_count(mirror), 2);
}

TEST(a_removal_is_reported_once)
{
	assert_true(is_news("a", 5));
	assert_false(is_removal("a", 5));
	assert_true(is_removal("a", 6));
	assert_false(is_removal("a", 6));
	assert_false(is_removal("b", 7));
	assert_true(is_news("a", 8));
}

/* A page made before a removal may arrive after it. */
TEST(a_page_does_not_restore_a_removed_parameter)
{
	mirror_begin(mirror);
	assert_true(is_news("a", 5));
	assert_true(is_removal("a", 9));
	assert_false(is_news("a", 7));
	assert_false(is_removal("b", 10));
	assert_false(is_news("b", 8));
	assert_string_equal(end(), "");
	assert_int_equal(mirror_count(mirror), 0);
}

TEST(a_parameter_that_is_not_listed_is_gone)
{
	mirror_begin(mirror);
	assert_true(is_news("a", 1));
	assert_true(is_news("b", 2));
	assert_true(is_news("c", 3));
	assert_string_equal(end(), "");
	mirror_begin(mirror);
	assert_false(is_news("b", 2));
	assert_string_equal(end(), "a:1 c:3 ");
	assert_int_equal(mirror_count(mirror), 1);
	assert_true(is_news("a", 1));
}

/* Defined after the page that would have contained it. */
TEST(a_parameter_published_meanwhile_stays)
{
	mirror_begin(mirror);
	assert_true(is_news("b", 2));
	assert_true(is_news("a", 3));
	assert_string_equal(end(), "");
	assert_int_equal(mirror_count(mirror), 2);
}

TEST(only_the_restarted_list_counts)
{
	mirror_begin(mirror);
	assert_true(is_news("a", 1));
	mirror_begin(mirror);
	assert_true(is_news("b", 2));
	assert_string_equal(end(), "a:1 ");
}

TEST(names_that_come_and_go_leave_nothing)
{
	char name[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_true(is_news(name, (uint64_t)(2 * i + 1)));
		assert_true(is_removal(name, (uint64_t)(2 * i + 2)));
	}
	assert_int_equal(mirror_count(mirror), 0);
}

/* y was set to revision 70, and published before it was written. */
TEST(a_next_life_may_be_older)
{
	assert_true(is_news("x", 60));
	assert_true(is_news("y", 70));
	mirror_lose(mirror);
	mirror_begin(mirror);
	assert_false(is_news("x", 60));
	assert_true(is_news("y", 10));
	assert_true(is_news("z", 20));
	assert_false(is_news("y", 9));
	assert_string_equal(end(), "");
}

/* Both runs started with one file, and counted from there. */
TEST(a_next_life_may_have_the_same_revisions)
{
	struct param param = number("y", 70);

	assert_true(is_news("y", 70));
	mirror_lose(mirror);
	param.value.integer = 5;
	assert_int_equal(mirror_take(mirror, &param, false), 1);
	assert_int_equal(mirror_take(mirror, &param, false), 0);
}

TEST(a_removal_of_the_last_life_may_be_undone)
{
	mirror_begin(mirror);
	assert_true(is_news("z", 1));
	assert_true(is_removal("z", 70));
	mirror_lose(mirror);
	mirror_begin(mirror);
	assert_true(is_news("z", 1));
	assert_string_equal(end(), "");
	assert_int_equal(mirror_count(mirror), 1);
}

/* The message comes first, followed by an older page. */
TEST(messages_of_the_next_life_are_newer_than_its_pages)
{
	assert_true(is_news("y", 70));
	mirror_lose(mirror);
	assert_true(is_news("y", 12));
	mirror_begin(mirror);
	assert_false(is_news("y", 11));
	assert_true(is_removal("y", 13));
	assert_false(is_news("y", 12));
	assert_string_equal(end(), "");
	assert_int_equal(mirror_count(mirror), 0);
}

TEST(a_parameter_missing_after_a_restart_is_gone)
{
	assert_true(is_news("w", 70));
	mirror_lose(mirror);
	mirror_begin(mirror);
	assert_string_equal(end(), "w:70 ");
}

/* Their state when reported as gone is their own copy, not the message's. */
TEST(texts_are_copied)
{
	char name[] = "t", text[] = "text";
	struct param param = {
		.name = name,
		.name_length = 1,
		.revision = 1,
		.kind = {.type = PARAM_TEXT},
		.value = {PARAM_TEXT, .text = {text, 4}},
	};

	assert_int_equal(mirror_take(mirror, &param, false), 1);
	param.revision = 2;
	assert_int_equal(mirror_take(mirror, &param, false), 1);
	name[0] = 'x';
	mirror_begin(mirror);
	assert_string_equal(end(), "t:2 ");
}

PLX_TEST_MAIN()
