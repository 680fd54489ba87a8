/* SPDX-License-Identifier: BSD-3-Clause */
/* As exception_link.cc, for sessions: each kind of their callbacks throws once, the session
 * reconnects, and closes without loss. */
#include "exception_turns.h"
#include "plx_eal.h"
#include "plx_mem.h"
#include "plx_session.h"

#include <cstdio>
#include <stdexcept>
#include <string>

enum kind { HELLO, OPEN, MESSAGE, REFUSED, SETTLE, CLOSE, END, KINDS };
static const char *const names[] = {"on_hello",  "on_open",  "on_message", "on_refused",
				    "on_settle", "on_close", "on_end"};
static unsigned runs[KINDS];

static void throw_once(kind which)
{
	if (runs[which]++ == 0)
		throw std::runtime_error(names[which]);
}

static const char *on_hello(struct plx_link *, void *)
{
	throw_once(HELLO);
	return nullptr;
}

static void on_open(struct plx_link *, void *)
{
	throw_once(OPEN);
}

static void on_message(struct plx_link *, struct plx_buf *, void *)
{
	throw_once(MESSAGE);
}

static void on_close(struct plx_link *, enum plx_link_reason, const char *, void *)
{
	throw_once(CLOSE);
}

static void on_refused(struct plx_session *, enum plx_link_reason, const char *, void *)
{
	throw_once(REFUSED);
}

static bool on_settle(struct plx_session *, struct plx_link *, void *)
{
	throw_once(SETTLE);
	return true;
}

static void on_end(struct plx_session *, void *)
{
	throw_once(END);
}

static struct plx_link *accepted_link; /* the newest */
static unsigned closed_in_order;

static void on_accepted(struct plx_link *link, void *)
{
	accepted_link = link;
}

static void on_accepted_close(struct plx_link *, enum plx_link_reason reason, const char *, void *)
{
	closed_in_order += reason == PLX_LINK_CLOSED;
}

/* Once it has opened that often, a message arrives. */
static bool receives(unsigned count)
{
	return turn_until([=] { return runs[OPEN] == count; }) &&
	       plx_link_send(accepted_link, "x", 1) == 0 &&
	       turn_until([=] { return runs[MESSAGE] == count; });
}

static int check(const char *provider)
{
	struct plx_link_events accepted = {}, events = {};
	struct plx_session_events session_events = {};
	struct plx_listen_attr listen = {};
	struct plx_session_attr attr = {};
	struct plx_listener *listener;
	struct plx_session *session;

	for (unsigned &each : runs)
		each = 0;
	closed_in_order = 0;
	accepted.on_open = on_accepted;
	accepted.on_close = on_accepted_close;
	listen.link.events = &accepted;
	listen.link.provider = provider;
	if (plx_link_listen("127.0.0.1:0", &listen, &listener) != 0)
		return fail("plx_link_listen");
	events.on_hello = on_hello;
	events.on_open = on_open;
	events.on_message = on_message;
	events.on_close = on_close;
	session_events.on_refused = on_refused;
	session_events.on_settle = on_settle;
	session_events.on_end = on_end;
	attr.link.events = &events;
	attr.link.provider = provider;
	attr.link.connect_timeout_ns = 200 *
				       PLX_NS_PER_MS; /* on_hello leaves a request that is lost */
	attr.events = &session_events;
	attr.reconnect_min_ns = PLX_NS_PER_MS;
	const std::string addresses = std::string("127.0.0.1:1,") + plx_listener_address(listener);
	if (plx_session_connect(addresses.c_str(), &attr, &session) != 0)
		return fail("plx_session_connect");
	if (!receives(1))
		return fail("no message");
	plx_link_abort(plx_session_link(session));
	if (!receives(2))
		return fail("it does not reconnect");
	plx_session_close(session);
	if (!turn_until([] { return runs[SETTLE] == 1; }))
		return fail("it does not settle");
	plx_session_settled(session);
	if (!turn_until([] { return runs[END] == 1 && plx_fabric_open_count() == 1; }))
		return fail("it does not end");
	if (closed_in_order != 1 || runs[CLOSE] != 2 || runs[OPEN] != 2 || runs[REFUSED] < 2) {
		std::fprintf(stderr, "%s: %u orderly closes, %u in all, %u opened, %u refused\n",
			     provider, closed_in_order, runs[CLOSE], runs[OPEN], runs[REFUSED]);
		return 1;
	}
	plx_listener_close(listener);
	return 0;
}

int main()
{
	struct plx_eal_conf conf = {};

	conf.huge = PLX_HUGE_NONE;
	if (plx_eal_init(&conf) != 0)
		return fail("plx_eal_init");
	if (check("tcp") != 0 || check("shm") != 0)
		return 1;
	return plx_eal_fini() == 0 ? 0 : fail("plx_eal_fini");
}
