/* SPDX-License-Identifier: BSD-3-Clause */
/* The subscribe socket and its publishers, which exist while there is a subscription to them. */
#include "pubsub_priv.h"

#include <stdlib.h>

static void publisher_release(struct publisher *publisher)
{
	LIST_REMOVE(&publisher->connection, peers);
	plx_task_cancel(&publisher->report_task);
	publisher_stop_retrying(publisher);
	connection_release(&publisher->connection);
}

/* Without subscriptions, close the connection and free the publisher. */
static void close_if_unused(struct publisher *publisher)
{
	if (publisher->interest_count || !publisher->connection.socket)
		return;
	if (publisher->connection.session.state == PLX_CONNECTOR_IDLE)
		publisher_release(publisher);
	else if (!publisher->connection.session.quit)
		connection_close(&publisher->connection);
}

static void report(struct plx_task *task, void *arg)
{
	struct publisher *publisher = arg;
	struct plx_connector *ref PLX_CLEANUP(plx_connector_unhold) = plx_connector_hold(
		&publisher->connection.session);

	plx_task_schedule(task); /* for the rest, if a C++ callback throws */
	publisher_report_ended(publisher);
	plx_task_cancel(task);
	close_if_unused(publisher);
}

static bool give(struct intake *intake, const struct netio_msg *msg)
{
	struct publisher *publisher = plx_container_of(intake, struct publisher, intake);
	struct netio_subscribe_socket *socket = publisher->connection.socket;

	publisher->number++;
	if (plx_unlikely(!socket))
		return true;
	socket->core->stats.messages++;
	CALL_USER(socket, cb_msg_received, socket, msg);
	return true;
}

static void miss(struct intake *intake, uint64_t count, uint32_t reasons)
{
	struct publisher *publisher = plx_container_of(intake, struct publisher, intake);
	const struct netio_subscribe_socket *socket = publisher->connection.socket;
	struct netio_gap gap = {
		.first = publisher->number + 1,
		.last = publisher->number + count,
		.count = count,
		.reasons = reasons,
	};

	publisher->number = gap.last;
	if (!socket)
		return;
	socket->core->stats.gaps++;
	socket->core->stats.missed[__builtin_ctz(reasons)] += count;
	CALL_USER(socket, cb_gap, &publisher->pub, &gap);
}

/* Once, before the next message. */
static void tell_unknown(struct publisher *publisher)
{
	static const struct netio_gap gap = {.reasons = NETIO_GAP_BIT(NETIO_GAP_UNKNOWN)};
	const struct netio_subscribe_socket *socket = publisher->connection.socket;

	publisher->intake.give = give;
	publisher->intake.miss = miss;
	if (!socket)
		return;
	socket->core->stats.gaps++;
	CALL_USER(socket, cb_gap, &publisher->pub, &gap);
}

static bool give_after_unknown(struct intake *intake, const struct netio_msg *msg)
{
	tell_unknown(plx_container_of(intake, struct publisher, intake));
	return give(intake, msg);
}

static void miss_after_unknown(struct intake *intake, uint64_t count, uint32_t reasons)
{
	tell_unknown(plx_container_of(intake, struct publisher, intake));
	miss(intake, count, reasons);
}

void publisher_note_unknown(struct publisher *publisher)
{
	publisher->intake.give = give_after_unknown;
	publisher->intake.miss = miss_after_unknown;
}

static const char *answer(struct intake *intake, const struct plx_buf *message)
{
	struct publisher *publisher = plx_container_of(intake, struct publisher, intake);
	const char *wrong = publisher_handle_answers(publisher, message);

	if (!wrong)
		close_if_unused(publisher);
	return wrong;
}

static void on_went_on(struct intake *intake, const char *wrong)
{
	struct publisher *publisher = plx_container_of(intake, struct publisher, intake);

	if (wrong)
		plx_connector_fail(&publisher->connection.session, PLX_LINK_PROTOCOL, wrong);
}

static const char *on_received(struct netio_connection *connection, struct plx_buf *message)
{
	return intake_take(&((struct publisher *)connection)->intake, message);
}

static void on_failed(struct session_link *session)
{
	intake_drop(&((struct publisher *)session)->intake);
}

DEFINE_NOTIFY(netio_subscribe_socket)

/* State in the next HELLO what this side knows. */
static void greet(struct publisher *publisher)
{
	struct netio_connection *connection = &publisher->connection;

	wire_greet(&connection->session.attr.link,
		   &(struct wire_greeting){
			   .type = WIRE_HELLO,
			   .role = WIRE_SUBSCRIBER,
			   .message_max = connection->accepted_max,
			   .incarnation = publisher->pub.incarnation,
			   .id = publisher->key,
			   .number = publisher->number,
		   });
}

