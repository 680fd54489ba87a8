/* SPDX-License-Identifier: BSD-3-Clause */
/* A service with some methods, and clients of it, based on the fixture of links. */
#ifndef RPC_FIXTURE_H
#define RPC_FIXTURE_H

#include "../fabric/fixture.h"

#include "plx_rpc.h"
#include "rpc_wire.h"

#include <stdio.h>

enum {
	ECHO = 1,   /* the request back */
	LATER = 2,  /* kept: see `kept` */
	FAIL = 3,   /* error 77, "no" */
	BUILD = 4,  /* in place: the request's length in bytes 'x' */
	SLOW = 5,   /* 2 ms */
	DENY = 6,   /* refused */
	ONE = 7,    /* as LATER, one at a time */
	SHORT = 8,  /* as ECHO, up to 16 bytes */
	TWICE = 9,  /* as ECHO, versions 1 and 2: the version and the request */
	TIRED = 10, /* refused with BUSY */
	BEGIN = 11, /* begins a reply in place and does not send it: see on_begin */
};

#define KEPT_MAX 4096

static struct plx_rpc_service *service;
static struct plx_rpc_service *second_service; /* of rpc_start_two */
static struct plx_rpc_client *caller;

/* What LATER and ONE keep, in order of arrival. */
static struct plx_rpc_request *kept[KEPT_MAX];
static _Atomic unsigned kept_count;
static unsigned gone_count;    /* of them, those whose loss was reported */
static unsigned handled_count; /* requests that any handler got */
static bool gone_refuses;      /* lost ones are refused with CANCELLED */

/* How a call ended. */
struct outcome {
	_Atomic unsigned count;
	enum plx_rpc_status status;
	uint32_t code;
	uint64_t handler_ns, retry_after_ns;
	bool may_have_run;
	uint32_t length;
	char data[256]; /* as much as fits */
};

static struct outcome outcome; /* for tests with one call at a time */

/* Turn the loop until cond holds; fail if it never does. */
#define PUMP_UNTIL(cond) wait_doing(cond, plx_loop_turn())

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
	char reply[256] = {*(const char *)arg};

	handled_count++;
	assert_in_range(length, 0, sizeof(reply) - 1);
	memcpy(reply + 1, data, length);
	plx_rpc_reply(request, reply, 1 + length);
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

/* A service with these methods, listening at an address; "127.0.0.1:0" uses the fixture's host. */
static inline struct plx_rpc_service *make_service_of(const struct plx_rpc_method *its,
						      unsigned count, const char *address,
						      const struct plx_rpc_service_attr *attr,
						      const struct plx_listen_attr *listen)
{
	struct plx_rpc_service *made;

	assert_works(plx_rpc_service_create(attr, &made));
	for (unsigned i = 0; i < count; i++)
		assert_works(plx_rpc_service_add(made, &its[i]));
	assert_works(plx_rpc_service_listen(made, address, listen));
	return made;
}

static inline struct plx_rpc_service *make_service(const char *address,
						   const struct plx_rpc_service_attr *attr)
{
	return make_service_of(methods, PLX_ARRAY_LEN(methods), address, attr, NULL);
}

/* attr may be NULL. Calls get more than the default deadline of 1 s, because the host may be busy.
 */
static inline struct plx_rpc_client *make_client(const char *const *addresses,
						 const struct plx_rpc_client_attr *attr)
{
	struct plx_rpc_client_attr patient = attr ? *attr : (struct plx_rpc_client_attr){0};
	struct plx_rpc_client *made;

	patient.deadline_ns = patient.deadline_ns ?: 20 * PLX_NS_PER_S;
	assert_works(plx_rpc_client_create(addresses, &patient, &made));
	return made;
}

static inline struct plx_rpc_client *make_client_of(const struct plx_rpc_service *of,
						    const struct plx_rpc_client_attr *attr)
{
	return make_client((const char *const[]){plx_rpc_service_address(of, 0), NULL}, attr);
}

PLX_READS(struct plx_rpc_service_stats, service_stats, (void),
	  plx_rpc_service_stats_read(service, &it))
PLX_READS(struct plx_rpc_client_stats, client_stats, (void), plx_rpc_client_stats_read(caller, &it))

/* Turn the loop until the client has a service to call. */
static inline void wait_up(struct plx_rpc_client *which)
{
	PUMP_UNTIL(plx_rpc_client_is_up(which));
}

