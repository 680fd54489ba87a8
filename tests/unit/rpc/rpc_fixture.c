/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc_fixture.h"

#include <stdio.h>

struct plx_rpc_service *service, *second_service;
struct plx_rpc_client *caller;
struct plx_rpc_request *kept[KEPT_MAX];
_Atomic unsigned kept_count;
unsigned gone_count, handled_count;
bool gone_refuses;
struct outcome outcome;

static void on_echo(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	handled_count++;
	plx_rpc_reply(request, data, length);
}

static void on_later(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	handled_count++;
	kept[kept_count] = request;
	kept_count++;
}

static void on_gone(struct plx_rpc_request *request, void *arg)
{
	assert_true(plx_rpc_request_is_gone(request));
	gone_count++;
	if (gone_refuses)
		assert_int_equal(plx_rpc_refuse(request, PLX_RPC_CANCELLED, 0), 0);
}

static void on_fail(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	handled_count++;
	plx_rpc_reply_error(request, 77, "no", 2);
}

static void on_build(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	void *at;

	handled_count++;
	assert_int_equal(plx_rpc_reply_begin(request, 2048, &at), 0);
	memset(at, 'x', length);
	plx_rpc_reply_commit(request, length);
}

/* The reply that was begun is not sent; the request's first byte selects what happens instead. */
static void on_begin(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	void *at;

	handled_count++;
	assert_int_equal(plx_rpc_reply_begin(request, 100, &at), 0);
	memset(at, 's', 100);
	switch (*(const char *)data) {
	case 'a':
		plx_rpc_reply_abandon(request);
		plx_rpc_reply_abandon(request);
		plx_rpc_reply(request, "abandoned", 9);
		break;
	case 'b':
		assert_int_equal(plx_rpc_reply_begin(request, 8, &at), 0);
		memcpy(at, "anew", 4);
		plx_rpc_reply_commit(request, 4);
		break;
	case 'r':
		assert_int_equal(plx_rpc_refuse(request, PLX_RPC_DENIED, 0), 0);
		break;
	case 'p':
		plx_rpc_reply(request, "plain", 5);
		break;
	default: /* later */
		kept[kept_count] = request;
		kept_count++;
	}
}

static void on_slow(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	uint64_t until_ns = plx_now_ns() + 2 * PLX_NS_PER_MS;

	handled_count++;
	while (plx_now_ns() < until_ns)
		;
	plx_rpc_reply(request, data, length);
}

static void on_deny(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	handled_count++;
	assert_int_equal(plx_rpc_refuse(request, PLX_RPC_OK, 0), -EINVAL);
	assert_int_equal(plx_rpc_refuse(request, PLX_RPC_DENIED, 0), 0);
}

static void on_tired(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	handled_count++;
	assert_int_equal(plx_rpc_refuse(request, PLX_RPC_BUSY, 0), 0);
}

static void on_version(struct plx_rpc_request *request, const void *data, uint32_t length,
		       void *arg)
{
	struct iovec pieces[] = {{arg, 1}, {(void *)data, length}};

	handled_count++;
	plx_rpc_replyv(request, pieces, 2);
}

static const struct plx_rpc_method methods[] = {
	{.id = ECHO, .name = "echo", .handler = on_echo},
	{.id = LATER, .name = "later", .handler = on_later, .gone = on_gone},
	{.id = FAIL, .name = "fail", .handler = on_fail},
	{.id = BUILD, .name = "build", .handler = on_build},
	{.id = SLOW, .name = "slow", .handler = on_slow},
	{.id = DENY, .name = "deny", .handler = on_deny},
	{.id = ONE, .name = "one", .handler = on_later, .gone = on_gone, .open_max = 1},
	{.id = SHORT, .name = "short", .handler = on_echo, .request_max = 16},
	{.id = TIRED, .name = "tired", .handler = on_tired},
	{.id = TWICE, .version = 1, .name = "twice", .handler = on_version, .arg = "1"},
	{.id = TWICE, .version = 2, .name = "twice", .handler = on_version, .arg = "2"},
	{.id = BEGIN, .name = "begin", .handler = on_begin},
};

struct plx_rpc_service *make_service(const char *address, const struct plx_rpc_service_attr *attr)
{
	struct plx_rpc_service *made;

	assert_int_equal(plx_rpc_service_create(attr, &made), 0);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(methods); i++)
		assert_int_equal(plx_rpc_service_add(made, &methods[i]), 0);
	if (plx_rpc_service_listen(made, address, NULL) != 0)
		fail_msg("plx_rpc_service_listen: %s", plx_error());
	return made;
}

struct plx_rpc_client *make_client(const char *const *addresses,
				   const struct plx_rpc_client_attr *attr)
{
	struct plx_rpc_client *made;

	if (plx_rpc_client_create(addresses, attr, &made) != 0)
		fail_msg("plx_rpc_client_create: %s", plx_error());
	return made;
}

struct plx_rpc_client *make_client_of(const struct plx_rpc_service *of,
				      const struct plx_rpc_client_attr *attr)
{
	return make_client((const char *const[]){plx_rpc_service_address(of, 0), NULL}, attr);
}

