/* SPDX-License-Identifier: BSD-3-Clause */
#include "session.h"

PLX_LOG_COMPONENT(log_component, "session");
struct plx_log_component *const session_log = &log_component;

void session_log_late(const char *peer)
{
	plx_log(session_log, PLX_LOG_WARNING, "%s " SESSION_LATE, peer);
}

static __thread uint64_t late_count;

uint64_t session_late_count(void)
{
	return late_count;
}

void session_note_late(void)
{
	late_count++;
}

void session_link_fail(struct session_link *session, const char *why)
{
	if (session->failure)
		return;
	session->failure = why;
	if (session->link)
		plx_link_abort(session->link);
	if (session->owner->failed) /* last: callbacks may run, and a C++ one may throw */
		session->owner->failed(session);
}

static void close_link(struct session_link *session)
{
	if (!session->acceptor) /* a closing link accepts no messages */
		((struct plx_connector *)session)->link = NULL;
	plx_link_close(session->link);
}

void session_link_close(struct session_link *session)
{
	if (!session->link || session->closing)
		return;
	/* First, so that the limit also holds if a C++ callback throws. */
	session->closing = session->settling = true;
	plx_timer_start(&session->timer, PLX_CLOSE_NS);
	if (session->owner->settle && !session->owner->settle(session))
		return;
	plx_timer_stop(&session->timer); /* the link has its own limit */
	session_link_settled(session);
}

void session_link_settled(struct session_link *session)
{
	if (!session->settling)
		return;
	session->settling = false;
	close_link(session); /* has no effect on a link that closes already */
}
