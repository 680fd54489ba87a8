/* SPDX-License-Identifier: BSD-3-Clause */
/* Callbacks of C++ that throw, which they must not do: the program catches it around the loop, and
 * runs the loop again. What shares a turn, a batch or a page with the callback is delivered
 * afterwards, once and in order. unit_ends throws out of each callback.
 *
 *     exception TURN-MAX      the budget of a turn: with 1, what a page or batch has left waits */
#include "netio/netio.h"
#include "plx_eal.h"
#include "plx_fabric.h"
#include "plx_rpc.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "%s: %s\n", what, plx_error());
	std::exit(1);
}

/* Turn the loop through exceptions until done, for at most 20 s. */
template <typename Done> static void turn_until(Done done, const char *what)
{
	uint64_t end_ns = plx_now_ns() + 20 * PLX_NS_PER_S;

	while (!done() && plx_now_ns() < end_ns) {
		try {
			check(plx_loop_turn() >= 0, "plx_loop_turn");
		} catch (const std::runtime_error &) {
		}
	}
	check(done(), what);
}

static void turn_more()
{
	turn_until([turns = 0]() mutable { return turns++ > 100; }, "turns");
}

/* Tasks ---------------------------------------------------------------------------------------- */

static unsigned ran;

static void on_task(struct plx_task *, void *)
{
	ran++;
	throw std::runtime_error("out of a task");
}

static void quit_by_task(struct plx_task *, void *)
{
	ran++;
	plx_loop_quit();
}

static void tasks()
{
	struct plx_task thrower, next;
	bool has_thrown = false;

	plx_task_init(&thrower, on_task, nullptr);
	plx_task_init(&next, quit_by_task, nullptr);
	plx_task_schedule(&thrower);
	plx_task_schedule(&next);
	try {
		plx_loop_run();
	} catch (const std::runtime_error &) {
		has_thrown = true;
	}
	check(has_thrown && !plx_loop_is_running(plx_lcore_id()), "a task in plx_loop_run");
	check(plx_loop_run() == 0 && ran == 2, "a task that follows one that threw");
}

/* Links: each callback throws once, and every message arrives ---------------------------------- */

static const size_t long_bytes = 100000; /* in several frames */

enum kind { OPEN, HELLO, MESSAGE, LONG_MESSAGE, SENT, WRITABLE, CLOSE, KINDS };
static bool has_thrown[KINDS];
static unsigned opened, lost, got, got_long;
static struct plx_link *sender_link;

static void throw_once(kind which)
{
	if (has_thrown[which])
		return;
	has_thrown[which] = true;
	throw std::runtime_error("out of a callback");
}

static void on_open(struct plx_link *link, void *user)
{
	opened++;
	if (!user) { /* it arrives before the other side's on_open, or soon after it */
		plx_link_send(link, "early", 5);
		return;
	}
	sender_link = link;
	throw_once(OPEN);
}

static const char *on_hello(struct plx_link *, void *)
{
	throw_once(HELLO);
	return nullptr;
}

static void on_writable(struct plx_link *, void *)
{
	throw_once(WRITABLE);
}

static void on_close(struct plx_link *, enum plx_link_reason reason, const char *, void *)
{
	lost += reason != PLX_LINK_CLOSED;
	throw_once(CLOSE);
}

static void on_message(struct plx_link *, struct plx_buf *message, void *)
{
	bool is_long = plx_buf_total(message) == long_bytes;

	(is_long ? got_long : got)++;
	throw_once(is_long ? LONG_MESSAGE : MESSAGE);
}

static void on_sent(struct plx_link *, struct plx_buf *, int, void *)
{
	throw_once(SENT);
}

