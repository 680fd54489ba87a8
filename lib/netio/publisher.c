/* SPDX-License-Identifier: BSD-3-Clause */
/* The subscribers of a publish socket: their connections, and their pages. */
#include "publisher.h"

#include <stdlib.h>

/* Pages --------------------------------------------------------------------------------------- */

struct subscriber_pages {
	struct pages pages; /* first */
	struct subscriber *subscriber;
};

static struct subscriber *subscriber_of(struct pages *pages)
{
	return ((struct subscriber_pages *)pages)->subscriber;
}

static void on_room(struct pages *pages)
{
	publish_tell_room(subscriber_core(subscriber_of(pages)));
}

/* Messages of which only the latest waits go where there is room now, and answers behind them. */
static void go_on(struct subscriber *subscriber)
{
	struct pages *pages = subscriber->pages;

	if (plx_likely(subscriber->latest.count == 0) || !subscriber->accepted.link)
		return;
	slow_go_on(subscriber);
	if (subscriber->latest.count == 0 && subscriber->accepted.settling)
		pages_close(pages);
	requests_go_on(subscriber);
}

static void on_sent(struct pages *pages)
{
	struct subscriber *subscriber = subscriber_of(pages);
	struct accepted *accepted = &subscriber->accepted;

	accepted_settles(accepted);
	go_on(subscriber);
	if (plx_unlikely(pages_are_back(pages)) && subscriber->latest.count == 0)
		accepted_settled(accepted);
}

static const struct pages_owner pages_owner = {.room = on_room, .sent = on_sent};

int subscriber_make_pages(struct subscriber *subscriber)
{
	const struct netio_publish_core *core = subscriber_core(subscriber);
	struct subscriber_pages *made;
	int rc;

	if (subscriber->pages)
		return 0;
	made = aligned_alloc(PLX_CACHE_LINE, sizeof(*made));
	if (!made)
		return -ENOMEM;
	rc = pages_init(&made->pages, &core->pages_attr, &pages_owner);
	if (rc) {
		free(made);
		return rc;
	}
	made->subscriber = subscriber;
	pages_open(&made->pages, subscriber->accepted.link, subscriber->accepted.message_max);
	subscriber->pages = &made->pages;
	subscriber->pages->all_droppable = subscriber->may_miss;
	if (subscriber->gap.count) /* which pages tell from now on */
		pages_add_gap(subscriber->pages, subscriber->gap.count, subscriber->gap.reasons,
			      true);
	subscriber->gap = (struct wire_gap){0};
	return 0;
}

/* What its pages counted goes into what the socket has counted. */
static void free_pages(struct subscriber *subscriber)
{
	struct netio_publish_stats *stats = &subscriber_core(subscriber)->stats;

	if (!subscriber->pages)
		return;
	stats->pages += subscriber->pages->stats.pages;
	stats->lost += subscriber->pages->stats.messages_lost;
	pages_fini(subscriber->pages);
	free(subscriber->pages);
	subscriber->pages = NULL;
}

/* Connections --------------------------------------------------------------------------------- */

/* A lookup must find room for all. */
static bool has_room(struct acceptor *acceptor)
{
	struct netio_publish_core *core = (struct netio_publish_core *)acceptor;
	uint32_t room = core->match_room ? 2 * core->match_room : 16;
	struct match *matches;

	if (core->connections >= core->subscribers_max) {
		if (plx_log_allowed(&acceptor->log_limit, plx_loop_now_ns()))
			plx_log(&netio_log, PLX_LOG_WARNING,
				"a subscriber is refused: there are %u; subscribers_max",
				core->connections);
		return false;
	}
	if (core->connections < core->match_room)
		return true;
	matches = realloc(core->matches, room * sizeof(*matches));
	if (!matches)
		return false;
	core->matches = matches;
	core->match_room = room;
	return true;
}

static struct accepted *on_create(struct acceptor *acceptor)
{
	struct subscriber *subscriber = calloc(1, sizeof(*subscriber));

	if (!subscriber)
		return NULL;
	subscriber->accepted.one = &subscriber->pub;
	conflation_init(&subscriber->latest);
	subscriber->may_miss = true;
	((struct netio_publish_core *)acceptor)->connections++;
	return &subscriber->accepted;
}

