/* SPDX-License-Identifier: BSD-3-Clause */
/* News for a watcher: in a run of the service, after a restart, and disappeared parameters. */
#include "int_param.h"
#include "plx_test.h"

#include "params.h"

#include <stdio.h>

static struct snapshot snapshot;
static char news[256]; /* "NAME:REVISION " of each, with "-" before removals */

static void on_news(const struct param *param)
{
	size_t used = strlen(news);

	snprintf(news + used, sizeof(news) - used, "%s%.*s:%d ", param->removed ? "-" : "",
		 (int)param->name_length, param->name, (int)param->revision);
}

/* Words: "list", "end", "lose", or a report, as in news. Return: the news of all. */
static const char *play(const char *words)
{
	char copy[256];

	news[0] = '\0';
	snprintf(copy, sizeof(copy), "%s", words);
	assert_int_equal(snapshot_init(&snapshot, on_news), 0);
	for (char *at = strtok(copy, " "); at; at = strtok(NULL, " ")) {
		char *colon = strchr(at, ':');

		if (strcmp(at, "list") == 0) {
			assert_int_equal(snapshot_begin(&snapshot), 0);
		} else if (strcmp(at, "lose") == 0) {
			assert_int_equal(snapshot_lose(&snapshot), 0);
		} else if (strcmp(at, "end") == 0) {
			snapshot_end(&snapshot);
		} else {
			uint64_t revision = strtoull(colon + 1, NULL, 10);

			*colon = '\0';
			struct param param = int_param(at + (*at == '-'), 1, revision,
						       (int64_t)revision);
			param.removed = *at == '-';
			assert_int_equal(snapshot_take(&snapshot, &param), 0);
		}
	}
	return news;
}

PLX_TEST(each_change_is_news_once)
{
	static const struct {
		const char *why, *words, *news;
		unsigned count; /* known at the end */
	} rows[] = {
		{"only newer revisions", "a:5 a:5 a:4 a:6 a/b:1", "a:5 a:6 a/b:1 ", 2},
		{"a removal, once", "a:5 -a:5 -a:6 -a:6 -b:7 a:8", "a:5 -a:6 a:8 ", 1},
		{"a page made before a removal arrives after it", "list a:5 -a:9 a:7 -b:10 b:8 end",
		 "a:5 -a:9 ", 0},
		{"what a list lacks is removed", "list a:1 b:2 c:3 end list b:2 end a:1",
		 "a:1 b:2 c:3 -a:1 -c:3 a:1 ", 2},
		{"a parameter defined after its page stays", "list b:2 a:3 end", "b:2 a:3 ", 2},
		{"a late change is older than the list before", "list a:12 end list a:11 a:12 end",
		 "a:12 ", 1},
		{"only the pages after a loss count", "list a:1 lose b:2 end", "a:1 b:2 -a:1 ", 1},
		{"a restarted service may have older revisions",
		 "x:60 y:70 lose list x:60 y:10 z:20 y:9 end", "x:60 y:70 y:10 z:20 ", 3},
		{"a restarted service may restore a removed parameter",
		 "list z:1 -z:70 lose list z:1 end", "z:1 -z:70 z:1 ", 1},
		{"messages of a restarted service are newer than its pages",
		 "y:70 lose y:12 list y:11 -y:13 y:12 end", "y:70 y:12 -y:13 ", 0},
		{"a parameter missing after a restart is removed", "w:70 lose list end",
		 "w:70 -w:70 ", 0},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		if (strcmp(play(rows[i].words), rows[i].news) != 0)
			fail_msg("%s: %s", rows[i].why, news);
		assert_int_equal(store_count(snapshot.now), rows[i].count);
		snapshot_fini(&snapshot);
	}
}

PLX_TEST_MAIN()
