/* SPDX-License-Identifier: BSD-3-Clause */
/* Listing everything from a scripted service: failed pages, and restarts meanwhile. */
#include "plx_test.h"

#include "listing.h"
#include "plx_eal.h"
#include "wire.h"

#include <stdio.h>

#define DEADLINE_NS (200 * PLX_NS_PER_MS)
#define LIMIT_NS    (20 * PLX_NS_PER_S)

enum say { PAGE, BUSY, OVERLOADED, NOTHING, ERROR };

static struct {
	struct plx_rpc_service *service;
	struct plx_rpc_client *client;
	const enum say *says; /* to successive requests; PAGE to later ones */
	unsigned say_count, requests;
	unsigned begin_at, more_at, stop_at; /* requests at which the listing changes; 0: none */
	struct plx_rpc_request *kept;
	struct listing listing;
	char heard[256];
} test;

static void hear(const char *text)
{
	size_t used = strlen(test.heard);

	snprintf(test.heard + used, sizeof(test.heard) - used, "%s ", text);
}

static void reply_page(struct plx_rpc_request *request, const struct list_order *order)
{
	static uint8_t bytes[WIRE_PAGE_MAX];
	char name = order->after_length ? (char)(order->after[0] + 1) : 'a';
	struct param param = {
		.name = &name,
		.name_length = 1,
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
	if (test.requests == test.begin_at)
		listing_begin(&test.listing);
	if (test.requests == test.more_at)
		listing_once_more(&test.listing);
	if (test.requests == test.stop_at)
		listing_stop(&test.listing);
	if (say == PAGE)
		reply_page(request, &order);
	else if (say == ERROR)
		plx_rpc_reply_error(request, PARAMS_BAD, "no", 2);
	else if (say == NOTHING)
		test.kept = request;
	else
		plx_rpc_refuse(request, say == BUSY ? PLX_RPC_BUSY : PLX_RPC_OVERLOADED,
			       PLX_NS_PER_MS);
}

static void on_begun(void *arg)
{
	hear("begun");
}

static void on_found(const struct param *param, void *arg)
{
	hear((char[]){param->name[0], '\0'});
}

static void on_ended(void *arg)
{
	hear("ended");
	if (!test.listing.once_more)
		plx_loop_quit();
}

static void on_failed(int rc, void *arg)
{
	hear("failed");
	plx_loop_quit();
}

static void on_limit(struct plx_timer *timer, void *arg)
{
	plx_loop_quit();
}

static void turn_for(uint64_t limit_ns)
{
	struct plx_timer limit;

	plx_timer_init(&limit, on_limit, NULL);
	assert_int_equal(plx_timer_start(&limit, limit_ns), 0);
	plx_loop_run();
	plx_timer_stop(&limit);
}

static const char *list(const enum say *says, unsigned count)
{
	test.says = says;
	test.say_count = count;
	listing_begin(&test.listing);
	turn_for(LIMIT_NS);
	return test.heard;
}

static int start(void **state)
{
	static const struct plx_rpc_method method = {
		.id = PARAMS_LIST, .name = "list", .handler = on_list};
	const char *addresses[2] = {0};

	memset(&test, 0, sizeof(test));
	assert_int_equal(plx_rpc_service_create(NULL, &test.service), 0);
	assert_int_equal(plx_rpc_service_add(test.service, &method), 0);
	assert_int_equal(plx_rpc_service_listen(test.service, "127.0.0.1:0", NULL), 0);
	addresses[0] = plx_rpc_service_address(test.service, 0);
	assert_int_equal(plx_rpc_client_create(addresses, NULL, &test.client), 0);
	test.listing = (struct listing){
		.client = test.client,
		.below = "",
		.deadline_ns = DEADLINE_NS,
		.begun = on_begun,
		.found = on_found,
		.ended = on_ended,
		.failed = on_failed,
	};
	wait_doing(plx_rpc_client_is_up(test.client), turn_for(PLX_NS_PER_MS));
	return 0;
}

static int stop(void **state)
{
	if (test.kept)
		plx_rpc_reply(test.kept, NULL, 0);
	listing_stop(&test.listing);
	plx_rpc_client_destroy(test.client);
	plx_rpc_service_finish(test.service, PLX_NS_PER_S);
	plx_rpc_service_destroy(test.service);
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

TEST(all_pages_are_listed)
{
	assert_string_equal(list(NULL, 0), "begun a b c ended ");
}

TEST(a_missing_page_is_requested_again)
{
	static const enum say says[] = {PAGE, BUSY, OVERLOADED, PAGE, NOTHING};

	assert_string_equal(list(says, PLX_ARRAY_LEN(says)), "begun a b c ended ");
	assert_true(test.requests >= 6);
}

/* An earlier page may lack the parameter that caused the restart. */
TEST(a_listing_may_restart)
{
	test.begin_at = 2;
	assert_string_equal(list(NULL, 0), "begun a begun a b c ended ");
}

/* Its results count, so that it ends although more and more is added. */
TEST(a_listing_ends_before_it_restarts)
{
	test.more_at = 2;
	assert_string_equal(list(NULL, 0), "begun a b c ended begun a b c ended ");
}

TEST(a_listing_may_restart_after_a_missing_page)
{
	static const enum say says[] = {PAGE, NOTHING};

	test.begin_at = 2;
	assert_string_equal(list(says, PLX_ARRAY_LEN(says)), "begun a begun a b c ended ");
}

TEST(a_stopped_listing_reports_nothing)
{
	static const enum say says[] = {PAGE, BUSY};

	test.stop_at = 2;
	listing_begin(&test.listing);
	test.says = says;
	test.say_count = PLX_ARRAY_LEN(says);
	turn_for(2 * DEADLINE_NS);
	assert_string_equal(test.heard, "begun a ");
	assert_string_equal(list(NULL, 0), "begun a begun a b c ended ");
}

TEST(an_error_ends_the_listing)
{
	static const enum say says[] = {PAGE, ERROR};

	assert_string_equal(list(says, PLX_ARRAY_LEN(says)), "begun a failed ");
	assert_error_has("the service does not list its parameters: ");
}

PLX_FIXTURE(up, plx_eal_init(&(struct plx_eal_conf){.huge = PLX_HUGE_NONE}))
PLX_FIXTURE(down, plx_eal_fini())

PLX_TEST_MAIN_WITH(up, down)
