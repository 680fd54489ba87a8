/* SPDX-License-Identifier: BSD-3-Clause */
/* News for a watcher: in a run of the service, after a restart, and disappeared parameters. */
#include "int_param.h"
#include "plx_test.h"

#include "mirror.h"

#include <stdio.h>

static struct mirror *mirror;
static char gone[256]; /* "NAME:REVISION " of each */

PLX_FIXTURE(start, mirror_create(&mirror), gone[0] = '\0')
PLX_FIXTURE(stop, 0, mirror_destroy(mirror))

/* Give it the parameters of that text, "NAME:REVISION" each, with "-" before removals. Return:
 * those that are news. */
static const char *news_of(const char *text)
{
	static char news[256];
	char copy[256];

	news[0] = '\0';
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *at = strtok(copy, " "); at; at = strtok(NULL, " ")) {
		bool removed = *at == '-';
		char *colon = strchr(at, ':');
		uint64_t revision = strtoull(colon + 1, NULL, 10);

		*colon = '\0';
		struct param param = int_param(at + removed, 1, revision, (int64_t)revision);
		int rc = mirror_take(mirror, &param, removed);
		*colon = ':';
		assert_in_range(rc, 0, 1);
		if (rc)
			snprintf(news + strlen(news), sizeof(news) - strlen(news), "%s ", at);
	}
	return news;
}

/* All of them are news. */
static void take(const char *text)
{
	assert_string_equal(news_of(text), text);
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

TEST(only_newer_revisions_are_reported)
{
	assert_string_equal(news_of("a:5 a:5 a:4 a:6 a/b:1"), "a:5 a:6 a/b:1 ");
	assert_int_equal(mirror_count(mirror), 2);
}

TEST(a_removal_is_reported_once)
{
	assert_string_equal(news_of("a:5 -a:5 -a:6 -a:6 -b:7 a:8"), "a:5 -a:6 a:8 ");
}

/* A page made before a removal may arrive after it. */
TEST(a_page_does_not_restore_a_removed_parameter)
{
	mirror_begin(mirror);
	assert_string_equal(news_of("a:5 -a:9 a:7 -b:10 b:8"), "a:5 -a:9 ");
	assert_string_equal(end(), "");
	assert_int_equal(mirror_count(mirror), 0);
}

TEST(a_parameter_missing_from_the_list_is_removed)
{
	mirror_begin(mirror);
	take("a:1 b:2 c:3 ");
	assert_string_equal(end(), "");
	mirror_begin(mirror);
	assert_string_equal(news_of("b:2"), "");
	assert_string_equal(end(), "a:1 c:3 ");
	assert_int_equal(mirror_count(mirror), 1);
	take("a:1 ");
}

/* Defined after the page that would have contained it. */
TEST(a_parameter_published_meanwhile_stays)
{
	mirror_begin(mirror);
	take("b:2 a:3 ");
	assert_string_equal(end(), "");
	assert_int_equal(mirror_count(mirror), 2);
}

TEST(only_the_pages_of_a_restarted_list_count)
{
	mirror_begin(mirror);
	take("a:1 ");
	mirror_begin(mirror);
	take("b:2 ");
	assert_string_equal(end(), "a:1 ");
}

TEST(removed_names_leave_no_memory_in_use)
{
	char text[64];

	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "n%d:%d -n%d:%d ", i, 2 * i + 1, i, 2 * i + 2);
		take(text);
	}
	assert_int_equal(mirror_count(mirror), 0);
}

/* y was set to revision 70, and published before it was written. */
TEST(a_restarted_service_may_have_older_revisions)
{
	take("x:60 y:70 ");
	mirror_lose(mirror);
	mirror_begin(mirror);
	assert_string_equal(news_of("x:60 y:10 z:20 y:9"), "y:10 z:20 ");
	assert_string_equal(end(), "");
}

/* Both runs started with one file, and counted from there. */
TEST(a_restarted_service_may_have_the_same_revisions)
{
	struct param param = int_param("y", 1, 70, 70);

	take("y:70 ");
	mirror_lose(mirror);
	param.value.integer = 5;
	assert_int_equal(mirror_take(mirror, &param, false), 1);
	assert_int_equal(mirror_take(mirror, &param, false), 0);
}

TEST(a_restarted_service_may_restore_a_removed_parameter)
{
	mirror_begin(mirror);
	take("z:1 -z:70 ");
	mirror_lose(mirror);
	mirror_begin(mirror);
	take("z:1 ");
	assert_string_equal(end(), "");
	assert_int_equal(mirror_count(mirror), 1);
}

/* The message comes first, followed by an older page. */
TEST(messages_of_a_restarted_service_are_newer_than_its_pages)
{
	take("y:70 ");
	mirror_lose(mirror);
	take("y:12 ");
	mirror_begin(mirror);
	assert_string_equal(news_of("y:11 -y:13 y:12"), "-y:13 ");
	assert_string_equal(end(), "");
	assert_int_equal(mirror_count(mirror), 0);
}

TEST(a_parameter_missing_after_a_restart_is_removed)
{
	take("w:70 ");
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