static void send_all()
{
	std::vector<char> data(long_bytes);
	unsigned accepted = 0, accepted_long = 0;

	while (accepted < 300 || accepted_long < 2) {
		struct plx_buf *buf = plx_link_buf(sender_link, 64);

		if (buf) {
			plx_buf_append(buf, 64);
			if (plx_link_send_buf(sender_link, buf, on_sent, nullptr) == 0)
				accepted++;
			else
				plx_buf_unref(buf);
		}
		if (accepted_long < 2 && plx_link_send(sender_link, data.data(), long_bytes) == 0)
			accepted_long++;
		turn_until([turns = 0]() mutable { return turns++ > 0; }, "a turn");
	}
	turn_until([=] { return got == accepted + 1 && got_long == accepted_long; },
		   "each message arrives");
}

static void links(const char *provider)
{
	struct plx_link_events events = {};
	struct plx_listen_attr listen = {};
	struct plx_listener *listener;
	struct plx_link *link;

	for (bool &thrown : has_thrown)
		thrown = false;
	opened = lost = got = got_long = 0;
	events.on_open = on_open;
	events.on_hello = on_hello;
	events.on_message = on_message;
	events.on_writable = on_writable;
	events.on_close = on_close;
	listen.link.events = &events;
	listen.link.provider = provider;
	listen.link.message_max_bytes = long_bytes;
	check(plx_link_listen("127.0.0.1:0", &listen, &listener) == 0, "plx_link_listen");
	listen.link.user = &sender_link;
	listen.link.connect_timeout_ns = 200 * PLX_NS_PER_MS;
	/* The request that on_hello leaves is lost, and ends when its time is up. */
	for (unsigned i = 0; opened < 2 && i < 3; i++) {
		check(plx_link_connect(plx_listener_address(listener), &listen.link, &link) == 0,
		      "plx_link_connect");
		turn_until([=] { return opened == 2 || lost > i; }, "connecting");
	}
	send_all();
	plx_link_close(sender_link);
	turn_until([] { return plx_fabric_open_count() == 1; }, "closing");
	for (bool thrown : has_thrown)
		check(thrown, "a callback has not run");
	plx_listener_close(listener);
}

/* A page of NetIO ------------------------------------------------------------------------------ */

static const unsigned page_count = 20;
static std::vector<unsigned> received;

static void on_page_message(struct netio_recv_socket *, const struct netio_msg *msg)
{
	unsigned number = *static_cast<const unsigned char *>(msg->data);

	received.push_back(number);
	if (number % 5 == 0 || number == page_count - 1)
		throw std::runtime_error("out of cb_msg_received");
}

static void page()
{
	struct netio_context netio;
	struct netio_listen_socket listening;
	struct netio_buffered_send_socket sender;

	check(netio_init(&netio) == 0 &&
		      netio_listen_socket_init(&netio.evloop, &listening, nullptr) == 0 &&
		      netio_buffered_send_socket_init(&netio.evloop, &sender, nullptr) == 0,
	      "netio_init");
	listening.cb_msg_received = on_page_message;
	check(netio_listen(&listening, "127.0.0.1", 0) == 0 &&
		      netio_buffered_connect(&sender, "127.0.0.1",
					     netio_listen_socket_port(&listening)) == 0,
	      "netio_buffered_connect");
	turn_until([&] { return netio_buffered_flush(&sender) == 0; }, "connecting");
	for (unsigned char number = 0; number < page_count; number++)
		check(netio_buffered_send(&sender, &number, 1) == 0, "netio_buffered_send");
	netio_buffered_flush(&sender);
	turn_until([] { return received.size() >= page_count; }, "the messages of a page");
	turn_more();
	check(received.size() == page_count, "each message once");
	for (unsigned i = 0; i < page_count; i++)
		check(received[i] == i, "messages in order");
	check(netio_fini(&netio) == 0, "netio_fini");
}

/* Batches of requests and replies -------------------------------------------------------------- */

enum { ECHO = 1, THROW = 2, HOLD = 3 };

static struct plx_rpc_request *held[8];
static unsigned held_count;
static std::string done, cancelled; /* the names of the calls, in order */
static struct plx_rpc_client *rpc_client;

static void echo(struct plx_rpc_request *request, const void *data, uint32_t length, void *)
{
	plx_rpc_reply(request, data, length);
}

static void hold(struct plx_rpc_request *request, const void *, uint32_t, void *)
{
	held[held_count++] = request;
}

