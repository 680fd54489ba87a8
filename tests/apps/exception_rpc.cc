/* SPDX-License-Identifier: BSD-3-Clause */
/* As exception.cc, for clients and services: a callback throws, and what shares its batch or its
 * client is served afterwards, once and in order. */
#include "plx_eal.h"
#include "plx_rpc.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

enum { ECHO = 1, THROW = 2, HOLD = 3, COUNT = 64 };

static struct plx_rpc_request *held[COUNT];
static unsigned held_count, done_count, thrown_count;
static unsigned done_of[PLX_RPC_STATUS_COUNT];
static std::string done_names; /* of calls that have one, in order */

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

/* name: of the call, a character; or NULL. */
static void on_done(const struct plx_rpc_result *result, void *name)
{
	done_count++;
	done_of[result->status]++;
	if (name)
		done_names += *static_cast<const char *>(name);
}

static void done_throws(const struct plx_rpc_result *result, void *name)
{
	on_done(result, name);
	throw std::runtime_error("out of a completion");
}

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "%s: %s\n", what, plx_error());
	std::exit(1);
}

static bool (*is_reached)();

static bool is_over(void *)
{
	return is_reached();
}

/* Turn the loop, which may throw, until the condition holds. */
static void run_until(bool (*condition)(), const char *what)
{
	int rc = 0;

	is_reached = condition;
	for (bool again = true; again;) {
		again = false;
		try {
			rc = plx_loop_until(is_over, nullptr, 20 * PLX_NS_PER_S);
		} catch (const std::runtime_error &) {
			thrown_count++;
			again = true;
		}
	}
	check(rc == 0, what);
}

static struct plx_rpc_service *service;
static struct plx_rpc_client *client;

/* length: requests share a message if they fit into 4080 bytes. name: for on_done. */
static plx_rpc_call_id call_as(uint32_t method, plx_rpc_done_fn done, uint64_t deadline_ns,
			       size_t length = 1, const char *name = nullptr)
{
	static const char data[4000] = {};
	struct plx_rpc_call call = {};
	plx_rpc_call_id id;

	call.method = method;
	call.done = done;
	call.deadline_ns = deadline_ns;
	call.arg = const_cast<char *>(name);
	check(plx_rpc_call_start(client, &call, data, length, &id) == 0, "plx_rpc_call_start");
	return id;
}

static bool is_up()
{
	return plx_rpc_client_is_up(client);
}

static void begin(uint32_t turn_max = 0)
{
	struct plx_rpc_service_attr service_attr = {};
	static const struct plx_rpc_method methods[] = {
		{ECHO, 0, "echo", echo, nullptr, nullptr, 0, 0},
		{THROW, 0, "throw", hold_and_throw, nullptr, nullptr, 0, 0},
		{HOLD, 0, "hold", hold, nullptr, nullptr, 0, 0},
	};

	held_count = done_count = thrown_count = 0;
	for (unsigned &count : done_of)
		count = 0;
	done_names.clear();
	service_attr.turn_max = turn_max;
	check(plx_rpc_service_create(&service_attr, &service) == 0, "plx_rpc_service_create");
	for (const struct plx_rpc_method &method : methods)
		check(plx_rpc_service_add(service, &method) == 0, "plx_rpc_service_add");
	check(plx_rpc_service_listen(service, "127.0.0.1:0", nullptr) == 0,
	      "plx_rpc_service_listen");

	const char *addresses[] = {plx_rpc_service_address(service, 0), nullptr};
	struct plx_rpc_client_attr attr = {};

	attr.reconnect_min_ns = PLX_NS_PER_MS;
	attr.deadline_ns = 20 * PLX_NS_PER_S;
	check(plx_rpc_client_create(addresses, &attr, &client) == 0, "plx_rpc_client_create");
	run_until(is_up, "connecting");
}

static void reply_to_held()
{
	for (unsigned i = 0; i < held_count; i++)
		check(plx_rpc_reply(held[i], nullptr, 0) == 0, "plx_rpc_reply");
	held_count = 0;
}