static void on_opened(struct plx_connector *session)
{
	struct publisher *publisher = (struct publisher *)session;
	struct wire_greeting greeting = {0};

	wire_peer_greeting(session->link, WIRE_WELCOME, &greeting); /* checked in on_hello */
	if (!greeting.incarnation || greeting.incarnation != publisher->pub.incarnation)
		publisher->number = 0;
	publisher->pub.incarnation = greeting.incarnation;
	publisher->pub.started_ns = greeting.incarnation ? greeting.started_ns : 0;
	publisher->refusals_logged = 0;
	intake_open(&publisher->intake, session->base.link);
	SHOW_PEER(&publisher->pub, session->link);
	publisher_send_requests(publisher);
	notify_opened(session);
	close_if_unused(publisher);
}

static void hide_peer(struct netio_publisher **shown)
{
	HIDE_PEER(*shown);
}

static void on_closed(struct plx_connector *session, enum plx_link_reason reason, const char *why)
{
	struct publisher *publisher = (struct publisher *)session;
	const struct netio_connection *connection = &publisher->connection;
	struct netio_publisher *shown PLX_CLEANUP(hide_peer) = &publisher->pub;

	publisher_lose_all(publisher, why);
	notify_closed(session, reason, why);
	if (connection->socket && publisher->interest_count == 0)
		publisher_release(publisher);
	else if (connection->socket && session->state == PLX_CONNECTOR_IDLE && session->quit &&
		 !connection->evloop->draining)
		/* It was closed without subscriptions, but has one again. */
		plx_connector_open_again(session);
}

static void on_ended(struct plx_connector *session, const struct plx_link *link)
{
	struct publisher *publisher = (struct publisher *)session;

	publisher->is_full = false;
	greet(publisher);
}

static void on_writable(struct netio_connection *connection)
{
	struct publisher *publisher = (struct publisher *)connection;

	publisher->is_full = false;
	publisher_send_requests(publisher);
}

static void on_free(struct plx_connector *session)
{
	publisher_free_interests((struct publisher *)session);
	free(session);
}

static const struct connection_owner owner = {
	.session = {CONNECTION_SESSION, .opened = on_opened, .closed = on_closed, .ended = on_ended,
		    .free = on_free, .base.failed = on_failed},
	.role = WIRE_SUBSCRIBER,
	.suspect = notify_suspect,
	.received = on_received,
	.writable = on_writable,
};

static struct publisher *publisher_create(struct netio_subscribe_core *core, const char *address)
{
	struct publisher *publisher = calloc(1, sizeof(*publisher));

	if (!publisher)
		return NULL;
	hub_add(&core->hub, &publisher->connection, &owner, &publisher->pub, address);
	publisher->pub = (struct netio_publisher){
		.subscribe_socket = core->hub.socket,
		.id = publisher->connection.source,
		.address = publisher->connection.session.address,
	};
	HIDE_PEER(&publisher->pub);
	publisher->key = plx_random_id();
	greet(publisher);
	publisher->intake = (struct intake){
		.give = give,
		.miss = miss,
		.answer = answer,
		.went_on = on_went_on,
		.source = publisher->connection.source,
		.message_max = publisher->connection.accepted_max,
		.held_max = 2 * core->hub.attr.session.link.rx_buf_count,
	};
	publisher_init_interests(publisher);
	plx_task_init(&publisher->report_task, report, publisher);
	return publisher;
}

/* The socket ---------------------------------------------------------------------------------- */

static void on_end(struct hub *hub)
{
	((struct netio_subscribe_socket *)hub->socket)->core = NULL;
	while (!LIST_EMPTY(&hub->connections))
		publisher_release((struct publisher *)LIST_FIRST(&hub->connections));
	LIST_REMOVE(hub, link);
	free(hub);
}

int netio_subscribe_socket_init(struct netio_eventloop *evloop,
				struct netio_subscribe_socket *socket,
				const struct netio_subscribe_attr *attr)
{
	struct netio_subscribe_core *core;
	int rc;

	*socket = (struct netio_subscribe_socket){0};
	core = netio_allocate(evloop, "netio_subscribe_socket_init", sizeof(*core), &rc);
	if (!core)
		return rc;
	attr = attr ?: &(struct netio_subscribe_attr){0};
	rc = connection_check_attr(&attr->connect, &core->hub.attr)
		   ?: intake_set_buffers(attr->buffer_bytes, attr->buffer_count,
					 core->hub.attr.message_max, &core->hub.attr.session.link);
	if (rc) {
		free(core);
		return netio_logged(rc);
	}
	hub_init(&core->hub, evloop, socket, on_end);
	socket->core = core;
	return 0;
}

