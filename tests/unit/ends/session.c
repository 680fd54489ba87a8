/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"
#include "plx_session.h"

static struct plx_listener *listener;
static struct plx_session *open_one, *connecting; /* NULL: it has ended */
static struct plx_session *current;               /* whose callback runs, or ran last */
static struct plx_session_attr attr;

static void in(struct plx_session *const *session, const char *callback)
{
	current = *session;
	ends_in(callback, NULL);
}

static const char *on_hello(struct plx_link *link, void *user)
{
	in(user, "session on_hello");
	return NULL;
}

static void on_open(struct plx_link *link, void *user)
{
	in(user, "session on_open");
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	in(user, "session on_close");
}

static void on_refused(struct plx_session *session, enum plx_link_reason reason, const char *text,
		       void *user)
{
	in(user, "on_refused");
}

static bool on_settle(struct plx_session *session, struct plx_link *link, void *user)
{
	in(user, "on_settle");
	return true;
}

static void on_end(struct plx_session *session, void *user)
{
	*(struct plx_session **)user = NULL;
	current = session;
	ends_in("on_end", NULL);
	current = NULL;
}

static const struct plx_link_events accepted_events;

static const struct plx_link_events link_events = {
	.on_hello = on_hello,
	.on_open = on_open,
	.on_close = on_close,
};

static const struct plx_session_events session_events = {
	.on_refused = on_refused,
	.on_settle = on_settle,
	.on_end = on_end,
};

static void connect_as(struct plx_session **session, const char *addresses)
{
	attr.link.user = session;
	assert_works(plx_session_connect(addresses, &attr, session));
}

static bool is_open(void)
{
	return plx_session_link(open_one);
}

static void up(const char *provider)
{
	const struct plx_listen_attr listen = {
		.link = {.events = &accepted_events, .provider = provider}};

	attr = (struct plx_session_attr){.link = {.events = &link_events,
						  .provider = provider,
						  .connect_timeout_ns = 300 * PLX_NS_PER_MS},
					 .events = &session_events,
					 .reconnect_min_ns = PLX_NS_PER_MS};
	open_one = connecting = current = NULL;
	assert_works(plx_link_listen("127.0.0.1:0", &listen, &listener));
	connect_as(&open_one, plx_listener_address(listener));
	ends_turn_until(is_open);
}

static void kick(void)
{
	char addresses[2 * PLX_ADDRESS_MAX];

	snprintf(addresses, sizeof(addresses), "127.0.0.1:1,%s", plx_listener_address(listener));
	connect_as(&connecting, addresses);
	plx_session_close(open_one);
}

static struct plx_session *target(void)
{
	return current ?: connecting ?: open_one;
}

static int close_session(void)
{
	if (!target())
		return 1;
	plx_session_close(target());
	return 0;
}

static int drain(void)
{
	return plx_session_drain(PLX_NEVER);
}

static bool are_gone(void)
{
	return !open_one && !connecting;
}

static void down(bool is_up)
{
	if (is_up) {
		plx_session_close(open_one);
		plx_session_close(connecting);
		plx_listener_close(listener);
		if (!plx_stopping())
			ends_turn_until(are_gone);
	}
	listener = NULL;
}

static const struct ends_call calls[] = {
	{"plx_session_close", ENDS_DEFERS, close_session},
	{"plx_session_drain", ENDS_REFUSES, drain},
};

/* close_test.c has the others. */
static const struct ends_callback callbacks[] = {
	{"session on_hello", ENDS_RUNS}, {"session on_open", ENDS_RUNS},
	{"session on_close", ENDS_RUNS}, {"on_refused", ENDS_RUNS},
	{"on_settle", ENDS_RUNS},        {"on_end", ENDS_RUNS | ENDS_FINIS},
};

const struct ends_part ends_session = {
	"session", up, kick, down, calls, PLX_ARRAY_LEN(calls), callbacks, PLX_ARRAY_LEN(callbacks),
};
