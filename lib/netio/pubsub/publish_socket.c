/* SPDX-License-Identifier: BSD-3-Clause */
/* The two publish sockets, which differ only in how they publish, and their subscribers. */
#include "pubsub_priv.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#define MESSAGE_MAX 4000 /* of requests: a full list fits */

/* The link delivered what it had taken; it takes nothing more once its peer closes it. */
#define CLOSED_EARLY "the subscriber closed it; what waited for it is lost"

static_assert(WIRE_LIST_BYTES + WIRE_LIST_MAX * WIRE_REQUEST_BYTES <= MESSAGE_MAX, "requests fit");

static struct subscriber *subscriber_of(struct outbox *outbox)
{
	return plx_container_of(outbox, struct subscriber, outbox);
}

static void on_room(struct outbox *outbox)
{
	struct subscriber *subscriber = subscriber_of(outbox);

	block_end(subscriber);
	publish_report_room(subscriber_core(subscriber));
}

static void on_sent(struct outbox *outbox)
{
	struct subscriber *subscriber = subscriber_of(outbox);

	if (plx_unlikely(subscriber->answer_bytes))
		requests_resume(subscriber);
	if (plx_unlikely(outbox_is_done(outbox)))
		session_link_settled(&subscriber->accepted.session);
}

static void on_too_slow(struct outbox *outbox)
{
	struct accepted *accepted = &subscriber_of(outbox)->accepted;

	accepted->closed_why = "it was too slow, and the policy of its subscription is disconnect";
	session_link_close(&accepted->session);
}

static void on_missed(struct outbox *outbox, enum netio_gap_reason reason)
{
	miss_note(subscriber_of(outbox), reason);
}

static const struct outbox_owner outbox_owner = {
	.room = on_room,
	.sent = on_sent,
	.too_slow = on_too_slow,
	.missed = on_missed,
};

/* Connections --------------------------------------------------------------------------------- */

/* Also grows `matches`, which must have room for all subscribers. */
static bool has_room(struct acceptor *acceptor)
{
	struct netio_publish_core *core = (struct netio_publish_core *)acceptor;

	if (core->stats.subscribers >= core->attr.subscribers_max) {
		if (plx_log_allowed(&acceptor->log_limit, plx_loop_now_ns()))
			plx_log(netio_log, PLX_LOG_WARNING,
				"a subscriber is refused: there are %u; subscribers_max",
				core->stats.subscribers);
		return false;
	}
	return match_make_room(core);
}

static struct session_link *on_create(struct plx_acceptor *session)
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
	block_init(subscriber);
	subscriber->outbox.missed_in_all = core->missed;
	core->stats.subscribers++;
	return &subscriber->accepted.session;
}

static void on_opened(struct session_link *session)
{
	struct subscriber *subscriber = (struct subscriber *)session;
	struct accepted *accepted = &subscriber->accepted;
	const struct netio_publish_core *core = subscriber_core(subscriber);
	struct wire_greeting hello = {0};

	accepted_note_open(accepted);
	outbox_open(&subscriber->outbox, session->link, accepted->message_max);
	subscriber->pub = (struct netio_subscriber){
		.socket = core->acceptor.socket,
		.id = accepted->id,
		.peer = accepted->peer,
		.provider = accepted->provider,
		.choice = accepted->choice,
		.program = accepted->program,
		.pid = accepted->pid,
	};
	wire_peer_greeting(session->link, WIRE_HELLO, &hello); /* it was checked in on_hello */
	absent_return(subscriber, &hello);
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
	/* While pages wait, the link has no room, and this runs again. */
	if (core->unbuffered && subscriber->outbox.waiting_count == 0) {
		subscriber->outbox.room.wanted = 0;
		block_end(subscriber);
		publish_report_room(core);
	} else if (accepted->session.link) {
		outbox_report_room(&subscriber->outbox);
	}
}

void subscriber_lose(struct subscriber *subscriber, uint64_t key)
{
	block_end(subscriber);
	pending_forget(subscriber_core(subscriber), subscriber, NETIO_GAP_GIVEN_UP);
	if (key && (subscriber->by_what || subscriber->other)) {
		subscriber->key = key;
		absent_begin(subscriber);
	} else {
		absent_end(subscriber);
	}
	requests_drop(subscriber, false);
	absent_begun(subscriber);
}

static void on_failed(struct session_link *session)
{
	struct subscriber *subscriber = (struct subscriber *)session;

	subscriber_lose(subscriber, 0);
}

static bool on_settle(struct session_link *session)
{
	return outbox_close(&((struct subscriber *)session)->outbox);
}

/* A subscriber that has closed its connection expects nothing more. */
static bool may_return(const struct session_link *session, enum plx_link_reason reason)
{
	return !session->failure && !session->acceptor->released &&
	       (reason != PLX_LINK_CLOSED || session->closing);
}

static bool on_ended(struct session_link *session, struct plx_link *link,
		     enum plx_link_reason reason, const char *text)
{
	struct subscriber *subscriber = (struct subscriber *)session;
	uint64_t lost = subscriber->outbox.stats.messages_lost;

