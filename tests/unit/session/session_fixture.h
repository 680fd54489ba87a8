/* SPDX-License-Identifier: BSD-3-Clause */
/* A connector and an acceptor that count the calls of their owners' callbacks. The private data of
 * a HELLO is one word. */
#ifndef SESSION_FIXTURE_H
#define SESSION_FIXTURE_H

#include "../fabric/fixture.h"
#include "log_capture.h"
#include "session.h"

/* Callbacks of one side's owner. */
struct events {
	_Atomic unsigned opened, refused, closed, failed, ended, freed, messages, settles;
	enum plx_link_reason reason;
	char why[400];
	char hello[PLX_LINK_HELLO_MAX + 1]; /* of the peer */
	const char *refuses;                /* that; NULL: nothing */
	bool settles_later;
	bool holds; /* of an accepted link: `ended` reports that it is not done */
};

struct test_connector {
	struct plx_connector session; /* must be first */
	struct events *events;
};

extern struct events connecting, accepting;
extern struct test_connector connector;
extern struct plx_acceptor *acceptor; /* NULL: it was freed */
extern struct plx_accepted *accepted; /* the newest; NULL: it was freed */
extern struct plx_listener *session_listener;
extern const struct plx_link_events accepted_events; /* of the acceptor */

void session_begin(void);
int session_down(void **state);

/* A new listening acceptor. port: NULL: any free port. */
void session_listen(const char *answer, const char *port);
void session_listen_no_more(void);

/* Connect to the acceptor; or to one that no longer listens, until refused that often. */
void session_connect(const char *hello, uint64_t min_ns, uint64_t max_ns);
void session_connect_in_vain(uint64_t min_ns, uint64_t max_ns, unsigned refusals);

/* Both open. */
void session_meet(void);

/* Set-ups. Each file has a separate log. */
static inline int session_up(void **state)
{
	session_begin();
	log_capture();
	return 0;
}

static inline int session_up_and_meet(void **state)
{
	session_up(state);
	session_meet();
	return 0;
}

#define TEST(name)     PLX_TEST_WITH(name, session_up, session_down)
#define TEST_MET(name) PLX_TEST_WITH(name, session_up_and_meet, session_down)

#endif
