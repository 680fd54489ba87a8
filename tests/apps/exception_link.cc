/* SPDX-License-Identifier: BSD-3-Clause */
/* C++ callbacks of links that throw, each kind once: the loop runs again, each message arrives, and
 * both sides of each link end in an orderly close. */
#include "exception_turns.h"
#include "plx_eal.h"
#include "plx_fabric.h"
#include "plx_mem.h"

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

static const size_t long_bytes = 100000; /* in several frames */
static const unsigned message_count = 300;

/* Kinds of callbacks, each of which throws once. */
enum kind { OPEN, HELLO, MESSAGE, LONG_MESSAGE, SENT, WRITABLE, CLOSE, PLACE, KINDS };
static const char *const names[] = {
	"on_open", "on_hello",    "on_message", "on_message of a long one",
	"sent",    "on_writable", "on_close",   "place"};
static bool has_thrown[KINDS];
static unsigned opened, lost, closed, sent, got, got_long;
static struct plx_link *client;

static void throw_once(kind which)
{
	if (has_thrown[which])
		return;
	has_thrown[which] = true;
	throw std::runtime_error(names[which]);
}

static void on_open(struct plx_link *link, void *user)
{
	opened++;
	if (!user) { /* it arrives before the other side's on_open, or soon after it */
		plx_link_send(link, "early", 5);
		return;
	}
	client = link;
	throw_once(OPEN);
}

static const char *on_hello(struct plx_link *, void *)
{
	throw_once(HELLO);
	return nullptr;
}

static void on_message(struct plx_link *, struct plx_buf *message, void *)
{
	bool is_long = plx_buf_total(message) == long_bytes;

	(is_long ? got_long : got)++;
	throw_once(is_long ? LONG_MESSAGE : MESSAGE);
}

static void on_writable(struct plx_link *, void *)
{
	throw_once(WRITABLE);
}

static void on_close(struct plx_link *, enum plx_link_reason reason, const char *, void *)
{
	lost += reason != PLX_LINK_CLOSED;
	closed += reason == PLX_LINK_CLOSED;
	throw_once(CLOSE);
}

static void on_sent(struct plx_link *, struct plx_buf *, int, void *)
{
	sent++;
	throw_once(SENT);
}

static uint32_t place(struct plx_listener *, const struct sockaddr *, void *)
{
	throw_once(PLACE);
	return plx_lcore_id();
}

static int send_all()
{
	std::vector<char> data(long_bytes);
	unsigned accepted = 0, accepted_long = 0;

	while (accepted < message_count || accepted_long < 2) {
		struct plx_buf *buf = plx_link_buf(client, 64);

		if (buf) {
			plx_buf_append(buf, 64);
			if (plx_link_send_buf(client, buf, on_sent, nullptr) == 0)
				accepted++;
			else
				plx_buf_unref(buf);
		}
		if (accepted_long < 2 && plx_link_send(client, data.data(), data.size()) == 0)
			accepted_long++;
		if (plx_link_send(client, data.data(), 8) == 0)
			accepted++;
		turn_until([turns = 0]() mutable { return turns++ > 0; });
	}
	if (!turn_until([=] { return got == accepted + 1 && got_long == accepted_long; })) {
		std::fprintf(stderr, "%u of %u messages arrived, %u of %u long ones\n", got,
			     accepted + 1, got_long, accepted_long);
		return 1;
	}
	return 0;
}

static int check(const char *provider)
{
	struct plx_link_events events = {};
	struct plx_link_attr attr = {};
	struct plx_listen_attr listen = {};
	struct plx_listener *listener;
	struct plx_link *link;

	std::memset(has_thrown, 0, sizeof(has_thrown));
	opened = lost = closed = sent = got = got_long = 0;
	client = nullptr;
	events.on_open = on_open;
	events.on_hello = on_hello;
	events.on_message = on_message;
	events.on_close = on_close;
	events.on_writable = on_writable;
	attr.events = &events;
	attr.provider = provider;
	attr.message_max_bytes = long_bytes;
	listen.link = attr;
	listen.spread = PLX_SPREAD_CALLBACK;
	listen.place = place;
	attr.user = &client;
	attr.connect_timeout_ns = 200 * PLX_NS_PER_MS;
	if (plx_link_listen("127.0.0.1:0", &listen, &listener) != 0)
		return fail("plx_link_listen");
	/* Requests that `place` or on_hello leave are lost, and end when their time is up. */
	for (unsigned i = 0; opened < 2 && i < 4; i++) {
		if (plx_link_connect(plx_listener_address(listener), &attr, &link) != 0 ||
		    !turn_until([=] { return opened == 2 || lost > i; }))
			return fail("plx_link_connect");
	}
	if (send_all() != 0)
		return 1;
	plx_link_close(client);
	if (!turn_until([] { return closed == 2 && plx_fabric_open_count() == 1; })) {
		std::fprintf(stderr, "%s: %u sides closed, %u things are open\n", provider, closed,
			     plx_fabric_open_count());
		return 1;
	}
	for (unsigned kind = 0; kind < KINDS; kind++) {
		if (!has_thrown[kind]) {
			std::fprintf(stderr, "%s: %s has not run\n", provider, names[kind]);
			return 1;
		}
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