/* A listening service and a connected client. Attributes may be NULL. */
static inline void rpc_start(const char *provider, const struct plx_rpc_service_attr *service_attr,
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

/* Two services, and a client of both, over TCP. attr: of `service`. */
static inline void rpc_start_two(const struct plx_rpc_service_attr *attr)
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

/* `service` with one method, and `caller`, its client. */
static inline void start_method(const struct plx_rpc_method *its,
				const struct plx_rpc_service_attr *attr,
				const struct plx_rpc_client_attr *client_attr)
{
	kept_count = gone_count = handled_count = 0;
	service = make_service_of(its, 1, here("0"), attr, NULL);
	caller = make_client_of(service, client_attr);
	wait_up(caller);
}

static inline void destroy_service(struct plx_rpc_service **which)
{
	plx_rpc_service_destroy(*which);
	*which = NULL;
}

static char service_address[PLX_ADDRESS_MAX]; /* of end_service */

/* End it, until the client knows; it may be made again at that address. */
static inline void end_service(void)
{
	snprintf(service_address, sizeof(service_address), "%s",
		 plx_rpc_service_address(service, 0));
	destroy_service(&service);
	PUMP_UNTIL(!plx_rpc_client_is_up(caller));
}

static inline void destroy_caller(void)
{
	plx_rpc_client_destroy(caller);
	caller = NULL;
}

/* Stop everything; kept requests are replied to. */
static inline void rpc_stop(void)
{
	destroy_caller();
	for (unsigned i = 0; i < kept_count; i++) {
		if (kept[i])
			plx_rpc_reply(kept[i], NULL, 0);
	}
	destroy_service(&second_service);
	destroy_service(&service);
	PUMP_UNTIL(!plx_fabric_open_count());
	fixture_stop();
}

PLX_FIXTURE(rpc_up, 0, rpc_start("tcp", NULL, NULL))
PLX_FIXTURE(rpc_down, 0, rpc_stop())

static inline void note_outcome(const struct plx_rpc_result *result, void *arg)
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

/* Make a call, which must be accepted; the outcome gets the result. Return: its number. */
static inline plx_rpc_call_id call_as(struct plx_rpc_call call, const void *data, size_t length,
				      struct outcome *it)
{
	plx_rpc_call_id id;

	*it = (struct outcome){0};
	call.done = note_outcome;
	call.arg = it;
	assert_works(plx_rpc_call_start(caller, &call, data, length, &id));
	assert_int_equal(it->count, 0); /* never inside the call */
	return id;
}

static inline plx_rpc_call_id call_it(uint32_t method, const void *data, size_t length,
				      struct outcome *it)
{
	return call_as((struct plx_rpc_call){.method = method}, data, length, it);
}

static inline plx_rpc_call_id call_within(uint32_t method, uint64_t deadline_ns, struct outcome *it)
{
	return call_as((struct plx_rpc_call){.method = method, .deadline_ns = deadline_ns}, NULL, 0,
		       it);
}

/* Turn the loop until it is done, at most a few seconds. */
static inline void wait_done(struct outcome *it)
{
	PUMP_UNTIL(it->count);
	assert_int_equal(it->count, 1);
}

static inline void assert_text(const struct outcome *it, const char *text)
{
	assert_int_equal(it->length, strlen(text));
	assert_memory_equal(it->data, text, it->length);
}

/* It is done, with this reply. */
static inline void expect_reply(struct outcome *it, const char *text)
{
	wait_done(it);
	assert_int_equal(it->status, PLX_RPC_OK);
	assert_text(it, text);
}

/* That many requests have reached LATER and ONE. */
static inline void is_kept(unsigned count)
{
	PUMP_UNTIL(kept_count >= count);
}

/* Refuse, or reply to, the i-th kept request. */
static inline void refuse(unsigned i, enum plx_rpc_status status)
{
	assert_int_equal(plx_rpc_refuse(kept[i], status, 0), 0);
	kept[i] = NULL;
}

static inline void reply_to(unsigned i, const char *text)
{
	assert_int_equal(plx_rpc_reply(kept[i], text, strlen(text)), 0);
	kept[i] = NULL;
}

/* Set the HELLO of a raw link to that of a valid client or service, which takes 1000 bytes. */
static inline void rpc_say(struct plx_link_attr *attr, enum rpc_role role)
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

/* Connect `client` to the service as a raw link. attr may be NULL: with a valid HELLO. */
static inline void connect_raw(const struct plx_link_attr *attr)
{
	struct plx_link_attr link = attr ? *attr : (struct plx_link_attr){0};

	memset(&client, 0, sizeof(client));
	if (!attr)
		rpc_say(&link, RPC_CLIENT);
	link.events = &side_events;
	link.user = &client;
	assert_works(plx_link_connect(plx_rpc_service_address(service, 0), &link, &client.link));
	if (!attr)
		PUMP_UNTIL(client.opened >= 1);
}

/* It is done, with that status. */
#define expect_status(outcome, expected)                       \
	do {                                                   \
		wait_done(outcome);                            \
		assert_int_equal((outcome)->status, expected); \
	} while (0)

/* Call a method to its end. */
#define call_expecting(expected, method, data, length, outcome) \
	do {                                                    \
		call_it(method, data, length, outcome);         \
		expect_status(outcome, expected);               \
	} while (0)

/* A test with a service and a client over TCP, or one that starts what it needs. */
#define TEST(name)      PLX_TEST_WITH(name, rpc_up, rpc_down)
#define TEST_BARE(name) PLX_TEST_WITH(name, NULL, rpc_down)

#endif
