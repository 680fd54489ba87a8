/* SPDX-License-Identifier: BSD-3-Clause */
/* A process with one or two lcores and the fabric, and links whose events are recorded. Both ends
 * of a link may be on one lcore: pump() turns its loop. */
#ifndef FABRIC_FIXTURE_H
#define FABRIC_FIXTURE_H

#include "../plx_test.h"

#include "plx_fabric.h"
#include "plx_fabric_driver.h"
#include "plx_lcore.h"
#include "plx_mem.h"

/** One side of a link, and its recorded events. */
struct side {
	struct plx_link *link; /* NULL once it has ended */
	const char *name;
	_Atomic unsigned opened, closed, writable, messages; /* the side may be on another lcore */
	uint64_t bytes;
	unsigned suspect, heard; /* event counts */
	enum plx_link_reason reason;
	enum plx_link_reason reason_asked; /* plx_link_reason in on_close */
	uint32_t unfinished;               /* when it ended */
	char text[256];
	uint8_t *last; /* copy of the newest message */
	size_t last_len;
	bool echo;     /* send everything back */
	unsigned keep; /* messages to keep by reference */
	struct plx_buf *kept[512];
	unsigned kept_count;
	uint64_t sequence_errors, next_sequence; /* of messages that start with a 64-bit number */
	bool sequenced;
	_Atomic unsigned puts; /* reported puts */
	uint32_t value;        /* of the newest */
	uint32_t lcore;        /* of the newest link */
	void (*on_message)(struct side *side, struct plx_buf *message);
	void (*on_put)(struct side *side, uint32_t value);
	void (*on_writable)(struct side *side);
};

extern const struct plx_link_events side_events;

/** The next accepted link becomes this side. */
extern struct side server;
extern struct side client;

/** Tests run over TCP on loopback, unless the environment gives another provider for it and a host:
 * PLX_TEST_PROVIDER and PLX_TEST_HOST (tests/rdma). */
bool is_provider_given(void);
const char *provider_to_test(void);

/** Whether that host is at an iWARP device, over verbs. */
bool is_over_iwarp(void);

extern const struct plx_fabric_driver plx_driver_tcp, plx_driver_shm;

/** "foreign": libfabric's own TCP provider. */
extern const struct plx_fabric_driver *const foreign_drivers[];

/** "HOST:port"; valid for three more calls. */
const char *here(const char *port);

/** That host with the listener's port; valid until the next call. */
const char *at_host(const char *host, const struct plx_listener *listener);

/** Fresh sides, lcores 0 (and 1 if two), memory, fabric. provider: as for plx_fabric_conf, or
 * "foreign"; NULL and "tcp" mean provider_to_test() if one is given. Without drivers it has all. */
void fixture_start(const char *provider, bool two_lcores);
void fixture_start_as(const struct plx_fabric_conf *conf, bool two_lcores);

/** On provider_to_test(), with these times. */
void fixture_start_beating(uint64_t heartbeat_ns, uint64_t dead_after_ns, bool two_lcores);

/** Stop everything; fails if a pool or a link is left. */
void fixture_stop(void);

/** Set-ups and teardowns of tests. fixture_up uses fixture_provider: "tcp", or see FIXTURE_MAIN. */
extern const char *fixture_provider;
int fixture_up(void **state);
int fixture_up_with_pair(void **state);   /* and a link */
int fixture_up_with_worker(void **state); /* two lcores, provider NULL */
int fixture_down(void **state);
int fixture_down_with_worker(void **state);

/** Forget what the two sides recorded, for another connection. */
void fixture_renew_sides(void);

/** Abort the client's link, and renew the sides once both have ended. */
void fixture_disconnect(void);

/** Turn the loop until *value is at least target, at most limit_ms. Return: whether it got there.
 */
bool pump_until(const _Atomic unsigned *value, unsigned target, unsigned limit_ms);

/** Turn the loop for that long. */
void pump_ms(unsigned ms);

