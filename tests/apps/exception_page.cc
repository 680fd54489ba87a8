/* SPDX-License-Identifier: BSD-3-Clause */
/* As exception.cc, for messages in a page: some throw, and the others are delivered, each once and
 * in order. With a long budget of a turn the page is delivered at once, with a short one it waits.
 */
#include "exception_turns.h"
#include "netio/netio.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

static const unsigned count = 20;
static std::vector<unsigned> got;

static void on_message(struct netio_recv_socket *, const struct netio_msg *msg)
{
	unsigned number = *static_cast<const unsigned char *>(msg->data);

	got.push_back(number);
	if (number % 5 == 0 || number == count - 1)
		throw std::runtime_error("out of cb_msg_received");
}

static int check(const char *options)
{
	struct netio_context netio;
	struct netio_listen_socket listening;
	struct netio_buffered_send_socket sender;
	bool in_order = true;

	setenv("NETIO_OPTIONS", options, 1);
	got.clear();
	if (netio_init(&netio) != 0 ||
	    netio_listen_socket_init(&netio.evloop, &listening, nullptr) != 0)
		return fail("netio_init");
	listening.cb_msg_received = on_message;
	if (netio_listen(&listening, "127.0.0.1", 0) != 0 ||
	    netio_buffered_send_socket_init(&netio.evloop, &sender, nullptr) != 0 ||
	    netio_buffered_connect(&sender, "127.0.0.1", netio_listen_socket_port(&listening)) != 0)
		return fail("netio_buffered_connect");
	if (!turn_until([&] { return netio_buffered_flush(&sender) == 0; }))
		return fail("netio_buffered_flush");
	for (unsigned i = 0; i < count; i++) {
		unsigned char number = static_cast<unsigned char>(i);

		if (netio_buffered_send(&sender, &number, 1) != 0)
			return fail("netio_buffered_send");
	}
	netio_buffered_flush(&sender);
	turn_until([] { return got.size() >= count; });
	turn_until([turns = 0]() mutable { return turns++ > 100; });
	for (unsigned i = 0; i < got.size(); i++)
		in_order &= got[i] == i;
	if (!in_order || got.size() != count) {
		std::fprintf(stderr, "%s: %zu of %u messages arrived\n", options, got.size(),
			     count);
		return 1;
	}
	return netio_fini(&netio) == 0 ? 0 : fail("netio_fini");
}

int main()
{
	return check("--huge none --provider tcp") ||
	       check("--huge none --provider tcp --turn-max 1");
}