void wait_up(struct plx_rpc_client *which)
{
	PUMP_UNTIL(plx_rpc_client_is_up(which));
}

void rpc_start(const char *provider, const struct plx_rpc_service_attr *service_attr,
	       const struct plx_rpc_client_attr *client_attr)
{
	kept_count = gone_count = handled_count = 0;
	gone_refuses = false;
	outcome.count = 0;
	fixture_start(provider, false);
	service = make_service(here("0"), service_attr);
	caller = make_client_of(service, client_attr);
	wait_up(caller);
}

void rpc_start_two(const struct plx_rpc_service_attr *attr)
{
	kept_count = gone_count = handled_count = 0;
	fixture_start("tcp", false);
	service = make_service(here("0"), attr);
	second_service = make_service(here("0"), NULL);
	caller = make_client((const char *const[]){plx_rpc_service_address(service, 0),
						   plx_rpc_service_address(second_service, 0),
						   NULL},
			     NULL);
	PUMP_UNTIL(client_stats().links == 2);
}

void destroy_service(struct plx_rpc_service **which)
{
	plx_rpc_service_destroy(*which);
	*which = NULL;
}

void rpc_stop(void)
{
	plx_rpc_client_destroy(caller);
	caller = NULL;
	for (unsigned i = 0; i < kept_count; i++) {
		if (kept[i])
			plx_rpc_reply(kept[i], NULL, 0);
	}
	destroy_service(&second_service);
	destroy_service(&service);
	PUMP_UNTIL(!plx_fabric_open_count());
	fixture_stop();
}

int rpc_up(void **state)
{
	rpc_start("tcp", NULL, NULL);
	return 0;
}

int rpc_up_shm(void **state)
{
	rpc_start("shm", NULL, NULL);
	return 0;
}

int rpc_down(void **state)
{
	rpc_stop();
	return 0;
}

void note_outcome(const struct plx_rpc_result *result, void *arg)
{
	struct outcome *it = arg;
	uint32_t copied = result->length < sizeof(it->data) ? result->length : sizeof(it->data);

	it->status = result->status;
	it->code = result->code;
	it->handler_ns = result->handler_ns;
	it->retry_after_ns = result->retry_after_ns;
	it->may_have_run = result->may_have_run;
	it->length = result->length;
	if (copied)
		memcpy(it->data, result->data, copied);
	it->count++;
}

static plx_rpc_call_id call_with(const struct plx_rpc_call *call, const void *data, size_t length,
				 struct outcome *it)
{
	plx_rpc_call_id id;

	*it = (struct outcome){0};
	if (plx_rpc_call(caller, call, data, length, &id) != 0)
		fail_msg("plx_rpc_call: %s", plx_error());
	assert_int_equal(it->count, 0); /* never inside the call */
	return id;
}

plx_rpc_call_id call_as(struct plx_rpc_call call, const void *data, size_t length,
			struct outcome *it)
{
	call.done = note_outcome;
	call.arg = it;
	return call_with(&call, data, length, it);
}

plx_rpc_call_id call_it(uint32_t method, const void *data, size_t length, struct outcome *it)
{
	struct plx_rpc_call call = {.method = method, .done = note_outcome, .arg = it};

	return call_with(&call, data, length, it);
}

plx_rpc_call_id call_within(uint32_t method, uint64_t deadline_ns, struct outcome *it)
{
	struct plx_rpc_call call = {
		.method = method, .deadline_ns = deadline_ns, .done = note_outcome, .arg = it};

	return call_with(&call, NULL, 0, it);
}

void wait_done(struct outcome *it)
{
	assert_true(pump_until(&it->count, 1, 20000));
	assert_int_equal(it->count, 1);
}

void expect_reply(struct outcome *it, const char *text)
{
	wait_done(it);
	assert_int_equal(it->status, PLX_RPC_OK);
	assert_int_equal(it->length, strlen(text));
	assert_memory_equal(it->data, text, strlen(text));
}

void is_kept(unsigned count)
{
	assert_true(pump_until(&kept_count, count, 3000));
}

void reply_to(unsigned i, const char *text)
{
	assert_int_equal(plx_rpc_reply(kept[i], text, strlen(text)), 0);
	kept[i] = NULL;
}

struct plx_rpc_service_stats service_stats(void)
{
	struct plx_rpc_service_stats stats;

	plx_rpc_service_stats(service, &stats);
	return stats;
}

struct plx_rpc_client_stats client_stats(void)
{
	struct plx_rpc_client_stats stats;

	plx_rpc_client_stats(caller, &stats);
	return stats;
}

void rpc_say(struct plx_link_attr *attr, enum rpc_role role)
{
	struct rpc_greeting greeting = {
		.version_min = RPC_VERSION_MIN,
		.version_max = RPC_VERSION_MAX,
		.role = (uint8_t)role,
		.open_max = 100,
		.payload_max = 1000,
		.identity = 1,
	};

	rpc_greeting_write(attr->hello, &greeting);
	attr->hello_length = RPC_GREETING_BYTES;
}