	outbox_link_ended(&subscriber->outbox);
	lost = subscriber->outbox.stats.messages_lost - lost;
	accepted_note_end(&subscriber->accepted, link, reason,
			  reason == PLX_LINK_CLOSED && lost ? CLOSED_EARLY : text);
	subscriber_lose(subscriber, may_return(session, reason) ? subscriber->key : 0);
	return true;
}

static void on_closed(struct session_link *session)
{
	struct subscriber *subscriber = (struct subscriber *)session;
	const struct accepted *accepted = &subscriber->accepted;
	struct netio_publish_core *core = subscriber_core(subscriber);

	PUBLISH_CALLBACK(core, cb_connection_closed,
			 (&subscriber->pub, accepted->reason, accepted->why));
	publish_report_room(core);
}

static void on_free(struct session_link *session)
{
	struct subscriber *subscriber = (struct subscriber *)session;
	struct netio_publish_core *core = subscriber_core(subscriber);

	requests_drop(subscriber, true); /* what is left if a C++ callback threw */
	core->stats.pages += subscriber->outbox.stats.pages;
	core->stats.lost += subscriber->outbox.stats.messages_lost;
	outbox_fini(&subscriber->outbox);
	block_fini(subscriber);
	core->stats.subscribers--;
	free(subscriber);
}

/* Publications that complete now have no socket to notify. */
void publish_core_destroy(struct plx_acceptor *session)
{
	struct netio_publish_core *core = (struct netio_publish_core *)session;

	if (core->reporting) {
		core->freed = true;
		return;
	}
	publications_free(core);
	table_fini(&core->table);
	free(core->matches);
	free(core);
}

static void on_end(struct acceptor *acceptor)
{
	struct netio_publish_core *core = (struct netio_publish_core *)acceptor;

	if (core->buffered)
		core->buffered->core = NULL;
	else
		core->unbuffered->core = NULL;
	core->buffered = NULL;
	core->unbuffered = NULL;
	absent_drop_all(core);
	while (core->pending_count)
		pending_give_up(core, TAILQ_FIRST(&core->pendings));
	acceptor_release(acceptor);
}

static const struct acceptor_owner owner = {
	.session = {ACCEPTOR_SESSION, .create = on_create, .opened = on_opened,
		    .base.failed = on_failed, .base.settle = on_settle, .ended = on_ended,
		    .closed = on_closed, .free = on_free, .free_acceptor = publish_core_destroy},
	.role = WIRE_SUBSCRIBER,
	.has_room = has_room,
	.suspect = on_suspect,
	.received = requests_received,
	.writable = on_writable,
	.end = on_end,
};

/* The socket ---------------------------------------------------------------------------------- */

static uint64_t real_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * PLX_NS_PER_S + (uint64_t)now.tv_nsec;
}

static int check_attr(struct netio_publish_core *core)
{
	struct netio_publish_attr *attr = &core->attr;

	core->outbox_attr = (struct netio_buffered_attr){
		.page_bytes = attr->page_bytes,
		.page_count = attr->page_count ?: NETIO_PUBLISH_PAGE_COUNT_DEFAULT,
		.watermark_bytes = attr->watermark_bytes,
		.timeout_ns = attr->timeout_ns,
	};
	attr->subscribers_max = attr->subscribers_max ?: NETIO_SUBSCRIBERS_DEFAULT;
	attr->subscriptions_max = attr->subscriptions_max ?: NETIO_SUBSCRIPTIONS_DEFAULT;
	attr->subscriber_subscriptions_max = attr->subscriber_subscriptions_max
						   ?: NETIO_SUBSCRIBER_SUBSCRIPTIONS_DEFAULT;
	attr->policy = attr->policy ?: NETIO_POLICY_BLOCK;
	if (attr->refuse_block && attr->policy == NETIO_POLICY_BLOCK)
		return plx_fail(EINVAL, "refuse_block: give a policy, other than to block, for "
					"subscriptions that name none");
	return netio_check_enum("policy", attr->policy, NETIO_POLICY_COUNT, "netio_policy")
		     ?: outbox_check_attr(&core->outbox_attr);
}

static int core_create(struct netio_eventloop *evloop, const char *what,
		       const struct netio_publish_attr *attr, void *socket,
		       struct netio_publish_core **core_out)
{
	int rc;
	struct netio_publish_core *core = netio_allocate(evloop, what, sizeof(*core), &rc);

	if (!core)
		return rc;
	if (attr)
		core->attr = *attr;
	rc = check_attr(core) ?: acceptor_check(core->attr.provider, MESSAGE_MAX);
	rc = netio_logged(rc ?: table_init(&core->table, plx_random_id()));
	if (rc) {
		free(core);
		return rc;
	}
	core->version = match_new_version();
	TAILQ_INIT(&core->pendings);
	absents_init(core);
	publications_init(core);
	acceptor_init(&core->acceptor, evloop, socket, &owner, core->attr.provider, MESSAGE_MAX);
	core->acceptor.incarnation = plx_random_id();
	core->acceptor.started_ns = real_time_ns();
	*core_out = core;
	return 0;
}

