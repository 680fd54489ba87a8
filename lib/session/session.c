/* SPDX-License-Identifier: BSD-3-Clause */
/* The public API. Messages of a link go to the program directly: the link has the program's table
 * of callbacks, with three of them replaced, and that copy leads to the session. */
#include "session.h"
#include "fabric_internal.h"
#include "lcore_internal.h"
#include "owner.h"
#include "plx_session.h"

#include <stdlib.h>

#define LEAVE_NS (500 * PLX_NS_PER_MS)

struct plx_session {
	struct plx_connector connector;        /* first */
	struct plx_link_events link_events;    /* of its links */
	const struct plx_link_events *program; /* its table for links */
	const struct plx_session_events *events;
	void *user;
	uint32_t lcore;
	bool is_open;          /* on_open of the link has run */
	bool is_closing;       /* by the program */
	struct plx_link *lost; /* its on_close is due */
	void *lost_user;
	struct plx_task later; /* closes, or ends */
	struct addresses *addresses;
	LIST_ENTRY(plx_session) of_lcore;
};

/* Not in the threads' memory: plx_fabric_fini ends those of all lcores. */
static LIST_HEAD(sessions, plx_session) sessions[PLX_LCORE_MAX];

static struct plx_session *session_of(const struct plx_link *link)
{
	return plx_container_of(link_events(link), struct plx_session, link_events);
}

/* Ending -------------------------------------------------------------------------------------- */

static void on_free(struct plx_connector *connector)
{
	struct plx_session *session = (struct plx_session *)connector;

	free(session->addresses);
	free(session);
}

/* It has no link. */
static void destroy(struct plx_session **ended)
{
	struct plx_session *session = *ended;

	plx_task_cancel(&session->later);
	LIST_REMOVE(session, of_lcore);
	plx_connector_release(&session->connector);
}

/* A cleanup destroys it, in case a C++ callback throws. */
static void end(struct plx_session *session)
{
	struct plx_session *ended PLX_CLEANUP(destroy) = session;

	session->is_closing = true;
	if (ended->events->on_end)
		ended->events->on_end(ended, ended->user);
}

/* Nothing runs inside plx_session_close, and on_end also follows a callback that throws. */
static void do_later(struct plx_task *task, void *arg)
{
	struct plx_session *session = arg;

	if (session->connector.state == PLX_CONNECTOR_IDLE)
		end(session);
	else
		plx_connector_close(&session->connector);
}

static void end_if_idle(struct plx_session *session)
{
	if (session->connector.state == PLX_CONNECTOR_IDLE)
		plx_task_schedule(&session->later);
}

static void end_all(void)
{
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		while (!LIST_EMPTY(&sessions[id]))
			end(LIST_FIRST(&sessions[id]));
	}
}

static struct fabric_fini_hook fini_hook = {.fn = end_all};

static void abort_all(void *here)
{
	struct plx_session *session;

	LIST_FOREACH (session, (struct sessions *)here, of_lcore) {
		if (session->connector.base.link)
			plx_link_abort(session->connector.base.link);
	}
}

static bool is_empty(void *here)
{
	return LIST_EMPTY((struct sessions *)here);
}

/* Before the library's own links end, or after it. */
static void on_leave(void)
{
	struct sessions *here = &sessions[plx_lcore_id()];

	if (LIST_EMPTY(here) || plx_session_drain(LEAVE_NS) != -ETIMEDOUT)
		return;
	plx_loop_run_inside(abort_all, here);
	plx_loop_until(is_empty, here, LEAVE_NS);
}

static struct lcore_leave_hook leave_hook = {.leave = on_leave};

PLX_CONSTRUCTOR static void add_hooks(void)
{
	fabric_fini_hook_add(&fini_hook);
	lcore_leave_hook_add(&leave_hook);
}

/* The connector's callbacks ------------------------------------------------------------------- */

static const char *on_checked(struct plx_connector *connector, struct plx_link *link)
{
	struct plx_session *session = (struct plx_session *)connector;

	return session->program->on_hello ? session->program->on_hello(link, session->user) : NULL;
}

static void on_opened(struct plx_connector *connector)
{
	((struct plx_session *)connector)->is_open = true;
}

static bool on_refused(struct plx_connector *connector, enum plx_link_reason reason,
		       const char *text)
{
	struct plx_session *session = (struct plx_session *)connector;
	const struct plx_session_events *events = session->events;

	end_if_idle(session);
	if (events->on_refused)
		events->on_refused(session, reason, text, session->user);
	return events->on_refused;
}

static void on_closed(struct plx_connector *connector, enum plx_link_reason reason,
		      const char *text)
{
	struct plx_session *session = (struct plx_session *)connector;
	struct plx_link *lost = session->lost;

	session->lost = NULL;
	end_if_idle(session);
	if (lost && session->program->on_close)
		session->program->on_close(lost, reason, text, session->lost_user);
}

