/* SPDX-License-Identifier: BSD-3-Clause */
#include "session.h"

#include <stdio.h>

/* Released connectors by lcore. Not in the thread's memory: the next thread of an lcore, or the one
 * that calls plx_fabric_fini, ends them. */
static struct session_links closing[PLX_LCORE_MAX];

/* If no lcore is left, any will do. */
static struct session_links *closing_here(void)
{
	uint32_t id = plx_lcore_id();

	return &closing[id == PLX_LCORE_NONE ? 0 : id];
}

int plx_connector_check_attr(struct plx_connector_attr *attr)
{
	const char *provider = attr->link.provider;

	attr->reconnect_min_ns = attr->reconnect_min_ns ?: PLX_RECONNECT_MIN_NS;
	if (attr->reconnect_max_ns == 0)
		attr->reconnect_max_ns = attr->reconnect_min_ns > PLX_RECONNECT_MAX_NS
					       ? attr->reconnect_min_ns
					       : PLX_RECONNECT_MAX_NS;
	if (provider && strlen(provider) >= sizeof(((struct plx_connector *)0)->provider))
		return plx_fail(EINVAL, "unknown provider '%s'", provider);
	if (attr->reconnect_min_ns != PLX_NEVER && attr->reconnect_min_ns > attr->reconnect_max_ns)
		return plx_fail(EINVAL, "reconnect_min_ns %llu is more than reconnect_max_ns %llu",
				(unsigned long long)attr->reconnect_min_ns,
				(unsigned long long)attr->reconnect_max_ns);
	return 0;
}

/* Trying again --------------------------------------------------------------------------------- */

static uint64_t next_wait_ns(struct plx_connector *connector)
{
	if (connector->busy_ns)
		return connector->busy_ns +
		       plx_backoff_within_ns(&connector->backoff, connector->busy_ns);
	return connector->refused_here ? plx_backoff_next_same_host_ns(&connector->backoff)
				       : plx_backoff_next_ns(&connector->backoff);
}

static void try_later(struct plx_connector *connector)
{
	bool at_once = connector->addresses && addresses_failed(connector);

	connector->state = PLX_CONNECTOR_IDLE;
	if (connector->quit || (!at_once && connector->attr.reconnect_min_ns == PLX_NEVER))
		return;
	connector->state = PLX_CONNECTOR_WAITING;
	if (at_once)
		plx_timer_start(&connector->base.timer, 0);
	else if (connector->addresses || !connector->refused_here || quiet_join(connector))
		plx_timer_start(&connector->base.timer, next_wait_ns(connector));
}

struct plx_connector *plx_connector_hold(struct plx_connector *connector)
{
	connector->holds++;
	return connector;
}

void plx_connector_unhold(struct plx_connector **held)
{
	struct plx_connector *connector = *held;

	if (--connector->holds == 0 && connector->freed)
		connector->owner->free(connector);
}

/* Log each cause once, since attempts continue. If the program is notified, it is no warning. */
static void report_refused(struct plx_connector *connector, enum plx_link_reason reason,
			   const char *why)
{
	const char *then = connector->state == PLX_CONNECTOR_WAITING ? "; trying again" : "";
	bool is_new = !(connector->logged & 1u << reason);
	enum plx_log_level level;
	struct plx_connector *ref PLX_CLEANUP(plx_connector_unhold) = plx_connector_hold(connector);

	connector->logged |= 1u << reason;
	level = connector->owner->refused(connector, reason, why) ? PLX_LOG_INFO : PLX_LOG_WARNING;
	if (is_new)
		plx_log(session_log, level, "%s%s", why, then);
}

static void destroy(struct plx_connector *connector)
{
	plx_timer_stop(&connector->base.timer);
	plx_lookup_cancel(&connector->lookup);
	quiet_leave(connector, false);
	LIST_REMOVE(&connector->base, links);
	connector->freed = true;
	if (connector->holds == 0)
		connector->owner->free(connector);
}