static void destroy_service()
{
	reply_to_held();
	plx_rpc_service_destroy(service);
	run_until([] { return plx_fabric_open_count() == 0; }, "closing the links");
	reply_to_held(); /* to the last that came */
}

/* After that many exceptions, and with one more call, that many calls are done; then everything
 * ends. */
static unsigned wanted_thrown, wanted_done;

static void end(unsigned thrown, unsigned done)
{
	wanted_thrown = thrown;
	wanted_done = done;
	run_until([] { return thrown_count == wanted_thrown; }, "each throws once");
	call_as(ECHO, on_done, 0);
	reply_to_held();
	run_until([] { return done_count == wanted_done; }, "all calls complete");
	check(thrown_count == thrown, "each throws once");
	plx_rpc_client_destroy(client);
	check(done_count == done, "each call completes once");
	destroy_service();
}

/* Of one batch. */
static void throw_out_of_replies()
{
	begin();
	for (int i = 0; i < 4; i++)
		call_as(ECHO, i < 2 ? done_throws : on_done, 0);
	end(2, 5);
	check(done_of[PLX_RPC_OK] == 5, "the statuses");
}

/* Of two batches, abc and de. The rest of the first stays ahead of the rest of the second. */
static void throw_out_of_replies_again()
{
	begin();
	call_as(ECHO, done_throws, 0, 1000, "a");
	call_as(ECHO, done_throws, 0, 1000, "b");
	call_as(ECHO, on_done, 0, 1000, "c");
	call_as(ECHO, done_throws, 0, 2000, "d");
	call_as(ECHO, on_done, 0, 1000, "e");
	end(3, 6);
	check(done_names.find('c') < done_names.find('e'), "the order");
}

/* And a reply after its own is cancelled. */
static void destroy_and_throw_out_of_a_reply()
{
	begin();
	call_as(
		ECHO,
		[](const struct plx_rpc_result *result, void *) {
			plx_rpc_client_destroy(client);
			done_throws(result, nullptr);
		},
		0);
	call_as(ECHO, on_done, 0);
	run_until([] { return thrown_count == 1; }, "it throws");
	destroy_service();
	check(done_of[PLX_RPC_OK] == 1 && done_of[PLX_RPC_CANCELLED] == 1, "the statuses");
}

static void throw_out_of_handlers()
{
	begin();
	call_as(THROW, on_done, 0);
	call_as(THROW, on_done, 0);
	for (int i = 0; i < 4; i++)
		call_as(ECHO, on_done, 0);
	end(2, 7);
	check(done_of[PLX_RPC_OK] == 7, "the statuses");
}

/* In a later turn; another message of that client waits too. */
static void throw_out_of_the_last_handler_of_a_message()
{
	begin(1);
	for (int i = 0; i < 20; i++)
		call_as(ECHO, on_done, 0);
	call_as(THROW, on_done, 0, 4000);
	call_as(ECHO, on_done, 0, 4000);
	run_until([] { return done_count == 21; }, "the message after it is served");
	end(1, 23);
	check(done_of[PLX_RPC_OK] == 23, "the statuses");
}

static void throw_in_destroy()
{
	begin();
	for (int i = 0; i < 4; i++)
		call_as(HOLD, i < 2 ? done_throws : on_done, 0);
	for (int i = 0; i < 2; i++) {
		try {
			plx_rpc_client_destroy(client);
			check(false, "plx_rpc_client_destroy throws");
		} catch (const std::runtime_error &) {
		}
	}
	plx_rpc_client_destroy(client);
	check(done_of[PLX_RPC_CANCELLED] == 4, "each call completes once");
	destroy_service();
}

int main()
{
	struct plx_eal_conf conf = {};

	conf.huge = PLX_HUGE_NONE;
	check(plx_eal_init(&conf) == 0, "plx_eal_init");
	throw_in_destroy();
	throw_out_of_handlers();
	throw_out_of_the_last_handler_of_a_message();
	throw_out_of_replies();
	throw_out_of_replies_again();
	destroy_and_throw_out_of_a_reply();
	check(plx_eal_fini() == 0, "plx_eal_fini");
	return 0;
}
