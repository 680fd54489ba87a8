/* SPDX-License-Identifier: BSD-3-Clause */
/* A link's memory, its place in its lcore's lists, and how it is created. */
#include "fabric_internal.h"
#include "fabric_listen.h"
#include "tx.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

int link_check_window(uint32_t buf_bytes, uint32_t buf_count)
{
	if ((uint64_t)buf_bytes * buf_count <= LINK_WINDOW_BYTES_MAX)
		return 0;
	return plx_fail(EINVAL,
			"%u receive buffers of %u bytes are more than %u bytes in all; give fewer "
			"or smaller ones",
			buf_count, buf_bytes, LINK_WINDOW_BYTES_MAX);
}

int link_check_attr(const struct plx_link_attr *attr, struct plx_link_attr *out)
{
	if (!attr || !attr->events)
		return plx_fail(EINVAL, "a link needs events to tell its owner");
	*out = *attr;
	out->rx_buf_bytes = attr->rx_buf_bytes ?: LINK_RX_BUF_BYTES_DEFAULT;
	out->rx_buf_count = attr->rx_buf_count ?: LINK_RX_BUF_COUNT_DEFAULT;
	out->message_max_bytes = attr->message_max_bytes ?: LINK_MESSAGE_MAX_DEFAULT;
	out->connect_timeout_ns = attr->connect_timeout_ns ?: 5 * PLX_NS_PER_S;
	out->hello_timeout_ns = attr->hello_timeout_ns ?: 2 * PLX_NS_PER_S;
	out->close_timeout_ns = attr->close_timeout_ns ?: PLX_CLOSE_NS;

	const struct {
		const char *name;
		uint64_t value, min, max;
	} ranges[] = {
		{"rx_buf_bytes", out->rx_buf_bytes, LINK_RX_BUF_BYTES_MIN, LINK_RX_BUF_BYTES_MAX},
		{"rx_buf_count", out->rx_buf_count, LINK_RX_BUF_COUNT_MIN, LINK_RX_BUF_COUNT_MAX},
		{"hello_length", out->hello_length, 0, PLX_LINK_HELLO_MAX},
		{"message_max_bytes", out->message_max_bytes, 1, LINK_MESSAGE_MAX_LIMIT},
	};
	int rc = 0;

	for (size_t i = 0; i < PLX_ARRAY_LEN(ranges) && rc == 0; i++)
		rc = check_range(ranges[i].name, ranges[i].value, ranges[i].min, ranges[i].max);
	return rc ?: link_check_window(out->rx_buf_bytes, out->rx_buf_count);
}

static bool is_iwarp(const struct plx_fabric_driver *driver, const struct fi_info *info)
{
	return driver->is_iwarp && driver->is_iwarp(info);
}

uint32_t link_control_receives(const struct plx_fabric_driver *driver, const struct fi_info *info,
			       const struct plx_link_attr *attr)
{
	if (!is_iwarp(driver, info))
		return LINK_RX_CONTROL;
	return LINK_RX_CONTROL_ALL + (attr->direct ? LINK_RX_CONTROL_DIRECT : 0);
}

static int make_ops(struct plx_link *link)
{
	uint32_t receives = link_receives(link), tx_count = LINK_TX_OPS + LINK_TX_CONTROL;
	int node = plx_lcore_node(link->home->id);
	struct plx_pool_attr pool = {
		.name = "link rx",
		.object_count = receives,
		.node = node,
		.owner = link->home->id,
	};
	const struct plx_zone *zone;
	struct plx_op *ops = plx_mem_alloc((receives + tx_count) * sizeof(*ops), 0, node, &zone);

	if (!ops)
		return -ENOMEM;
	link->ops = ops;
	link->ops_zone = zone->index;
	for (uint32_t i = 0; i < receives + tx_count; i++) {
		struct plx_op **list = i < receives ? &link->rx_idle : &link->tx_free;

		ops[i].link = link;
		ops[i].kind = i < receives ? OP_RECV : OP_SEND;
		ops[i].next = *list;
		*list = &ops[i];
	}
	link->tx_free_count = tx_count;
	return plx_buf_pool_create(&pool, link->rx_buf_bytes, &link->rx_pool);
}

/* Allocate what the link needs on its provider, after set_home. give_memory follows in any
 * case. Return: 0; -ENOMEM. */
