/* SPDX-License-Identifier: BSD-3-Clause */
/* What sockets of all kinds report of their connections, by the callbacks that netio_socket.h
 * declares for all of them. connection.c and accept.c notify the user; what an owner does in
 * addition stands in its table. */
#ifndef NETIO_NOTICE_H
#define NETIO_NOTICE_H

#include "netio_priv.h"

enum notice_type {
	NOTICE_ESTABLISHED,
	NOTICE_REFUSED, /* only where the socket connects */
	NOTICE_CLOSED,
	NOTICE_SUSPECT,
	NOTICE_TYPES,
};

struct notice {
	enum notice_type type;
	enum plx_link_reason reason; /* of REFUSED and CLOSED, with why */
	bool suspect;                /* of SUSPECT */
	const char *why;
};

/* Call the callback of a user's socket. one: the connection, as the callback gets it. Return:
 * whether the user has set one. The callback may free the socket. */
typedef bool notify_fn(const void *socket, void *one, const struct notice *notice);

#define NOTICE_CALL(callback, ...) (to->callback && (to->callback(__VA_ARGS__), true))

#define DEFINE_NOTIFY_OR(name, kind, refused)                                            \
	static bool name(const void *socket, void *one, const struct notice *notice)     \
	{                                                                                \
		const struct kind *to = socket;                                          \
                                                                                         \
		switch (notice->type) {                                                  \
		case NOTICE_ESTABLISHED:                                                 \
			return NOTICE_CALL(cb_connection_established, one);              \
		case NOTICE_REFUSED:                                                     \
			return refused;                                                  \
		case NOTICE_CLOSED:                                                      \
			return NOTICE_CALL(cb_connection_closed, one, notice->reason,    \
					   notice->why);                                 \
		case NOTICE_SUSPECT:                                                     \
			return NOTICE_CALL(cb_connection_suspect, one, notice->suspect); \
		default:                                                                 \
			return false;                                                    \
		}                                                                        \
	}

/* Define a notify_fn for one kind of sockets: that listen, that connect. */
#define DEFINE_NOTIFY_LISTENING(name, kind) DEFINE_NOTIFY_OR(name, kind, false)
#define DEFINE_NOTIFY_CONNECTING(name, kind) \
	DEFINE_NOTIFY_OR(name, kind,         \
			 NOTICE_CALL(cb_connection_refused, one, notice->reason, notice->why))

#endif