static int core_listen(struct netio_publish_core *core, const char *what, const char *host,
		       unsigned port)
{
	struct plx_listen_attr attr = {
		.link = {.rx_buf_bytes = MESSAGE_MAX + WIRE_MESSAGE_BYTES,
			 .rx_buf_count = REQUEST_BUFFERS,
			 .message_max_bytes = MESSAGE_MAX + WIRE_MESSAGE_BYTES},
	};

	return acceptor_listen((struct acceptor *)core, what, host, port, &attr);
}

static void core_stats(const struct netio_publish_core *core, struct netio_publish_stats *stats_out)
{
	const struct session_link *it;

	*stats_out = (struct netio_publish_stats){0};
	if (!core)
		return;
	*stats_out = core->stats;
	stats_out->dropped_new = core->missed[NETIO_GAP_DROPPED_NEW];
	stats_out->dropped_old = core->missed[NETIO_GAP_DROPPED_OLD];
	stats_out->conflated = core->missed[NETIO_GAP_CONFLATED];
	stats_out->disconnected = core->missed[NETIO_GAP_DISCONNECTED];
	stats_out->too_big = core->missed[NETIO_GAP_TOO_BIG];
	stats_out->given_up = core->missed[NETIO_GAP_GIVEN_UP];
	stats_out->lost_told = core->missed[NETIO_GAP_LOST];
	LIST_FOREACH (it, &core->acceptor.session.links, links) {
		const struct outbox *outbox = &((const struct subscriber *)it)->outbox;

		stats_out->pages += outbox->stats.pages;
		stats_out->lost += outbox->stats.messages_lost;
		stats_out->pages_under_way += outbox->count - outbox->free_count;
	}
}

void netio_subscriber_stats_read(const struct netio_subscriber *subscriber,
				 struct netio_subscriber_stats *stats_out)
{
	const struct subscriber *its = plx_container_of(subscriber, struct subscriber, pub);
	const struct outbox *outbox = &its->outbox;

	ASSERT_OWNER(its->accepted.session.acceptor->lcore);
	*stats_out = (struct netio_subscriber_stats){
		.backlog_bytes = outbox_backlog_bytes(outbox) + outbox->latest.bytes,
		.pages_under_way = outbox->count - outbox->free_count,
		.is_slow = outbox_is_slow(outbox),
		.blocked_ns = block_total_ns(its),
		.lost = outbox->stats.messages_lost,
	};
	memcpy(stats_out->missed, outbox->missed, sizeof(stats_out->missed));
}

void netio_subscriber_close(struct netio_subscriber *subscriber)
{
	struct subscriber *its = plx_container_of(subscriber, struct subscriber, pub);

	ASSERT_OWNER(its->accepted.session.acceptor->lcore);
	session_link_close(&its->accepted.session);
}

#define DEFINE_PUBLISH_SOCKET(kind, prefix, member)                                                \
	int kind##_init(struct netio_eventloop *evloop, struct kind *socket,                       \
			const struct netio_publish_attr *attr)                                     \
	{                                                                                          \
		int rc;                                                                            \
                                                                                                   \
		*socket = (struct kind){0};                                                        \
		rc = core_create(evloop, __func__, attr, socket, &socket->core);                   \
		if (socket->core)                                                                  \
			socket->core->member = socket;                                             \
		return rc;                                                                         \
	}                                                                                          \
                                                                                                   \
	int prefix##_listen(struct kind *socket, const char *host, unsigned port)                  \
	{                                                                                          \
		ASSERT_LOOP(socket->core, socket->core->acceptor.evloop);                          \
		return core_listen(socket->core, __func__, host, port);                            \
	}                                                                                          \
                                                                                                   \
	unsigned kind##_port(const struct kind *socket)                                            \
	{                                                                                          \
		ASSERT_LOOP(socket->core, socket->core->acceptor.evloop);                          \
		return socket->core ? plx_listener_port(socket->core->acceptor.listener) : 0;      \
	}                                                                                          \
                                                                                                   \
	void kind##_fini(struct kind *socket)                                                      \
	{                                                                                          \
		ASSERT_LOOP(socket->core, socket->core->acceptor.evloop);                          \
		if (socket->core)                                                                  \
			on_end(&socket->core->acceptor);                                           \
	}                                                                                          \
                                                                                                   \
	void prefix##_stats_read(const struct kind *socket, struct netio_publish_stats *stats_out) \
	{                                                                                          \
		ASSERT_LOOP(socket->core, socket->core->acceptor.evloop);                          \
		core_stats(socket->core, stats_out);                                               \
	}

DEFINE_PUBLISH_SOCKET(netio_publish_socket, netio_publish, buffered)
DEFINE_PUBLISH_SOCKET(netio_unbuffered_publish_socket, netio_unbuffered_publish, unbuffered)
