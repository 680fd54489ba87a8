/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Sessions: links that come back.
 * A session connects to one of its addresses. After a failed attempt, or when its link ends, it
 * connects again, until the program closes it. The accepting side needs nothing of this header: it
 * listens with plx_link_listen.
 */
#ifndef PLX_SESSION_H
#define PLX_SESSION_H

#include "plx_fabric.h"

PLX_BEGIN_DECLS

struct plx_session;

/** Most addresses of a session. */
#define PLX_SESSION_ADDRESSES_MAX 16

/** Callbacks of a session, except those of its links (plx_session_attr). They run on its lcore,
 * from the loop, and in plx_fabric_fini on the main thread. Any may be NULL, and may close any
 * session. user: attr.link.user. */
struct plx_session_events {
	/** An attempt to connect failed. The next one follows unless reconnect_min_ns is PLX_NEVER.
	 * reason, text: as on_close of a link, which does not run for it. Without this callback the
	 * log has a warning for each address and reason, once until a link opens. */
	void (*on_refused)(struct plx_session *session, enum plx_link_reason reason,
			   const char *text, void *user);

	/** The session closes, and its link is still open: send what waits.
	 * Return: true if nothing is left. Otherwise call plx_session_settled later: PLX_CLOSE_NS
	 * after this call the link ends with PLX_LINK_TIMEOUT. */
	bool (*on_settle)(struct plx_session *session, struct plx_link *link, void *user);

	/** The session has ended: the last callback. It is freed when this returns. */
	void (*on_end)(struct plx_session *session, void *user);
};

/** 0 or NULL: the default. Copied, also the provider's name. */
struct plx_session_attr {
	/** Of each of its links. Required: link.events. Their on_close runs once for each link that
	 * opened; after it the session reconnects, for any reason. plx_link_close and
	 * plx_link_abort end the link, but not the session. plx_link_set_user applies to the link
	 * until it ends. */
	struct plx_link_attr link;
	const struct plx_session_events *events; /**< must outlive the session */
	uint64_t reconnect_min_ns; /**< first back-off; default PLX_RECONNECT_MIN_NS (10 ms).
				      PLX_NEVER: try each address once, and end after that or
				      with the link */
	uint64_t reconnect_max_ns; /**< longest back-off; default PLX_RECONNECT_MAX_NS (1 s) or
				      reconnect_min_ns, whichever is longer */
};

/** Connect to one of 1 to PLX_SESSION_ADDRESSES_MAX addresses, "host:port" or
 * "host:port,host:port", each tried in turn; all addresses of a name are one. A failed attempt is
 * followed by the next address at once. When all have failed, or a link ended, the next attempt
 * waits for a random time: plx_backoff_next_ns, after refusals on this host
 * plx_backoff_next_same_host_ns, and at least as long as busy listeners asked. That range starts
 * again at reconnect_min_ns after a link that was open for reconnect_max_ns. Names are looked up on
 * another thread. Returns at once; no callback runs inside this call.
 * Ownership: the library owns the session; the pointer is valid until on_end returns.
 * Thread: an lcore.
 * Return: 0, also if the first attempt fails for a cause that may pass; -EINVAL addresses,
 * attributes; -ENODEV, -EACCES, -EOPNOTSUPP as plx_link_connect, for the first address; -ESHUTDOWN
 * plx_fabric_drain or plx_fabric_fini runs; -ENOENT not an lcore; -ENOMEM; -EPERM in the child of a
 * fork. On error there is no session. */
int plx_session_connect(const char *addresses, const struct plx_session_attr *attr,
			struct plx_session **session_out);

/** The link, if it accepts messages now: from its on_open on, also in on_settle and until
 * plx_session_settled. NULL: it is not open. Valid until its on_close returns.
 * Thread: owner. */
struct plx_link *plx_session_link(const struct plx_session *session);

/** The address, of the list, of the link or the last attempt. The text changes when the next
 * attempt begins, and is valid until on_end returns.
 * Thread: owner. */
const char *plx_session_address(const struct plx_session *session);

/** End the session, and close its link without loss: on_settle runs, then the link closes as by
 * plx_link_close, and its on_close runs; this takes at most PLX_CLOSE_NS if on_settle left
 * something, and otherwise link.close_timeout_ns. An attempt or a wait ends now, without
 * on_refused. on_end follows in any case. All of this happens in the loop, so the session may be
 * used until then. To drop the link, call plx_link_abort too. Does nothing for NULL, for a session
 * that is closing, and in the child of a fork.
 * Thread: owner. */
void plx_session_close(struct plx_session *session);

/** What waited in on_settle is sent: the link closes now. Does nothing if on_settle has not
 * returned false.
 * Thread: owner. */
void plx_session_settled(struct plx_session *session);

/** Close all sessions of the calling lcore (plx_session_close), turning the loop until they have
 * ended. For an lcore whose loop has stopped. Call it before plx_fabric_drain, which closes links
 * without asking their sessions, and during which attempts fail with PLX_LINK_LOCAL.
 * plx_lcore_leave does the same for up to 0.5 s, then aborts the links. A session that exists in
 * plx_fabric_fini ends there, without on_settle. Thread: an lcore, outside its loop. Return: 0;
 * -EBUSY in a callback, nothing was done; -ETIMEDOUT some are left; -ENOENT not an lcore; -EPERM in
 * the child of a fork. */
int plx_session_drain(uint64_t timeout_ns);

PLX_END_DECLS

#endif
