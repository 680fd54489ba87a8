/* SPDX-License-Identifier: BSD-3-Clause */
/* A link's memory, its place in its lcore's lists, and what can be asked of it. */
#include "fabric_priv.h"

#include <stdio.h>
#include <stdlib.h>

const char *plx_link_reason_name(enum plx_link_reason reason)
{
	static const char *const names[PLX_LINK_REASON_COUNT] = {
		[PLX_LINK_CLOSED] = "closed",           [PLX_LINK_REFUSED] = "refused",
		[PLX_LINK_UNREACHABLE] = "unreachable", [PLX_LINK_HELLO] = "bad hello",
		[PLX_LINK_PROTOCOL] = "protocol error", [PLX_LINK_PEER_DOWN] = "peer down",
		[PLX_LINK_ABORTED] = "aborted",         [PLX_LINK_TIMEOUT] = "timed out",
		[PLX_LINK_SILENT] = "silent",           [PLX_LINK_LOCAL] = "local failure",
	};

	return (unsigned)reason < PLX_LINK_REASON_COUNT ? names[reason] : "unknown";
}

/* Attributes ------------------------------------------------------------------------------------
 */

static uint64_t or_default(uint64_t value, uint64_t by_default)
{
	return value ? value : by_default;
}

static int out_of_range(const char *name, uint64_t value, uint64_t min, uint64_t max)
{
	return plx_fail(EINVAL, "%s %llu is out of range; give %llu to %llu", name,
			(unsigned long long)value, (unsigned long long)min,
			(unsigned long long)max);
}

/* Check a user's attributes and fill in the defaults. Return: 0; -EINVAL. */
int link_check_attr(const struct plx_link_attr *attr, struct plx_link_attr *out)
{
	if (!attr || !attr->events)
		return plx_fail(EINVAL, "a link needs events to tell its owner");
	*out = *attr;
	out->rx_buf_bytes = (uint32_t)or_default(attr->rx_buf_bytes, LINK_RX_BUF_BYTES_DEFAULT);
	out->rx_buf_count = (uint32_t)or_default(attr->rx_buf_count, LINK_RX_BUF_COUNT_DEFAULT);
	out->message_max_bytes = or_default(attr->message_max_bytes, LINK_MESSAGE_MAX_DEFAULT);
	out->connect_timeout_ns = or_default(attr->connect_timeout_ns, 5 * PLX_NS_PER_S);
	out->hello_timeout_ns = or_default(attr->hello_timeout_ns, 2 * PLX_NS_PER_S);
	out->close_timeout_ns = or_default(attr->close_timeout_ns, 2 * PLX_NS_PER_S);
	if (out->rx_buf_bytes < LINK_RX_BUF_BYTES_MIN || out->rx_buf_bytes > LINK_RX_BUF_BYTES_MAX)
		return out_of_range("rx_buf_bytes", out->rx_buf_bytes, LINK_RX_BUF_BYTES_MIN,
				    LINK_RX_BUF_BYTES_MAX);
	if (out->rx_buf_count < LINK_RX_BUF_COUNT_MIN || out->rx_buf_count > LINK_RX_BUF_COUNT_MAX)
		return out_of_range("rx_buf_count", out->rx_buf_count, LINK_RX_BUF_COUNT_MIN,
				    LINK_RX_BUF_COUNT_MAX);
	if ((uint64_t)out->rx_buf_bytes * out->rx_buf_count > LINK_WINDOW_BYTES_MAX)
		return plx_fail(
			EINVAL,
			"%u receive buffers of %u bytes are more than %u bytes in all; give "
			"fewer or smaller ones",
			out->rx_buf_count, out->rx_buf_bytes, LINK_WINDOW_BYTES_MAX);
	if (out->message_max_bytes > LINK_MESSAGE_MAX_LIMIT)
		return out_of_range("message_max_bytes", out->message_max_bytes, 1,
				    LINK_MESSAGE_MAX_LIMIT);
	return 0;
}

/* Life ------------------------------------------------------------------------------------------
 */