static int take_memory(struct plx_link *link, const struct fi_info *info)
{
	link->rx_buf_bytes = link->attr.rx_buf_bytes;
	link->rx_buf_count = link->attr.rx_buf_count;
	link->rx_control = link_control_receives(link->driver, info, &link->attr);
	window_take(link);
	link->rx_frames_granted = link->rx_buf_count;
	link->rx_long = calloc(link->rx_buf_count, sizeof(*link->rx_long));
	return link->rx_long ? make_ops(link) : plx_fail(ENOMEM, "out of memory");
}

/* All operations are back. */
static void give_memory(struct plx_link *link)
{
	window_give(link);
	free(link->rx_long);
	plx_pool_destroy(link->rx_pool);
	plx_mem_free(link->ops);
	link->rx_long = NULL;
	link->rx_pool = NULL;
	link->ops = link->rx_idle = link->tx_free = NULL;
	link->tx_free_count = 0;
}

static uint32_t op_count(const struct plx_link *link)
{
	return link_receives(link) + LINK_TX_OPS + LINK_TX_CONTROL +
	       (link->attr.direct ? DIRECT_GETS : 0);
}

static void enlist(struct plx_link *link)
{
	LIST_INSERT_HEAD(&link->home->links, link, of_home);
	link->home->link_count++;
	if (!link->set->links++) /* nothing can have arrived before */
		link->set->emptied_ns = plx_loop_now_ns();
	link->set->op_count += op_count(link);
	link->set->rx_count += link_receives(link);
	link->set->connecting++;
	link->home->look_in = (uint32_t)lesser(link->home->look_in, LOOK_PENDING_TURNS);
}

static void delist(struct plx_link *link)
{
	if (!link->of_home.le_prev)
		return;
	arrival_end(link);
	LIST_REMOVE(link, of_home);
	link->of_home.le_prev = NULL;
	link->home->link_count--;
	link->set->links--;
	link->set->op_count -= op_count(link);
	link->set->rx_count -= link_receives(link);
}

/* A provider may hold the receives of a link that fails: they complete later. */
int link_start(struct plx_link *link, struct fi_info *info)
{
	int rc;

	enlist(link);
	rc = set_need_zone(link->set, link->ops_zone);
	rc = rc ? rc : set_need_zone(link->set, plx_pool_zone(link->rx_pool)->index);
	if (rc == 0 && link->attr.direct)
		rc = direct_create(link, info);
	if (rc)
		return rc;
	link->inject_max = (uint32_t)lesser(info->tx_attr->inject_size,
					    FRAME_HEADER_BYTES + INJECT_COPY_MAX);
	link->frame_max = (uint32_t)lesser(info->ep_attr->max_msg_size, LINK_RX_BUF_BYTES_MAX);
	link->iov_max = (uint32_t)lesser(info->tx_attr->iov_limit, LINK_IOV_MAX);
	tx_signalled(link);
	link->is_iwarp = is_iwarp(link->driver, info);
	/* The provider reserves memory and completions for them. */
	if (link->driver->cq_overruns || info->rx_attr->size > link_receives(link))
		info->rx_attr->size = link_receives(link);
	rc = driver_open_endpoint(&link->set->fids, info, link, &link->ep);
	if (rc == -FI_ENODEV || rc == -FI_ETIMEDOUT || rc == -FI_EHOSTUNREACH ||
	    rc == -FI_ENETUNREACH)
		return plx_fail(EHOSTUNREACH, "%s: there is no way to the peer: %s",
				link->set->label, fi_strerror(-rc));
	if (rc)
		return plx_fail(EIO, "%s: opening an endpoint failed: %s", link->set->label,
				fi_strerror(-rc));
	if (link->direct && link->driver->name_writes)
		link->driver->name_writes(link->ep, link->direct->puts);
	if (link->driver->reuse_receives)
		link->driver->reuse_receives(link->ep);
	return receive_post_all(link);
}

static void set_home(struct plx_link *link, struct plx_set *set)
{
	link->set = set;
	link->home = set->home;
	link->driver = set->driver;
}

static void drop(struct plx_link *link, struct plx_buf *message, void *user)
{
}

void link_set_events(struct plx_link *link, const struct plx_link_events *events)
{
	link->events = events;
	link->on_message = events->on_message ? events->on_message : drop;
}

/*           fi_connect or fi_accept
 *                      |
 *               +------------+   connected   +-------+   both HELLOs   +------+
 *       +-----> | CONNECTING | ------------> | HELLO | --------------> | OPEN |
 *       |       +------------+               +-------+                 +------+
 *       |                                        | a bad HELLO             | close, or FIN
 *       | the next candidate                     v                         v
 *       |                                  +----------+  both agree  +---------+
 *       |         +------+                 | REFUSING |     +------- | CLOSING |
 *       +-------- | DEAD | <---+           +----------+     v        +---------+
 *                 +------+     |                |       +--------+
 *                              +----------------+------ | LINGER |
 *                            from any state             +--------+
 */