static bool on_settle(struct session_link *base)
{
	struct plx_session *session = (struct plx_session *)base;
	const struct plx_session_events *events = session->events;

	return !events->on_settle || !plx_session_link(session) ||
	       events->on_settle(session, session->connector.link, session->user);
}

static const struct plx_connector_owner owner = {
	.base.settle = on_settle,
	.hello = on_checked,
	.opened = on_opened,
	.refused = on_refused,
	.closed = on_closed,
	.free = on_free,
};

/* Callbacks of its links ---------------------------------------------------------------------- */

static const char *on_hello(struct plx_link *link, void *user)
{
	struct plx_session *session = session_of(link);

	plx_link_set_user(link, session->user);
	return plx_connector_on_hello(link, &session->connector);
}

static void on_open(struct plx_link *link, void *user)
{
	struct plx_session *session = session_of(link);

	plx_connector_on_open(link, &session->connector);
	if (session->is_open && session->program->on_open)
		session->program->on_open(link, user);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct plx_session *session = session_of(link);

	session->lost = session->is_open ? link : NULL;
	session->lost_user = user;
	session->is_open = false;
	plx_connector_on_close(link, reason, text, &session->connector);
}

/* The API ------------------------------------------------------------------------------------- */

static int check_attr(const struct plx_session_attr *attr, struct plx_connector_attr *out)
{
	int rc = link_check_attr(attr ? &attr->link : NULL, &out->link);

	if (rc || !attr)
		return rc;
	out->reconnect_min_ns = attr->reconnect_min_ns;
	out->reconnect_max_ns = attr->reconnect_max_ns;
	return plx_connector_check_attr(out);
}

/* Ownership: takes the addresses. checked: of attr. */
static int create(struct addresses *addresses, const struct plx_session_attr *attr,
		  struct plx_connector_attr *checked, struct plx_session **session_out)
{
	static const struct plx_session_events no_events;
	struct plx_session *session = calloc(1, sizeof(*session));

	if (!session) {
		free(addresses);
		return plx_fail(ENOMEM, "out of memory");
	}
	session->addresses = addresses;
	session->program = attr->link.events;
	session->events = attr->events ?: &no_events;
	session->user = attr->link.user;
	session->lcore = plx_lcore_id();
	session->link_events = *attr->link.events;
	session->link_events.on_hello = on_hello;
	session->link_events.on_open = on_open;
	session->link_events.on_close = on_close;
	checked->link.events = &session->link_events;
	plx_connector_init(&session->connector, &owner, checked);
	session->connector.addresses = addresses->count > 1 ? addresses : NULL;
	plx_task_init(&session->later, do_later, session);
	LIST_INSERT_HEAD(&sessions[session->lcore], session, of_lcore);
	*session_out = session;
	return 0;
}

int plx_session_connect(const char *addresses, const struct plx_session_attr *attr,
			struct plx_session **session_out)
{
	struct plx_connector_attr checked;
	struct addresses *parsed = NULL;
	struct plx_session *session = NULL;
	int rc = plx_lcore_id() == PLX_LCORE_NONE ? plx_fail_no_lcore("plx_session_connect") : 0;

	rc = rc ?: check_attr(attr, &checked) ?: addresses_parse(addresses, &parsed);
	rc = rc ?: create(parsed, attr, &checked, &session);
	if (rc)
		return rc;
	rc = plx_connector_open(&session->connector, parsed->each[0].text);
	if (rc)
		destroy(&session);
	else
		*session_out = session;
	return rc;
}

struct plx_link *plx_session_link(const struct plx_session *session)
{
	struct plx_link *link = session->connector.link;

	ASSERT_OWNER(session->lcore);
	return link && plx_link_is_open(link) ? link : NULL;
}

const char *plx_session_address(const struct plx_session *session)
{
	ASSERT_OWNER(session->lcore);
	return session->connector.address;
}

void plx_session_close(struct plx_session *session)
{
	if (!session || plx_is_forked())
		return;
	ASSERT_OWNER(session->lcore);
	if (session->is_closing)
		return;
	session->is_closing = true;
	plx_task_schedule(&session->later);
}

void plx_session_settled(struct plx_session *session)
{
	if (plx_is_forked())
		return;
	ASSERT_OWNER(session->lcore);
	session_link_settled(&session->connector.base);
}

int plx_session_drain(uint64_t timeout_ns)
{
	int rc = plx_check_outside("plx_session_drain");
	struct sessions *here;
	struct plx_session *session;

	if (rc)
		return rc;
	here = &sessions[plx_lcore_id()];
	LIST_FOREACH (session, here, of_lcore)
		plx_session_close(session);
	rc = plx_loop_until(is_empty, here, timeout_ns);
	if (rc == -ETIMEDOUT)
		plx_fail(ETIMEDOUT,
			 "lcore %u: the session with %s has not ended, perhaps others too",
			 plx_lcore_id(), LIST_FIRST(here)->connector.address);
	return rc;
}
