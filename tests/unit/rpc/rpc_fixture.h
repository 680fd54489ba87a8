/* SPDX-License-Identifier: BSD-3-Clause */
/* A service with some methods, and clients of it, based on the fixture of links. */
#ifndef RPC_FIXTURE_H
#define RPC_FIXTURE_H

#include "../fabric/fixture.h"

#include "plx_rpc.h"
#include "rpc_wire.h"

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

extern struct plx_rpc_service *service;
extern struct plx_rpc_service *second_service; /* of rpc_start_two */
extern struct plx_rpc_client *caller;

/* What LATER and ONE keep, in order of arrival. */
extern struct plx_rpc_request *kept[KEPT_MAX];
extern _Atomic unsigned kept_count;
extern unsigned gone_count;    /* of them, those whose loss was reported */
extern unsigned handled_count; /* requests that any handler got */
extern bool gone_refuses;      /* lost ones are refused with CANCELLED */

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

extern struct outcome outcome; /* for tests with one call at a time */

void note_outcome(const struct plx_rpc_result *result, void *arg);

/* A listening service and a connected client. Attributes may be NULL. */
void rpc_start(const char *provider, const struct plx_rpc_service_attr *service_attr,
	       const struct plx_rpc_client_attr *client_attr);

/* Two services, and a client of both, over TCP. attr: of `service`. */
void rpc_start_two(const struct plx_rpc_service_attr *attr);

/* Stop everything; kept requests are replied to. */
void rpc_stop(void);

/* A test with a service and a client over TCP, or one that starts what it needs. */
int rpc_up(void **state);
int rpc_up_shm(void **state);
int rpc_down(void **state);

#define TEST(name)      PLX_TEST_WITH(name, rpc_up, rpc_down)
#define TEST_BARE(name) PLX_TEST_WITH(name, NULL, rpc_down)

/* A service of that kind, listening at an address; "127.0.0.1:0" uses the fixture's host. */
struct plx_rpc_service *make_service(const char *address, const struct plx_rpc_service_attr *attr);
struct plx_rpc_client *make_client(const char *const *addresses,
				   const struct plx_rpc_client_attr *attr);
struct plx_rpc_client *make_client_of(const struct plx_rpc_service *of,
				      const struct plx_rpc_client_attr *attr);

/* Turn the loop until the client has a service to call. */
void wait_up(struct plx_rpc_client *which);

/* Turn the loop until both ends report the closure. */
void destroy_service(struct plx_rpc_service **which);

/* Call a method; it must be accepted. Return: its number. */
plx_rpc_call_id call_it(uint32_t method, const void *data, size_t length, struct outcome *outcome);

/* The same with the call's attributes; the outcome gets the result. */
plx_rpc_call_id call_as(struct plx_rpc_call call, const void *data, size_t length,
			struct outcome *outcome);

/* The same, with that deadline. */
plx_rpc_call_id call_within(uint32_t method, uint64_t deadline_ns, struct outcome *outcome);

/* Turn the loop until it is done, at most a few seconds. */
void wait_done(struct outcome *outcome);

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

/* Turn the loop until cond holds; fail if it never does. */
#define PUMP_UNTIL(cond)                                         \
	do {                                                     \
		for (int ms_ = 0; ms_ < 20000 && !(cond); ms_++) \
			pump_ms(1);                              \
		assert_true(cond);                               \
	} while (0)

/* It is done, with this reply. */
void expect_reply(struct outcome *outcome, const char *text);

/* That many requests have reached LATER and ONE. */
void is_kept(unsigned count);

/* Reply to the i-th kept request. */
void reply_to(unsigned i, const char *text);

struct plx_rpc_service_stats service_stats(void);
struct plx_rpc_client_stats client_stats(void);

/* Set the HELLO of a raw link to that of a valid client or service, which takes 1000 bytes. */
void rpc_say(struct plx_link_attr *attr, enum rpc_role role);

#endif
