/* SPDX-License-Identifier: BSD-3-Clause */
/* A publisher's handling of subscription requests: any bytes, as a list of them. Accepted ones
 * enter the table as in the publisher, and a lookup finds what a full scan finds. Accepted answers
 * survive writing and reading again. */
#include "fuzz.h"
#include "netio_wire.h"
#include "table.h"

#define KEPT_MAX WIRE_LIST_MAX

struct kept {
	struct wire_request request;
	struct table_pair *pairs; /* NULL: unused */
	unsigned pair_count, hits;
};

static struct kept kept[KEPT_MAX];
static struct table table;

static bool matches(const struct wire_request *request, uint64_t tag)
{
	const struct netio_subscription *what = &request->what;

	return what->mask ? (tag & what->mask) == what->tag
			  : tag >= what->tag && tag <= subscription_last(what);
}

static void look_up(uint64_t tag)
{
	struct table_search search = {.tag = tag};
	struct kept *found;

	for (unsigned i = 0; i < KEPT_MAX; i++)
		kept[i].hits = 0;
	while ((found = table_next(&table, &search)))
		found->hits++;
	for (unsigned i = 0; i < KEPT_MAX; i++)
		must(kept[i].hits == (kept[i].pairs && matches(&kept[i].request, tag)));
}

static void drop(struct kept *one)
{
	table_remove(&table, one->pairs, one->pair_count);
	free(one->pairs);
	one->pairs = NULL;
}

static void subscribe(const struct wire_request *request)
{
	struct kept *one = &kept[request->id % KEPT_MAX];
	int rc;

	if (one->pairs)
		return;
	*one = (struct kept){.request = *request, .pair_count = table_pairs_of(&request->what)};
	must(one->pair_count >= 1 && one->pair_count <= TABLE_PAIRS_MAX);
	one->pairs = calloc(one->pair_count, sizeof(*one->pairs));
	must(one->pairs != NULL);
	rc = table_add(&table, &request->what, one->pairs, one);
	if (rc == 0)
		return;
	must(rc == -ENOSPC);
	free(one->pairs);
	one->pairs = NULL;
}

static void take_requests(const uint8_t *data, size_t size)
{
	struct wire_request request;
	uint8_t again[WIRE_REQUEST_BYTES];
	uint32_t count;

	if (wire_list_read(data, size, WIRE_REQUEST, WIRE_REQUEST_BYTES, &count))
		return;
	must(WIRE_LIST_BYTES + (size_t)count * WIRE_REQUEST_BYTES == size);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *in = data + WIRE_LIST_BYTES + (size_t)i * WIRE_REQUEST_BYTES;

		if (wire_request_read(in, &request))
			break;
		wire_request_write(again, &request);
		must(memcmp(again, in, sizeof(again)) == 0);
		if (request.kind != WIRE_UNSUBSCRIBE)
			subscribe(&request);
		else if (kept[request.id % KEPT_MAX].pairs)
			drop(&kept[request.id % KEPT_MAX]);
		look_up(request.what.tag);
		look_up(subscription_last(&request.what));
		look_up(request.what.tag - 1);
		look_up(subscription_last(&request.what) + 1);
		look_up(request.id);
	}
}

static void take_answers(const uint8_t *data, size_t size)
{
	struct wire_answer answer;
	uint8_t again[WIRE_ANSWER_BYTES];
	uint32_t count;

	if (wire_list_read(data, size, WIRE_ANSWER, WIRE_ANSWER_BYTES, &count))
		return;
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *in = data + WIRE_LIST_BYTES + (size_t)i * WIRE_ANSWER_BYTES;

		if (wire_answer_read(in, &answer))
			break;
		wire_answer_write(again, &answer);
		must(memcmp(again, in, sizeof(again)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	must(table_init(&table, 1) == 0);
	take_requests(data, size);
	take_answers(data, size);
	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (kept[i].pairs)
			drop(&kept[i]);
	must(table.cell_count == 0 && table.used_count == 0);
	table_fini(&table);
	return 0;
}