void netio_subscribe_socket_fini(struct netio_subscribe_socket *socket)
{
	ASSERT_LOOP(socket->core, socket->core->hub.evloop);
	if (socket->core)
		on_end(&socket->core->hub);
}

void netio_subscribe_stats_read(const struct netio_subscribe_socket *socket,
				struct netio_subscribe_stats *stats_out)
{
	ASSERT_LOOP(socket->core, socket->core->hub.evloop);
	*stats_out = (struct netio_subscribe_stats){0};
	if (socket->core)
		*stats_out = socket->core->stats;
}

/* Subscriptions ------------------------------------------------------------------------------- */

/* Also use one form for equal subscriptions. */
static int check_subscription(const struct netio_subscription *given,
			      struct netio_subscription *what)
{
	unsigned long long tag = given->tag, last = given->last, mask = given->mask;

	*what = *given;
	what->last = last == tag ? 0 : last;
	what->mask = mask == UINT64_MAX ? 0 : mask;
	if (last && mask)
		return plx_fail(EINVAL, "a range and a mask; give one of them");
	if (last && last < tag)
		return plx_fail(EINVAL, "a range from %#llx to %#llx; give the lesser tag first",
				tag, last);
	if (mask && tag & ~mask)
		return plx_fail(EINVAL, "tag %#llx has bits that mask %#llx leaves out", tag, mask);
	return netio_check_enum("delivery", what->delivery, NETIO_DELIVERY_BUFFERED + 1,
				"netio_delivery")
		     ?: netio_check_enum("policy", what->policy, NETIO_POLICY_COUNT,
					 "netio_policy");
}

/* What a call is about. */
struct target {
	struct publisher *publisher; /* NULL: not yet */
	struct netio_subscription what;
	char address[PLX_ADDRESS_MAX];
};

/* function: the caller, for the error text. Return: 0; -EINVAL. */
static int find(struct target *target, const char *function,
		const struct netio_subscribe_socket *socket, const char *host, unsigned port,
		const struct netio_subscription *given)
{
	struct netio_connection *connection = NULL;
	int rc = hub_find((struct hub *)socket->core, function, host, port, target->address,
			  &connection);

	if (rc)
		return rc;
	target->publisher = (struct publisher *)connection;
	rc = check_subscription(given, &target->what);
	return rc ? plx_fail_in(rc, "%s: ", function) : 0;
}

/* Releases a new publisher if subscribing fails. */
static int subscribe_at(struct publisher *publisher, const struct netio_subscription *subscription)
{
	struct netio_connection *connection = &publisher->connection;
	bool is_idle = connection->session.state == PLX_CONNECTOR_IDLE;
	int rc = is_idle ? plx_connector_open(&connection->session, connection->session.address)
			 : 0;

	if (rc == 0)
		rc = publisher_subscribe(publisher, subscription);
	if (is_idle && rc == -EEXIST) /* reconnecting was off */
		return 0;
	if (rc && is_idle && publisher->interest_count == 0)
		publisher_release(publisher);
	return rc;
}

int netio_subscribe_to(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		       const struct netio_subscription *subscription)
{
	struct target target;
	int rc = find(&target, "netio_subscribe", socket, host, port, subscription);

	ASSERT_LOOP(socket->core, socket->core->hub.evloop);
	if (rc)
		return netio_logged(rc);
	rc = netio_check_open(socket->core->hub.evloop, "netio_subscribe");
	if (rc)
		return rc;
	target.publisher = target.publisher ?: publisher_create(socket->core, target.address);
	if (!target.publisher)
		return netio_fail(ENOMEM, "netio_subscribe: out of memory");
	return netio_logged(subscribe_at(target.publisher, &target.what));
}

int netio_subscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		    netio_tag_t tag)
{
	return netio_subscribe_to(socket, host, port, &(struct netio_subscription){.tag = tag});
}

int netio_unsubscribe_from(struct netio_subscribe_socket *socket, const char *host, unsigned port,
			   const struct netio_subscription *subscription)
{
	struct target target;
	int rc = find(&target, "netio_unsubscribe", socket, host, port, subscription);

	ASSERT_LOOP(socket->core, socket->core->hub.evloop);
	if (rc)
		return netio_logged(rc);
	if (!target.publisher)
		return netio_fail(ENOENT, "netio_unsubscribe: nothing is subscribed to at %s",
				  target.address);
	return netio_logged(publisher_unsubscribe(target.publisher, &target.what));
}

int netio_unsubscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		      netio_tag_t tag)
{
	return netio_unsubscribe_from(socket, host, port, &(struct netio_subscription){.tag = tag});
}