/* The last notice of a link, or of a failed attempt to open one. */
static void ended(struct plx_connector *connector, enum plx_link_reason reason, const char *why)
{
	bool is_closed = connector->state != PLX_CONNECTOR_CONNECTING || connector->quit;

	plx_timer_stop(&connector->base.timer);
	if (connector->opened_ns && plx_time_since(connector->opened_ns, plx_loop_now_ns()) >=
					    connector->attr.reconnect_max_ns)
		plx_backoff_reset(&connector->backoff);
	connector->opened_ns = 0;
	connector->link = NULL;
	connector->base.failure = NULL;
	connector->base.closing = connector->base.settling = false;
	connector->state = PLX_CONNECTOR_CLOSING;
	if (connector->owner->ended)
		connector->owner->ended(connector, connector->base.link);
	connector->base.link = NULL;
	if (connector->released) {
		destroy(connector);
		return;
	}
	try_later(connector);

	struct plx_connector *ref PLX_CLEANUP(plx_connector_unhold) = plx_connector_hold(connector);

	if (is_closed)
		connector->owner->closed(connector, reason, why);
	else
		report_refused(connector, reason, why);
}

/* The link ---------------------------------------------------------------------------------- */

const char *plx_connector_on_hello(struct plx_link *link, void *user)
{
	struct plx_connector *connector = user;

	if (!connector || connector->quit)
		return NULL; /* checked again in on_open */
	return connector->owner->hello(connector, link);
}

void plx_connector_on_open(struct plx_link *link, void *user)
{
	struct plx_connector *connector = user;

	if (!connector || connector->quit) { /* it was closed, or has left the link */
		plx_link_abort(link);
		return;
	}
	quiet_leave(connector, true);
	connector->opened_ns = plx_loop_now_ns();
	connector->link = link;
	connector->logged = 0;
	if (connector->addresses)
		addresses_opened(connector);
	connector->state = PLX_CONNECTOR_OPEN;
	connector->owner->opened(connector);
}

void plx_connector_on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			    void *user)
{
	struct plx_connector *connector = user;
	char why[PLX_ADDRESS_MAX + 120];

	if (!connector)
		return;
	connector->busy_ns = plx_link_busy_ns(link);
	connector->refused_here = reason == PLX_LINK_REFUSED && !connector->busy_ns &&
				  plx_link_is_same_host(link);
	if (!connector->refused_here)
		quiet_leave(connector, true);
	if (!connector->base.failure) {
		if (reason == PLX_LINK_TIMEOUT)
			session_note_late();
		ended(connector, reason, text);
		return;
	}
	snprintf(why, sizeof(why), "%s: %s", connector->address, connector->base.failure);
	ended(connector, connector->failed_as, why);
}

void plx_connector_fail(struct plx_connector *connector, enum plx_link_reason reason,
			const char *why)
{
	if (connector->base.failure || !connector->base.link)
		return;
	if (reason == PLX_LINK_TIMEOUT)
		session_note_late();
	connector->failed_as = reason;
	connector->state = PLX_CONNECTOR_CLOSING;
	session_link_fail(&connector->base, why);
}

/* Opening ------------------------------------------------------------------------------------- */

static int connect_link(struct plx_connector *connector)
{
	struct plx_link_attr attr = connector->attr.link;
	int rc;

	attr.user = connector;
	attr.provider = connector->provider[0] ? connector->provider : NULL;
	connector->state = PLX_CONNECTOR_CONNECTING;
	rc = plx_link_connect(connector->address, &attr, &connector->base.link);
	if (rc)
		connector->state = PLX_CONNECTOR_IDLE;
	return rc;
}

/* An attempt failed immediately; plx_error() has the reason. */
static void fail_attempt(struct plx_connector *connector)
{
	char why[PLX_ADDRESS_MAX + 100];

	snprintf(why, sizeof(why), "%s", plx_error());
	quiet_leave(connector, true); /* those that follow must not wait for its back-off */
	try_later(connector);
	report_refused(connector, PLX_LINK_LOCAL, why);
}

static void on_lookup(struct plx_lookup *lookup, void *arg)
{
	if (connect_link(arg) != 0)
		fail_attempt(arg);
}

static int try_to_open(struct plx_connector *connector)
{
	int rc;

	connector->refused_here = false;
	connector->busy_ns = 0;
	rc = plx_lookup_start(&connector->lookup, connector->address, on_lookup, connector);
	connector->state = rc ? PLX_CONNECTOR_IDLE : PLX_CONNECTOR_LOOKING_UP;
	return rc > 0 ? connect_link(connector) : rc;
}

/* Whether a later attempt may succeed: no route, no memory, no descriptor, no thread. Other errors
 * are mistakes of the caller. */