static int make_ops(struct plx_link *link)
{
	uint32_t rx_count = link->rx_buf_count + LINK_RX_CONTROL;
	uint32_t tx_count = LINK_TX_OPS + LINK_TX_CONTROL;
	const struct plx_zone *zone;
	struct plx_op *ops = plx_mem_alloc((rx_count + tx_count) * sizeof(*ops), 0,
					   plx_lcore_node(link->set->home->id), &zone);

	if (!ops)
		return -ENOMEM;
	link->ops = ops;
	link->ops_zone = zone->index;
	for (uint32_t i = 0; i < rx_count + tx_count; i++) {
		struct plx_op **list = i < rx_count ? &link->rx_idle : &link->tx_free;

		ops[i].link = link;
		ops[i].kind = i < rx_count ? OP_RECV : OP_SEND;
		ops[i].next = *list;
		*list = &ops[i];
	}
	link->tx_free_count = tx_count;
	return 0;
}

static int make_rx_pool(struct plx_link *link)
{
	struct plx_pool_attr attr = {
		.name = "link rx",
		.object_count = link->rx_buf_count + LINK_RX_CONTROL,
		.node = plx_lcore_node(link->set->home->id),
		.owner = link->set->home->id,
	};

	return plx_buf_pool_create(&attr, link->rx_buf_bytes - FRAME_HEADER_BYTES, &link->rx_pool);
}

static int open_endpoint(struct plx_link *link, struct fi_info *info)
{
	struct plx_fabric_fids *fids = &link->set->fids;
	int rc = fi_endpoint(fids->domain, info, &link->ep, link);

	if (rc) {
		link->ep = NULL;
		return rc;
	}
	info->handle = NULL; /* a request that was taken must not be refused any more */
	/* Transmit and receive bound apart: selective completion on both would hide receives. Every
	 * operation by reference asks for its completion; injected ones have none. */
	rc = fi_ep_bind(link->ep, &fids->eq->fid, 0);
	rc = rc ? rc : fi_ep_bind(link->ep, &fids->cq->fid, FI_TRANSMIT);
	rc = rc ? rc : fi_ep_bind(link->ep, &fids->cq->fid, FI_RECV);
	return rc ? rc : fi_enable(link->ep);
}

static uint32_t op_count(const struct plx_link *link)
{
	return link->rx_buf_count + LINK_RX_CONTROL + LINK_TX_OPS + LINK_TX_CONTROL;
}

static void enlist(struct plx_link *link)
{
	struct plx_fabric_lcore *home = link->set->home;

	link->next = home->links;
	link->prev_next = &home->links;
	if (link->next)
		link->next->prev_next = &link->next;
	home->links = link;
	if (!link->set->links++) /* nothing can have come before */
		link->set->emptied_ns = plx_loop_now_ns();
	link->set->op_count += op_count(link);
	link->set->connecting++;
}

/* Make a link with an endpoint for info, receives posted, nothing connected yet. attr was checked.
 * Return: 0; -errno with a text. */
int link_create(struct plx_set *set, const struct plx_link_attr *attr, struct fi_info *info,
		struct plx_link **link_out)
{
	struct plx_link *link = calloc(1, sizeof(*link));

	if (!link)
		return plx_fail(ENOMEM, "out of memory");
	link->kind = FID_LINK;
	link->fd = -1;
	link->set = set;
	link->attr = *attr;
	link->presence = &set->home->pulse.nobody;
	link->events = attr->events;
	link->user = attr->user;
	link->rx_buf_bytes = attr->rx_buf_bytes;
	link->rx_buf_count = attr->rx_buf_count;
	link->message_max = attr->message_max_bytes;
	link->inject_max = (uint32_t)info->tx_attr->inject_size;
	link->iov_max = info->tx_attr->iov_limit < LINK_IOV_MAX ? (uint32_t)info->tx_attr->iov_limit
								: LINK_IOV_MAX;
	link->rx_frames_granted = link->rx_buf_count;
	link->rx_bytes_granted = link->rx_buf_count * (link->rx_buf_bytes - FRAME_HEADER_BYTES);
	close_timer_init(link);

	link->rx_long = calloc(link->rx_buf_count, sizeof(*link->rx_long));

