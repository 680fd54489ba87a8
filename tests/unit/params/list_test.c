/* SPDX-License-Identifier: BSD-3-Clause */
/* Listing everything from a scripted service: failed pages, and a loss meanwhile. */
#include "plx_test.h"

#include "params.h"
#include "plx_eal.h"
#include "wire.h"

#define DEADLINE_NS (200 * PLX_NS_PER_MS)

enum say { PAGE, BUSY, NOTHING, LOSS, ERROR };

static struct {
	struct plx_rpc_service *service;
	struct params_conf conf;
	const enum say *says; /* to successive requests; PAGE to later ones */
	unsigned say_count, requests;
	struct plx_rpc_request *kept;
	struct snapshot snapshot;
} test;

/* One parameter each: "a", "b" and "c". */
static void reply_page(struct plx_rpc_request *request, const struct list_order *order)
{
	static uint8_t bytes[WIRE_PAGE_MAX];
	char name = order->after_length ? (char)(order->after[0] + 1) : 'a';
	struct param param = {
		.name = &name,
		.name_length = 1,
		.revision = 1,
		.kind = {.type = PARAM_INT},
		.value = {.type = PARAM_INT},
	};
	struct page page;

	page_begin(&page, bytes);
	assert_true(page_add(&page, &param));
	struct iovec whole = page_end(&page, name == 'c' ? NULL : &param);
	plx_rpc_reply(request, whole.iov_base, whole.iov_len);
}

static void on_list(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	enum say say = test.requests < test.say_count ? test.says[test.requests] : PAGE;
	struct list_order order;

	test.requests++;
	assert_null(list_read(data, length, &order));
	if (say == LOSS)
		assert_int_equal(snapshot_lose(&test.snapshot), 0);
	if (say == ERROR)
		plx_rpc_reply_error(request, PARAMS_BAD, "no", 2);
	else if (say == NOTHING)
		test.kept = request;
	else if (say == BUSY)
		plx_rpc_refuse(request, PLX_RPC_BUSY, PLX_NS_PER_MS);
	else
		reply_page(request, &order);
}

static int start(void **state)
{
	static const struct plx_rpc_method method = {
		.id = PARAMS_LIST, .name = "list", .handler = on_list};

	memset(&test, 0, sizeof(test));
	assert_int_equal(plx_rpc_service_create(NULL, &test.service), 0);
	assert_int_equal(plx_rpc_service_add(test.service, &method), 0);
	assert_int_equal(plx_rpc_service_listen(test.service, "127.0.0.1:0", NULL), 0);
	test.conf.service = plx_rpc_service_address(test.service, 0);
	test.conf.deadline_ns = DEADLINE_NS;
	assert_int_equal(client_begin(&test.conf), 0);
	return snapshot_init(&test.snapshot, NULL);
}

static int stop(void **state)
{
	if (test.kept)
		plx_rpc_reply(test.kept, NULL, 0);
	client_end();
	snapshot_fini(&test.snapshot);
	plx_rpc_service_finish(test.service, PLX_NS_PER_S);
	plx_rpc_service_destroy(test.service);
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

#define LIST(retries, ...)                                                            \
	(test.requests = 0, test.says = (const enum say[]){__VA_ARGS__},              \
	 test.say_count = sizeof((const enum say[]){__VA_ARGS__}) / sizeof(enum say), \
	 client_list(&test.snapshot, 0, retries))

TEST(all_pages_are_listed)
{
	assert_int_equal(LIST(false, PAGE), 0);
	assert_int_equal(test.requests, 3);
	assert_int_equal(store_count(test.snapshot.now), 3);
	assert_null(test.snapshot.next);
}

TEST(a_missing_page_is_requested_again)
{
	assert_int_equal(LIST(true, PAGE, BUSY, PAGE, NOTHING), 0);
	assert_in_range(test.requests, 5, 8);
	assert_int_equal(store_count(test.snapshot.now), 3);
}

TEST(a_missing_page_may_end_the_list)
{
	assert_fails(LIST(false, PAGE, NOTHING), -EAGAIN, "--list: the call ended with: ");
}

/* Its pages are of the service that was lost. */
TEST(a_loss_ends_the_list)
{
	assert_int_equal(LIST(true, PAGE, LOSS), -EAGAIN);
	assert_int_equal(test.requests, 2);
	assert_int_equal(store_count(test.snapshot.now), 1);
	assert_int_equal(LIST(true, PAGE), 0);
	assert_int_equal(store_count(test.snapshot.now), 3);
}

TEST(an_error_ends_the_list)
{
	assert_fails(LIST(true, PAGE, ERROR), -EIO, "--list: no");
	client_fail(-EPIPE);
	assert_int_equal(LIST(true, PAGE), -EPIPE);
}

PLX_FIXTURE(up, plx_eal_init(&(struct plx_eal_conf){.huge = PLX_HUGE_NONE}))
PLX_FIXTURE(down, plx_eal_fini())

PLX_TEST_MAIN_WITH(up, down)
