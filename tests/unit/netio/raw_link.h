/* SPDX-License-Identifier: BSD-3-Clause */
/* A link that sends whatever a test needs, at either end of a socket. */
#ifndef NETIO_RAW_LINK_H
#define NETIO_RAW_LINK_H

#include "netio_wire.h"
#include "plx_fabric.h"

static struct plx_link *raw; /* NULL: not open */
static unsigned raw_closed, raw_messages;
static char raw_why[256];

static inline void raw_open(struct plx_link *link, void *user)
{
	raw = link;
}

PLX_COUNTS(raw_message, raw_messages, struct plx_link *link, struct plx_buf *message, void *user)

static inline void raw_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			     void *user)
{
	raw_closed++;
	snprintf(raw_why, sizeof(raw_why), "%s", text);
	raw = NULL;
}

static const struct plx_link_events raw_events = {
	.on_open = raw_open,
	.on_message = raw_message,
	.on_close = raw_close,
};

#define GREETING_OF(kind, least, most, side, longest) \
	{.type = (kind),                              \
	 .version_min = (least),                      \
	 .version_max = (most),                       \
	 .role = (side),                              \
	 .message_max = (longest)}

/* Of this version's range. */
#define GREETING(kind, side, longest) \
	GREETING_OF(kind, WIRE_VERSION_MIN, WIRE_VERSION_MAX, side, longest)

static const struct wire_greeting good_sender = GREETING(WIRE_HELLO, WIRE_SENDER, 4096);

/* greeting: in its HELLO; NULL: none. */
static inline void raw_say(struct plx_link_attr *attr, const struct wire_greeting *greeting)
{
	raw = NULL;
	raw_closed = raw_messages = 0;
	if (!greeting)
		return;
	attr->hello_length = wire_greeting_write(attr->hello, greeting);
}

static inline void raw_connect_as(unsigned port, struct plx_link_attr attr,
				  const struct wire_greeting *greeting)
{
	struct plx_link *link;
	char address[64];

	attr.events = attr.events ?: &raw_events;
	raw_say(&attr, greeting);
	snprintf(address, sizeof(address), "%s:%u", test_host(), port);
	assert_int_equal(plx_link_connect(address, &attr, &link), 0);
}

static inline void raw_connect(unsigned port, const struct wire_greeting *greeting)
{
	raw_connect_as(port, (struct plx_link_attr){0}, greeting);
}

static inline void raw_connect_to_listening(const struct wire_greeting *greeting)
{
	raw_connect(netio_listen_socket_port(&heard.socket), greeting);
}

/* message_max_bytes: that its link takes; 0: the default. Return: the port. */
static inline unsigned raw_listen(uint64_t message_max_bytes, const struct wire_greeting *greeting,
				  struct plx_listener **listener_out)
{
	struct plx_listen_attr listen = {
		.link = {.events = &raw_events, .message_max_bytes = message_max_bytes}};

	raw_say(&listen.link, greeting);
	assert_int_equal(plx_link_listen("127.0.0.1:0", &listen, listener_out), 0);
	return plx_listener_port(*listener_out);
}

#endif