	int rc = link->rx_long ? make_ops(link) : plx_fail(ENOMEM, "out of memory");
	if (rc)
		goto destroy;
	rc = make_rx_pool(link);
	if (rc)
		goto destroy;
	rc = open_endpoint(link, info);
	if (rc) {
		rc = plx_fail(EIO, "%s: opening an endpoint failed: %s", set->label,
			      fi_strerror(-rc));
		goto destroy;
	}
	rc = receive_post_all(link);
	if (rc)
		goto destroy;
	enlist(link);
	*link_out = link;
	return 0;

destroy:
	if (!link->ep) {
		link_destroy(link);
		return rc;
	}
	/* The provider may have receives of it, which come back with others' completions: the loop
	 * buries it, as callbacks must not run inside this call. */
	enlist(link);
	link_end(link, PLX_LINK_LOCAL, "%s", plx_error());
	return rc;
}

static void delist(struct plx_link *link)
{
	if (!link->prev_next)
		return;
	*link->prev_next = link->next;
	if (link->next)
		link->next->prev_next = link->prev_next;
	link->set->links--;
	link->set->op_count -= op_count(link);
}

/* Free a link whose endpoint is closed and whose operations have all come back. */
void link_destroy(struct plx_link *link)
{
	struct plx_fabric_lcore *home = link->set->home;

	delist(link);
	plx_timer_stop(&link->timer);
	plx_buf_unref(link->rx_partial);
	while (link->rx_long_kept)
		plx_buf_unref(link->rx_long[--link->rx_long_kept]);
	free(link->rx_long);
	if (link->rx_kept && orphan_adopt(home, link->rx_pool) == 0)
		link->rx_pool = NULL;
	if (!link->rx_kept)
		plx_pool_destroy(link->rx_pool);
	plx_mem_free(link->ops);
	listener_unref(link->from);
	free(link);
}

/* The provider keeps operations of a closed endpoint: a defect, from which only leaking their
 * memory is safe. The user hears of the end all the same. */
void link_abandon(struct plx_link *link)
{
	plx_log(&fabric_log, PLX_LOG_ERROR,
		"link to %s: %s keeps %u receives and %u sends of a closed endpoint; their memory "
		"is "
		"given up",
		link->peer, link->set->label, link->rx_posted, link->tx_inflight);
	for (uint32_t i = 0; i < LINK_TX_OPS + LINK_TX_CONTROL; i++)
		send_fail_op(&link->ops[link->rx_buf_count + LINK_RX_CONTROL + i]);
	send_abandon_current(link);
	close_tell(link);
	delist(link);
	link->prev_next = NULL;
	link->want = 0;
}

/* The loop looks at it ------------------------------------------------------------------------- */

/* Let the lcore look at the link in this turn or the next, for the reasons in want. */
void link_attend(struct plx_link *link, uint16_t want)
{
	struct plx_fabric_lcore *home = link->set->home;

	link->want |= want;
	if (link->attended)
		return;
	link->attended = true;
	link->next_attended = home->attended;
	home->attended = link;
}

/* It may have changed back by now. */
static void tell_suspect(struct plx_link *link)
{
	bool suspect = link->presence->suspect;

	link->want &= (uint16_t)~WANT_SUSPECT;
	if (link->state != LINK_OPEN || link->told_suspect == suspect)
		return;
	link->told_suspect = suspect;
	if (link->events->on_suspect)
		link->events->on_suspect(link, suspect, link->user);
}

static void tell_granted(struct plx_link *link)
{
	link->want &= (uint16_t)~WANT_GRANTED;
	if (link->state == LINK_OPEN)
		link->events->on_credit(link, link->user);
}

/* Return: whether the link is still there. */
static bool look_after(struct plx_link *link)
{
	if (link->want & WANT_BURIAL)
		return !close_bury(link, plx_loop_now_ns());
	if (link->want & WANT_REFILL)
		receive_refill(link);
	if (link->want & WANT_CONTROL) {
		send_control(link);
		link_try_open(link);
		close_step(link);
	}
	if (link->want & WANT_TX)
		send_continue(link);
	if (link->want & WANT_GRANTED)
		tell_granted(link);
	if ((link->want & WANT_WRITABLE) && link->state == LINK_OPEN && send_has_room(link)) {
		link->want &= (uint16_t)~WANT_WRITABLE;
		if (link->events->on_writable)
			link->events->on_writable(link, link->user);
	}
	if (plx_unlikely(link->want & WANT_SUSPECT))
		tell_suspect(link);
	if (link->want & WANT_AGREED) {
		link->want &= (uint16_t)~WANT_AGREED;
		close_agreed(link);
	}
	return true;
}

/* What a look at a link may change. */
struct look {
	uint16_t want;
	uint32_t rx_posted;
	uint64_t frames_sent;
};