static bool may_pass(int rc)
{
	return rc == -EHOSTUNREACH || rc == -ENOMEM || rc == -EIO || rc == -EAGAIN;
}

static void try_again(struct plx_connector *connector)
{
	if (try_to_open(connector) != 0)
		fail_attempt(connector);
}

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct plx_connector *connector = arg;

	if (connector->state == PLX_CONNECTOR_WAITING && connector->quit) {
		ended(connector, PLX_LINK_ABORTED, "closed before it was open");
	} else if (connector->state == PLX_CONNECTOR_WAITING) {
		if (connector->addresses)
			addresses_turn(connector);
		try_again(connector);
	} else {
		/* It has been closing for PLX_CLOSE_NS. */
		if (connector->released) /* otherwise notify the owner */
			session_log_late(connector->address);
		plx_connector_fail(connector, PLX_LINK_TIMEOUT, "it " SESSION_LATE);
	}
}

void plx_connector_init(struct plx_connector *connector, const struct plx_connector_owner *owner,
			const struct plx_connector_attr *attr)
{
	*connector = (struct plx_connector){
		.base.owner = &owner->base, .owner = owner, .attr = *attr};
	plx_backoff_init(&connector->backoff, attr->reconnect_min_ns, attr->reconnect_max_ns,
			 plx_now_ns() ^ (uintptr_t)connector);
	snprintf(connector->provider, sizeof(connector->provider), "%s", attr->link.provider ?: "");
	plx_timer_init(&connector->base.timer, on_timer, connector);
	plx_timer_set_lax(&connector->base.timer, true);
}

/* Called by the owner: restart the back-off. */
static void forget_attempts(struct plx_connector *connector)
{
	plx_timer_stop(&connector->base.timer);
	quiet_leave(connector, false);
	plx_backoff_reset(&connector->backoff);
	connector->quit = false;
}

int plx_connector_open(struct plx_connector *connector, const char *address)
{
	int rc;

	forget_attempts(connector);
	if (strcmp(connector->address, address) != 0) {
		connector->logged = 0;
		snprintf(connector->address, sizeof(connector->address), "%s", address);
	}
	rc = try_to_open(connector);
	if (!may_pass(rc))
		return rc;
	/* Try once more from the loop, which reports it: the caller expects no callback here. */
	connector->state = PLX_CONNECTOR_WAITING;
	return plx_timer_start(&connector->base.timer, 0);
}

void plx_connector_open_again(struct plx_connector *connector)
{
	forget_attempts(connector);
	try_again(connector);
}

/* Closing ------------------------------------------------------------------------------------- */

void plx_connector_renew(struct plx_connector *connector)
{
	connector->state = PLX_CONNECTOR_CLOSING;
	session_link_close(&connector->base);
}

void plx_connector_close(struct plx_connector *connector)
{
	connector->quit = true;
	quiet_leave(connector, false);
	if (connector->state == PLX_CONNECTOR_LOOKING_UP) {
		plx_lookup_cancel(&connector->lookup);
		connector->state = PLX_CONNECTOR_WAITING;
	}
	if (connector->state == PLX_CONNECTOR_WAITING) /* the timer notifies from the loop */
		plx_timer_start(&connector->base.timer, 0);
	else if (connector->state == PLX_CONNECTOR_CONNECTING)
		plx_link_abort(connector->base.link);
	else if (connector->state == PLX_CONNECTOR_OPEN)
		plx_connector_renew(connector);
}

void plx_connector_release(struct plx_connector *connector)
{
	connector->released = true;
	LIST_INSERT_HEAD(closing_here(), &connector->base, links);
	if (connector->base.link)
		plx_connector_close(connector);
	else
		destroy(connector);
}

void plx_connector_fini(struct plx_connector *connector)
{
	struct plx_link *link = connector->base.link;

	plx_timer_stop(&connector->base.timer);
	plx_lookup_cancel(&connector->lookup);
	quiet_leave(connector, false);
	connector->quit = true;
	if (link) {
		plx_link_set_user(link, NULL);
		if (connector->link)
			plx_link_close(link);
		else if (connector->state == PLX_CONNECTOR_CONNECTING)
			plx_link_abort(link);
	}
	connector->state = PLX_CONNECTOR_IDLE;
}

const char *connector_closing(void)
{
	const struct plx_connector *connector = (struct plx_connector *)LIST_FIRST(closing_here());

	return connector ? connector->address : NULL;
}