#define TO(state) (1u << LINK_##state)

PLX_UNUSED static const uint8_t moves[] = {
	[LINK_CONNECTING] = TO(HELLO) | TO(DEAD),
	[LINK_HELLO] = TO(OPEN) | TO(REFUSING) | TO(DEAD),
	[LINK_OPEN] = TO(CLOSING) | TO(DEAD),
	[LINK_CLOSING] = TO(LINGER) | TO(DEAD),
	[LINK_LINGER] = TO(DEAD),
	[LINK_REFUSING] = TO(DEAD),
	[LINK_DEAD] = TO(CONNECTING),
};

void link_go(struct plx_link *link, enum link_state to)
{
	assert(moves[link->state] & 1u << to);
	if (link->state == LINK_CONNECTING)
		link->set->connecting--;
	link->state = (uint8_t)to;
	tx_set_inline_end(link);
	receive_set_whole_end(link);
}

int link_create(struct plx_set *set, const struct plx_link_attr *attr, const struct fi_info *info,
		struct plx_link **link_out)
{
	struct plx_link *link = aligned_alloc(PLX_CACHE_LINE, sizeof(*link));
	int rc;

	if (!link) {
		set_leave(set);
		return plx_fail(ENOMEM, "out of memory");
	}
	*link = (struct plx_link){
		.kind = FID_LINK,
		.attr = *attr,
		.presence = &set->home->watch.no_peer,
		.user = attr->user,
		.message_max = attr->message_max_bytes,
	};
	set_home(link, set);
	link_set_events(link, attr->events);
	plx_timer_init(&link->timer, close_on_timer, link);
	plx_timer_set_lax(&link->timer, true);
	rc = take_memory(link, info);
	if (rc)
		link_destroy(link);
	else
		*link_out = link;
	return rc;
}

/* Move a link that was never connected to another set. Its endpoint is closed, and all its
 * operations are back. Return: 0; -errno with a text. */
int link_move(struct plx_link *link, struct plx_set *set, struct fi_info *info)
{
	int rc;

	delist(link);
	direct_destroy(link);
	give_memory(link);
	set_leave(link->set);
	set_home(link, set);
	link->ep = NULL;
	link_go(link, LINK_CONNECTING);
	link->shut_down = link->ep_closed = link->disconnected = false;
	link->hello = (struct frame_hello){0};
	link->want = 0;
	rc = take_memory(link, info);
	if (rc == 0)
		return link_start(link, info);
	enlist(link); /* it ends like others */
	return rc;
}

/* Free a link. Its endpoint is closed, and all its operations are back. */
void link_destroy(struct plx_link *link)
{
	struct plx_fabric_lcore *home = link->home;

	assert(!link->scheduled);
	delist(link);
	plx_timer_stop(&link->timer);
	assembly_drop(&link->partial);
	while (link->rx_long_kept)
		plx_buf_unref(link->rx_long[--link->rx_long_kept]);
	if (link->rx_kept) {
		kept_pool_add(home, link->rx_pool); /* leaks it if that fails */
		link->rx_pool = NULL;
	}
	give_memory(link);
	direct_destroy(link);
	admission_leave(link->ticket);
	listener_unref(link->from);
	free(link->plan);
	set_leave(link->set);
	free(link);
}

/* A provider defect: it keeps operations of a closed endpoint. Only leaking their memory is safe.
 * on_close runs all the same. */
void link_abandon(struct plx_link *link)
{
	plx_log(&fabric_log, PLX_LOG_ERROR,
		"link to %s: %s keeps %u receives and %u sends of a closed endpoint; their memory "
		"is given up",
		link->peer, link->set->label, link->rx_posted, link->tx_inflight);
	for (uint32_t i = 0; i < LINK_TX_OPS + LINK_TX_CONTROL; i++)
		tx_fail_op(&link->ops[link_receives(link) + i]);
	send_buf_fail(link, true);
	if (link->direct)
		direct_abandon(link);
	close_notify(link);
	assembly_drop(&link->partial);
	admission_leave(link->ticket);
	link->ticket = NULL;
	delist(link);
	link->want = 0;
}

int link_fail_closed(const struct plx_link *link)
{
	if (plx_is_forked())
		return plx_fail_forked(link->peer);
	return plx_fail(ENOTCONN, "link to %s is not open", link->peer);
}
