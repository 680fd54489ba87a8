/* SPDX-License-Identifier: BSD-3-Clause */
/* The two publish sockets, which differ only in how they publish. */
#include "pubsub_priv.h"

#include <assert.h>
#include <stdlib.h>

#define MESSAGE_MAX 4000 /* of requests: a full list fits */

static_assert(WIRE_LIST_BYTES + WIRE_LIST_MAX * WIRE_REQUEST_BYTES <= MESSAGE_MAX, "requests fit");

static int check_attr(struct netio_publish_core *core)
{
	struct netio_publish_attr *attr = &core->attr;

	core->outbox_attr = (struct outbox_attr){
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
	if ((unsigned)attr->policy >= NETIO_POLICY_COUNT)
		return plx_fail(EINVAL, "policy %d: give one of enum netio_policy",
				(int)attr->policy);
	if (attr->refuse_block && attr->policy == NETIO_POLICY_BLOCK)
		return plx_fail(EINVAL, "refuse_block: give a policy, other than to block, for "
					"subscriptions that name none");
	return outbox_check_attr(&core->outbox_attr);
}

/* Return: 0; an error, which is logged. */
static int core_create(struct netio_eventloop *evloop, const char *what,
		       const struct netio_publish_attr *attr, void *socket,
		       struct netio_publish_core **core_out)
{
	struct netio_publish_core *core;
	int rc = netio_check(evloop, what);

	if (rc)
		return rc;
	core = calloc(1, sizeof(*core));
	if (!core)
		return netio_fail(ENOMEM, "%s: out of memory", what);
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
	publications_init(core);
	acceptor_init(&core->acceptor, evloop, socket, &subscriber_owner, core->attr.provider,
		      MESSAGE_MAX);
	*core_out = core;
	return 0;
}

/* what: the caller, for error texts. */
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

static void core_fini(struct netio_publish_core **core_of_socket)
{
	struct netio_publish_core *core = *core_of_socket;

	*core_of_socket = NULL;
	if (!core)
		return;
	core->buffered = NULL;
	core->unbuffered = NULL;
	while (core->pending_count)
		pending_give_up(core, TAILQ_FIRST(&core->pendings));
	acceptor_release(&core->acceptor);
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

void publish_socket_fini(struct acceptor *acceptor)
{
	const struct netio_publish_core *core = (struct netio_publish_core *)acceptor;

	if (core->buffered)
		netio_publish_socket_fini(core->buffered);
	else
		netio_unbuffered_publish_socket_fini(core->unbuffered);
}

static void core_stats(const struct netio_publish_core *core, struct netio_publish_stats *stats_out)
{
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
	for (const struct accepted *accepted = accepted_first(&core->acceptor); accepted;
	     accepted = accepted_next(accepted)) {
		const struct outbox *outbox = &((const struct subscriber *)accepted)->outbox;

		stats_out->pages += outbox->stats.pages;
		stats_out->lost += outbox->stats.messages_lost;
		stats_out->pages_under_way += outbox->count - outbox->free_count;
	}
}

/* The two socket types ------------------------------------------------------------------------ */

#define DEFINE_PUBLISH_SOCKET(kind, prefix, member)                                           \
	int kind##_init(struct netio_eventloop *evloop, struct kind *socket,                  \
			const struct netio_publish_attr *attr)                                \
	{                                                                                     \
		int rc;                                                                       \
                                                                                              \
		*socket = (struct kind){0};                                                   \
		rc = core_create(evloop, __func__, attr, socket, &socket->core);              \
		if (socket->core)                                                             \
			socket->core->member = socket;                                        \
		return rc;                                                                    \
	}                                                                                     \
                                                                                              \
	int prefix##_listen(struct kind *socket, const char *host, unsigned port)             \
	{                                                                                     \
		ASSERT_LOOP(socket->core, socket->core->acceptor.evloop);                     \
		return core_listen(socket->core, __func__, host, port);                       \
	}                                                                                     \
                                                                                              \
	unsigned kind##_port(const struct kind *socket)                                       \
	{                                                                                     \
		ASSERT_LOOP(socket->core, socket->core->acceptor.evloop);                     \
		return acceptor_port((const struct acceptor *)socket->core);                  \
	}                                                                                     \
                                                                                              \
	void kind##_fini(struct kind *socket)                                                 \
	{                                                                                     \
		ASSERT_LOOP(socket->core, socket->core->acceptor.evloop);                     \
		core_fini(&socket->core);                                                     \
	}                                                                                     \
                                                                                              \
	void prefix##_stats(const struct kind *socket, struct netio_publish_stats *stats_out) \
	{                                                                                     \
		ASSERT_LOOP(socket->core, socket->core->acceptor.evloop);                     \
		core_stats(socket->core, stats_out);                                          \
	}

DEFINE_PUBLISH_SOCKET(netio_publish_socket, netio_publish, buffered)
DEFINE_PUBLISH_SOCKET(netio_unbuffered_publish_socket, netio_unbuffered_publish, unbuffered)