/** Let time pass without a turn. */
void stand_still(uint64_t ns);

/** Turn the loop until the condition holds; fails the test after 5 s. */
#define expect_soon(condition)                                       \
	do {                                                         \
		for (int ms_ = 0; ms_ < 5000 && !(condition); ms_++) \
			pump_ms(1);                                  \
		if (!(condition))                                    \
			fail_msg("not in time: %s", #condition);     \
	} while (0)

/** Fail unless the text contains that part; shows the text. */
#define assert_has(text, part)                                       \
	do {                                                         \
		if (!strstr((text), (part)))                         \
			fail_msg("'%s' lacks '%s'", (text), (part)); \
	} while (0)

/** Listen on address with attr's sizes, or as attr says; accepted links become `server`. */
struct plx_listener *fixture_listen(const char *address, const struct plx_link_attr *attr);
struct plx_listener *fixture_listen_as(const char *address, struct plx_listen_attr attr);

/** Set the newest accepted link aside: it becomes that side, and the next one `server`. */
void server_set_aside(struct side *to);

/** Begin to connect a side. attr may be NULL here and below. */
void side_connect(struct side *side, const char *address, const struct plx_link_attr *attr);

/** The same for `client`. */
void client_connect(const char *address, const struct plx_link_attr *attr);

/** Connect `client` and wait until both sides are open; fails the test if they do not get there. */
void fixture_connect(struct plx_listener *listener, const struct plx_link_attr *attr);

/** The same, to a new listener at a free port with the same attr. */
struct plx_listener *fixture_pair(const struct plx_link_attr *attr);

/** Wait until both sides are open, until one has ended, for that reason, or until both have. */
void expect_open(void);
void expect_end(struct side *side, enum plx_link_reason reason);
void expect_both_end(void);

/** Wait until the side has received that many messages, of which the last is this one. */
void expect_message(const struct side *side, unsigned count, const void *bytes, size_t length);

/** Send a message from client to server and wait for it, or until it has come back. */
void expect_arrival(const void *bytes, size_t length);
void expect_echo(const void *bytes, size_t length);

/** That many bytes, of which no two pages are the same; free it. */
uint8_t *fixture_pattern(size_t size, unsigned seed);

/** Where listeners place links: on lcore 1. */
uint32_t place_on_lcore_1(struct plx_listener *at, const struct sockaddr *peer, void *arg);

/** Let lcore 1 run its loop; and end it. */
void worker_start(void);
void worker_stop(void);

/** Run fn(arg) on lcore 1, which runs its loop, and turn this loop until it has returned. */
void worker_call(plx_message_fn fn, void *arg);

/** Wait until lcore 1 has finished its present turn. */
void worker_end_turn(void);

/** Whether the listener has a request that is no open link yet, and was not refused. */
bool has_request_on_its_way(const struct plx_listener *listener);

/** Raise the limit of descriptors. */
void more_descriptors(void);

/** Release kept messages of the side. */
void side_release(struct side *side, unsigned count);

/** Counters, and bytes in use of the zones. */
struct plx_link_stats stats_of(const struct plx_link *link);
struct plx_listener_stats listener_stats_of(const struct plx_listener *listener);
uint64_t zone_bytes_used(void);

/** Skip a test that needs the driver tcp, or another one of this host. */
static inline void skip_if_provider_given(void)
{
	if (is_provider_given())
		skip();
}

/* main: run the tests of this file over each of these providers in turn, or only over the given
 * one. */
#define FIXTURE_MAIN(...)                                                     \
	int main(void)                                                        \
	{                                                                     \
		return fixture_run((const char *const[]){__VA_ARGS__, NULL}); \
	}

static inline int fixture_run(const char *const *providers)
{
	int failed = 0;

	for (unsigned i = 0; providers[i] && (i == 0 || !is_provider_given()); i++) {
		fixture_provider = providers[i];
		failed += plx_test_run(providers[i], NULL, NULL);
	}
	return failed;
}

#endif