static struct look look_of(const struct plx_link *link)
{
	return (struct look){link->want, link->rx_posted, link->stats.frames_sent};
}

static bool has_changed(const struct plx_link *link, const struct look *before)
{
	return link->want != before->want || link->rx_posted != before->rx_posted ||
	       link->stats.frames_sent != before->frames_sent;
}

/* Look at every link that asked for it. Return: for how many that changed something. */
int link_look_after(struct plx_fabric_lcore *home)
{
	struct plx_link *list = home->attended;
	int count = 0;

	home->attended = NULL;
	while (list) {
		struct plx_link *link = list;

		struct look before = look_of(link);

		list = link->next_attended;
		link->attended = false;
		if (!look_after(link)) {
			count++;
			continue;
		}
		if (link->want & WANT_EVERY_TURN)
			link_attend(link, 0);
		count += !link->attended || has_changed(link, &before);
	}
	if (home->orphan_count)
		orphan_reap(home);
	return count;
}

/* Opening ---------------------------------------------------------------------------------------
 */

/* FI_CONNECTED: each side says HELLO first of all. */
void link_connected(struct plx_link *link)
{
	if (link->state != LINK_CONNECTING)
		return;
	link->connected = true;
	link->set->connecting--;
	link->state = LINK_HELLO;
	plx_timer_start(&link->timer, link->attr.hello_timeout_ns);
	link->want |= WANT_HELLO;
	if (send_control(link) != 0)
		link_attend(link, WANT_HELLO);
	link_try_open(link);
}

/* Once the peer's HELLO is here and ours has left: nothing may overtake it. */
void link_try_open(struct plx_link *link)
{
	if (link->connected && link->hello_received && !(link->want & WANT_HELLO))
		link_opened(link);
}

/* Both have said HELLO. */
void link_opened(struct plx_link *link)
{
	if (link->state != LINK_HELLO)
		return;
	plx_timer_stop(&link->timer);
	link->state = LINK_OPEN;
	link->told = true;
	if (link->events->on_credit)
		link->want |= WANT_GRANTS;
	liveness_join(link);
	if (link->from)
		listener_opened(link->from);
	plx_log(&fabric_log, PLX_LOG_INFO, "lcore %u: link with %s over %s is open",
		link->set->home->id, link->peer, link->set->label);
	if (link->events->on_open)
		link->events->on_open(link, link->user);
}

/* Asked of it -----------------------------------------------------------------------------------
 */

uint64_t plx_link_message_max(const struct plx_link *link)
{
	return link->peer_message_max;
}

void plx_link_set_user(struct plx_link *link, void *user)
{
	link->user = user;
}

void *plx_link_user(const struct plx_link *link)
{
	return link->user;
}

bool plx_link_is_open(const struct plx_link *link)
{
	return link->state == LINK_OPEN;
}

uint32_t plx_link_credit(const struct plx_link *link)
{
	return link->state == LINK_OPEN ? tx_frames_left(link) : 0;
}

/* Each message that is not finished has at least one frame that is not granted again, but for one
 * whose last frames have not left yet. */
uint32_t plx_link_unfinished(const struct plx_link *link)
{
	uint32_t granted = link->peer_fin ? link->tx_fin_frames : link->tx_frames_granted;
	uint32_t out = link->tx_window - (granted - link->tx_frames);

	if (link->peer_fin_carried_ack)
		return 0;
	if ((int32_t)out < 0) /* it grants more than it had at first, which is its affair */
		out = 0;
	return out + (link->tx_current.head || link->tx_cut);
}

const char *plx_link_peer(const struct plx_link *link)
{
	return link->peer;
}

const char *plx_link_provider(const struct plx_link *link)
{
	return link->set->label;
}

const char *plx_link_choice(const struct plx_link *link)
{
	return link->choice;
}

const char *plx_link_fi_provider(const struct plx_link *link)
{
	return link->set->provider;
}

void plx_link_stats(const struct plx_link *link, struct plx_link_stats *stats_out)
{
	*stats_out = link->stats;
	stats_out->tx_queued = link->tx_current.head != NULL;
	stats_out->tx_inflight = link->tx_inflight;
	stats_out->rx_posted = link->rx_posted;
	stats_out->rx_kept = link->rx_kept + link->rx_long_kept;
}
