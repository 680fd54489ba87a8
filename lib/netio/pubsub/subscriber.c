/* SPDX-License-Identifier: BSD-3-Clause */
/* The subscribers of a publish socket: connections and outboxes. */
#include "pubsub_priv.h"

#include <stdlib.h>

/* Outboxes ------------------------------------------------------------------------------------ */

static struct subscriber *subscriber_of(struct outbox *outbox)
{
	return plx_container_of(outbox, struct subscriber, outbox);
}

static void on_room(struct outbox *outbox)
{
	publish_report_room(subscriber_core(subscriber_of(outbox)));
}

static void on_sent(struct outbox *outbox)
{
	struct subscriber *subscriber = subscriber_of(outbox);

	plx_accepted_progressed(&subscriber->accepted.session);
	if (plx_unlikely(subscriber->answer_bytes))
		requests_resume(subscriber);
	if (plx_unlikely(outbox_is_done(outbox)))
		plx_accepted_settled(&subscriber->accepted.session);
}

static void on_too_slow(struct outbox *outbox, const char *why)
{
	struct accepted *accepted = &subscriber_of(outbox)->accepted;

	accepted->closed_why = why;
	plx_accepted_close(&accepted->session);
}

static const struct outbox_owner outbox_owner = {
	.room = on_room,
	.sent = on_sent,
	.too_slow = on_too_slow,
};

void netio_subscriber_stats(const struct netio_subscriber *subscriber,
			    struct netio_subscriber_stats *stats_out)
{
	const struct subscriber *its = plx_container_of(subscriber, struct subscriber, pub);
	const struct outbox *outbox = &its->outbox;

	ASSERT_OWNER(its->accepted.session.acceptor->lcore);
	*stats_out = (struct netio_subscriber_stats){
		.backlog_bytes = outbox_backlog_bytes(outbox) + outbox->latest.bytes,
		.pages_under_way = outbox->count - outbox->free_count,
		.is_slow = outbox_is_slow(outbox),
	};
	memcpy(stats_out->missed, outbox->missed, sizeof(stats_out->missed));
}

/* Connections --------------------------------------------------------------------------------- */

/* Also grows `matches`, which must have room for all subscribers. */
static bool has_room(struct acceptor *acceptor)
{
	struct netio_publish_core *core = (struct netio_publish_core *)acceptor;
	uint32_t room = core->match_room ? 2 * core->match_room : 16;
	struct match *matches;

	if (core->stats.subscribers >= core->attr.subscribers_max) {
		if (plx_log_allowed(&acceptor->log_limit, plx_loop_now_ns()))
			plx_log(netio_log, PLX_LOG_WARNING,
				"a subscriber is refused: there are %u; subscribers_max",
				core->stats.subscribers);
		return false;
	}
	if (core->stats.subscribers < core->match_room)
		return true;
	matches = realloc(core->matches, room * sizeof(*matches));
	if (!matches)
		return false;
	core->matches = matches;
	core->match_room = room;
	return true;
}

static struct plx_accepted *on_create(struct plx_acceptor *session)
{
	struct netio_publish_core *core = (struct netio_publish_core *)session;
	struct subscriber *subscriber;

	if (!has_room(&core->acceptor))
		return NULL;
	subscriber = aligned_alloc(PLX_CACHE_LINE, sizeof(*subscriber));
	if (!subscriber)
		return NULL;
	memset(subscriber, 0, sizeof(*subscriber));
	outbox_init(&subscriber->outbox, &core->outbox_attr, &outbox_owner);
	subscriber->outbox.all_droppable = true;
	subscriber->outbox.missed_in_all = core->missed;
	core->stats.subscribers++;
	return &subscriber->accepted.session;
}

static void on_opened(struct plx_accepted *session)
{
	struct subscriber *subscriber = (struct subscriber *)session;
	struct accepted *accepted = &subscriber->accepted;
	const struct netio_publish_core *core = subscriber_core(subscriber);

	accepted_note_open(accepted);
	outbox_open(&subscriber->outbox, session->link, accepted->message_max);
	subscriber->pub = (struct netio_subscriber){
		.socket = core->acceptor.socket,
		.id = accepted->id,
		.peer = accepted->peer,
		.provider = accepted->provider,
	};
	PUBLISH_CALLBACK(core, cb_connection_established, (&subscriber->pub));
}

static void on_suspect(struct accepted *accepted, bool suspect)
{
	struct subscriber *subscriber = (struct subscriber *)accepted;

	PUBLISH_CALLBACK(subscriber_core(subscriber), cb_connection_suspect,
			 (&subscriber->pub, suspect));
}

static void on_writable(struct accepted *accepted)
{
	struct subscriber *subscriber = (struct subscriber *)accepted;
	struct netio_publish_core *core = subscriber_core(subscriber);

	if (!accepted->session.link)
		return;
	requests_resume(subscriber);
	if (accepted->session.link)
		outbox_writable(&subscriber->outbox);
	if (core->unbuffered)
		publish_report_room(core);
	else if (accepted->session.link)
		outbox_report_room(&subscriber->outbox);
}

static void on_failed(struct plx_accepted *session)
{
	struct subscriber *subscriber = (struct subscriber *)session;

	requests_drop(subscriber);
	pending_forget(subscriber_core(subscriber), subscriber);
}

static bool on_settle(struct plx_accepted *session)
{
	return outbox_close(&((struct subscriber *)session)->outbox);
}

static bool on_ended(struct plx_accepted *session, struct plx_link *link,
		     enum plx_link_reason reason, const char *text)
{
	struct subscriber *subscriber = (struct subscriber *)session;

	accepted_note_end(&subscriber->accepted, link, reason, text);
	outbox_link_ended(&subscriber->outbox);
	on_failed(session);
	return true;
}

static void on_closed(struct plx_accepted *session)
{
	struct subscriber *subscriber = (struct subscriber *)session;
	const struct accepted *accepted = &subscriber->accepted;
	struct netio_publish_core *core = subscriber_core(subscriber);

	PUBLISH_CALLBACK(core, cb_connection_closed,
			 (&subscriber->pub, accepted->reason, accepted->why));
	publish_report_room(core);
}

static void on_free(struct plx_accepted *session)
{
	struct subscriber *subscriber = (struct subscriber *)session;
	struct netio_publish_core *core = subscriber_core(subscriber);

	core->stats.pages += subscriber->outbox.stats.pages;
	core->stats.lost += subscriber->outbox.stats.messages_lost;
	outbox_fini(&subscriber->outbox);
	core->stats.subscribers--;
	free(subscriber);
}

const struct acceptor_owner subscriber_owner = {
	.session = {.hello = acceptor_on_hello,
		    .create = on_create,
		    .opened = on_opened,
		    .failed = on_failed,
		    .settle = on_settle,
		    .ended = on_ended,
		    .closed = on_closed,
		    .free = on_free,
		    .free_acceptor = publish_core_destroy},
	.role = WIRE_SUBSCRIBER,
	.has_room = has_room,
	.suspect = on_suspect,
	.received = requests_received,
	.writable = on_writable,
	.fini = publish_socket_fini,
};

void netio_subscriber_close(struct netio_subscriber *subscriber)
{
	ASSERT_OWNER(plx_container_of(subscriber, struct subscriber, pub)
			     ->accepted.session.acceptor->lcore);
	plx_accepted_close(&plx_container_of(subscriber, struct subscriber, pub)->accepted.session);
}
