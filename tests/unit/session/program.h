/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with one session, which counts its callbacks and may close itself in one of them. The
 * peer is `server` of the fabric's fixture. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "../fabric/fixture.h"
#include "log_capture.h"
#include "plx_session.h"

static struct program {
	struct plx_session *session; /* NULL: it has ended */
	struct plx_link *link;       /* of its newest on_open; NULL: it has ended */
	_Atomic unsigned opened, closed, refused, messages, settles, ended;
	enum plx_link_reason reason; /* of the newest on_close or on_refused */
	enum plx_link_reason closed_as;
	char text[400];
	char refused_at[PLX_ADDRESS_MAX], opened_at[PLX_ADDRESS_MAX];
	const char *closes_in; /* this callback; NULL: in none */
	const char *refuses;   /* the peer's HELLO; NULL: it does not */
	bool has_closed;       /* in that callback */
	bool settles_later;
	bool in_call; /* of the API: no callback may run */
} program;

static inline void note(const char *callback)
{
	assert_false(program.in_call);
	assert_int_equal(program.ended, 0);
	if (!program.closes_in || strcmp(program.closes_in, callback) != 0)
		return;
	program.has_closed = true;
	program.in_call = true;
	plx_session_close(program.session);
	program.in_call = false;
}

static inline const char *program_on_hello(struct plx_link *link, void *user)
{
	assert_ptr_equal(user, &program);
	note("on_hello");
	return program.refuses;
}

static inline void program_on_open(struct plx_link *link, void *user)
{
	assert_ptr_equal(user, &program);
	assert_ptr_equal(plx_session_link(program.session), link);
	program.link = link;
	program.opened++;
	snprintf(program.opened_at, sizeof(program.opened_at), "%s",
		 plx_session_address(program.session));
	note("on_open");
}

static inline void program_on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	assert_ptr_equal(user, &program);
	program.messages++;
	note("on_message");
}

static inline void note_reason(enum plx_link_reason reason, const char *text)
{
	program.reason = reason;
	snprintf(program.text, sizeof(program.text), "%s", text);
}

static inline void program_on_close(struct plx_link *link, enum plx_link_reason reason,
				    const char *text, void *user)
{
	assert_ptr_equal(link, program.link);
	assert_int_equal(plx_link_reason(link),
			 reason == PLX_LINK_TIMEOUT ? PLX_LINK_ABORTED : reason);
	assert_null(plx_session_link(program.session));
	program.link = NULL;
	program.closed++;
	program.closed_as = reason;
	note_reason(reason, text);
	note("on_close");
}

static inline void program_on_refused(struct plx_session *session, enum plx_link_reason reason,
				      const char *text, void *user)
{
	assert_ptr_equal(session, program.session);
	assert_ptr_equal(user, &program);
	program.refused++;
	note_reason(reason, text);
	snprintf(program.refused_at, sizeof(program.refused_at), "%s",
		 plx_session_address(session));
	note("on_refused");
}

static inline bool program_on_settle(struct plx_session *session, struct plx_link *link, void *user)
{
	assert_ptr_equal(plx_session_link(session), link);
	program.settles++;
	note("on_settle");
	return !program.settles_later;
}

static inline void program_on_end(struct plx_session *session, void *user)
{
	assert_ptr_equal(session, program.session);
	assert_ptr_equal(user, &program);
	assert_null(program.link);
	note("on_end");
	program.session = NULL;
	program.ended++;
}

static const struct plx_link_events program_link_events = {
	.on_hello = program_on_hello,
	.on_open = program_on_open,
	.on_message = program_on_message,
	.on_close = program_on_close,
};

static const struct plx_session_events program_events = {
	.on_refused = program_on_refused,
	.on_settle = program_on_settle,
	.on_end = program_on_end,
};

/* Back-offs of milliseconds; or of an hour, so that a test ends before. */
#define SOON  .reconnect_min_ns = PLX_NS_PER_MS, .reconnect_max_ns = 5 * PLX_NS_PER_MS
#define NEVER .reconnect_min_ns = 3600 * PLX_NS_PER_S

static inline int program_try(const char *addresses, struct plx_session_attr attr)
{
	int rc;

	attr.link.events = &program_link_events;
	attr.link.user = &program;
	program.in_call = true;
	rc = plx_session_connect(addresses, &attr, &program.session);
	program.in_call = false;
	return rc;
}

static inline void program_connect(const char *addresses, struct plx_session_attr attr)
{
	attr.events = attr.events ?: &program_events;
	assert_works(program_try(addresses, attr));
}

static inline void expect_opened(unsigned count)
{
	if (!pump_until(&program.opened, count, 10000))
		fail_msg("not open: '%s'", program.text);
	assert_true(pump_until(&server.opened, 1, 5000));
}

/* Several addresses, as one list; valid until the next call. */
static inline const char *list_of(const char *first, const char *second)
{
	static char list[2 * PLX_ADDRESS_MAX];

	snprintf(list, sizeof(list), "%s,%s", first, second);
	return list;
}

static struct plx_listener *listener;
static char listened[64]; /* its address */

static inline void listen_again(void)
{
	free(server.last);
	memset(&server, 0, sizeof(server));
	listener = fixture_listen(listened, NULL);
}

static inline void listen_no_more(void)
{
	plx_listener_close(listener);
	listener = NULL;
}

static inline int program_start(bool two_lcores)
{
	fixture_start_beating(PLX_NEVER, PLX_NEVER, two_lcores);
	memset(&program, 0, sizeof(program));
	log_capture();
	listener = fixture_listen(here("0"), NULL);
	snprintf(listened, sizeof(listened), "%s", plx_listener_address(listener));
	return 0;
}

PLX_FIXTURE(program_up, program_start(false), (void)0)
PLX_FIXTURE(program_up_with_worker, program_start(true), (void)0)

static inline int program_down(void **state)
{
	program.closes_in = NULL;
	program.settles_later = false;
	assert_int_equal(plx_session_drain(10 * PLX_NS_PER_S), 0);
	assert_null(program.session);
	listen_no_more();
	assert_int_equal(plx_fabric_drain(5 * PLX_NS_PER_S), 0);
	fixture_stop();
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, program_up, program_down)

#endif