DEFINE_NOTIFY_LISTENING(notify_buffered, netio_publish_socket)
DEFINE_NOTIFY_LISTENING(notify_unbuffered, netio_unbuffered_publish_socket)

static bool notify(const void *socket, void *one, const struct notice *notice)
{
	const struct subscriber *subscriber = plx_container_of(one, struct subscriber, pub);

	return (subscriber_core(subscriber)->buffered ? notify_buffered
						      : notify_unbuffered)(socket, one, notice);
}

static void on_established(struct accepted *accepted, const struct notice *notice)
{
	struct subscriber *subscriber = (struct subscriber *)accepted;
	struct netio_publish_core *core = subscriber_core(subscriber);

	core->stats.subscribers++;
	subscriber->pub = (struct netio_subscriber){
		.socket = core->acceptor.socket,
		.id = accepted->id,
		.peer = accepted->peer,
		.provider = accepted->provider,
	};
	accepted_notify(accepted, notice);
}

static const char *on_received(struct accepted *accepted, struct plx_buf *message)
{
	return requests_received((struct subscriber *)accepted, message);
}

static void on_writable(struct accepted *accepted)
{
	struct subscriber *subscriber = (struct subscriber *)accepted;
	struct netio_publish_core *core = subscriber_core(subscriber);

	if (!accepted->link)
		return;
	requests_go_on(subscriber);
	if (!subscriber->pages && accepted->link)
		subscriber_tell_gap(subscriber);
	if (subscriber->pages && accepted->link) {
		pages_send_waiting(subscriber->pages);
		go_on(subscriber);
	}
	if (core->unbuffered)
		publish_tell_room(core);
	else if (subscriber->pages && accepted->link)
		pages_tell_room(subscriber->pages);
}

static void on_failed(struct accepted *accepted)
{
	struct subscriber *subscriber = (struct subscriber *)accepted;

	requests_drop(subscriber);
	pending_forget(subscriber_core(subscriber), subscriber);
}

static bool on_settle(struct accepted *accepted)
{
	struct subscriber *subscriber = (struct subscriber *)accepted;
	struct pages *pages = subscriber->pages;

	if (!pages)
		return true;
	slow_go_on(subscriber);
	return subscriber->latest.count == 0 && pages_close(pages);
}

static bool on_ended(struct accepted *accepted)
{
	struct subscriber *subscriber = (struct subscriber *)accepted;

	if (subscriber->pages)
		pages_lose(subscriber->pages);
	subscriber_core(subscriber)->stats.lost += slow_clear(subscriber);
	on_failed(accepted);
	return true;
}

static void on_closed(struct accepted *accepted, const struct notice *notice)
{
	accepted_notify(accepted, notice);
	publish_tell_room((struct netio_publish_core *)accepted->acceptor);
}

static void on_free(struct accepted *accepted)
{
	struct subscriber *subscriber = (struct subscriber *)accepted;
	struct netio_publish_core *core = subscriber_core(subscriber);

	free_pages(subscriber);
	core->stats.subscribers -= accepted->established;
	core->connections--;
	free(subscriber);
}

static void on_free_core(struct acceptor *acceptor)
{
	publish_core_destroy((struct netio_publish_core *)acceptor);
}

static void on_fini(struct acceptor *acceptor)
{
	publish_socket_fini((struct netio_publish_core *)acceptor);
}

const struct acceptor_owner publisher_owner = {
	.role = WIRE_SUBSCRIBER,
	.has_room = has_room,
	.create = on_create,
	.notify = notify,
	.on[NOTICE_ESTABLISHED] = on_established,
	.on[NOTICE_CLOSED] = on_closed,
	.received = on_received,
	.writable = on_writable,
	.failed = on_failed,
	.settle = on_settle,
	.ended = on_ended,
	.free = on_free,
	.free_acceptor = on_free_core,
	.fini = on_fini,
};

void netio_subscriber_close(struct netio_subscriber *subscriber)
{
	accepted_close(&plx_container_of(subscriber, struct subscriber, pub)->accepted);
}