static void hold_and_throw(struct plx_rpc_request *request, const void *, uint32_t, void *)
{
	held[held_count++] = request; /* it is still owed a reply */
	throw std::runtime_error("out of a handler");
}

/* name: a character; a capital throws. */
static void on_done(const struct plx_rpc_result *result, void *name)
{
	char letter = *static_cast<const char *>(name);

	(result->status == PLX_RPC_OK ? done : cancelled) += letter;
	if (letter < 'a')
		throw std::runtime_error("out of a completion");
}

static void call(uint32_t method, const char *name, size_t length)
{
	static const char data[4000] = {};
	struct plx_rpc_call call = {};
	plx_rpc_call_id id;

	call.method = method;
	call.done = on_done;
	call.arg = const_cast<char *>(name);
	check(plx_rpc_call_start(rpc_client, &call, data, length, &id) == 0, "plx_rpc_call_start");
}

static void reply_to_held()
{
	while (held_count)
		check(plx_rpc_reply(held[--held_count], nullptr, 0) == 0, "plx_rpc_reply");
}

static void calls()
{
	static const struct plx_rpc_method methods[] = {
		{ECHO, 0, "echo", echo, nullptr, nullptr, 0, 0},
		{THROW, 0, "throw", hold_and_throw, nullptr, nullptr, 0, 0},
		{HOLD, 0, "hold", hold, nullptr, nullptr, 0, 0},
	};
	struct plx_rpc_client_attr attr = {};
	struct plx_rpc_service *service;

	check(plx_rpc_service_create(nullptr, &service) == 0, "plx_rpc_service_create");
	for (const struct plx_rpc_method &method : methods)
		check(plx_rpc_service_add(service, &method) == 0, "plx_rpc_service_add");
	check(plx_rpc_service_listen(service, "127.0.0.1:0", nullptr) == 0, "listening");
	const char *addresses[] = {plx_rpc_service_address(service, 0), nullptr};
	attr.deadline_ns = 20 * PLX_NS_PER_S;
	check(plx_rpc_client_create(addresses, &attr, &rpc_client) == 0, "plx_rpc_client_create");
	turn_until([] { return plx_rpc_client_is_up(rpc_client); }, "connecting");

	/* Of two batches: requests share a message of up to 4080 bytes. The rest of the first
	 * stays ahead of the rest of the second. */
	call(ECHO, "A", 1000);
	call(ECHO, "B", 1000);
	call(ECHO, "c", 1000);
	call(ECHO, "D", 2000);
	call(ECHO, "e", 1000);
	turn_until([] { return done.size() == 5; }, "the replies");
	check(done.find('c') < done.find('e'), "the order of replies");

	done.clear();
	call(THROW, "f", 1);
	call(THROW, "g", 4000);
	call(ECHO, "h", 1);
	call(ECHO, "i", 4000);
	turn_until([] { return held_count == 2 && done == "hi"; }, "requests after a throw");
	reply_to_held();
	turn_until([] { return done.size() == 4; }, "replies that are still owed");

	for (const char *name : {"K", "L", "m", "n"})
		call(HOLD, name, 1);
	for (int throws = 0; throws < 2; throws++) {
		try {
			plx_rpc_client_destroy(rpc_client);
			check(false, "plx_rpc_client_destroy throws");
		} catch (const std::runtime_error &) {
		}
	}
	plx_rpc_client_destroy(rpc_client);
	check(cancelled.size() == 4, "each call is cancelled once");
	plx_rpc_service_destroy(service);
	turn_until([] { return plx_fabric_open_count() == 0; }, "closing the links");
	reply_to_held();
}

int main(int, char **argv)
{
	struct plx_eal_conf conf = {};

	conf.huge = PLX_HUGE_NONE;
	conf.turn_max = static_cast<uint32_t>(std::atoi(argv[1]));
	check(plx_eal_init(&conf) == 0, "plx_eal_init");
	tasks();
	links("tcp");
	links("shm");
	page();
	calls();
	return plx_eal_fini() == 0 ? 0 : 1;
}
