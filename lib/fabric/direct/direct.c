/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct data placement of a link: whether both sides have it, its completions (hot path), and how
 * it ends. */
#include "tx.h"

#include <stdlib.h>

/* Call before the link's endpoint is opened with info. Return: 0; -ENOMEM. */
int direct_create(struct plx_link *link, const struct fi_info *info)
{
	const struct plx_fabric_driver *driver = link->driver;
	struct direct *direct = calloc(1,
				       sizeof(*direct) + (DIRECT_GETS + 1) * sizeof(struct plx_op));

	if (!direct)
		return plx_fail(ENOMEM, "out of memory");
	direct->immediate = info->domain_attr->cq_data_size >= sizeof(uint32_t);
	direct->revokes_at_once = driver->revokes_at_once && driver->revokes_at_once(info);
	direct->by_address = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	direct->bytes_max = lesser(info->ep_attr->max_msg_size, DIRECT_BYTES_MAX);
	direct->gets = (struct plx_op *)(direct + 1);
	TAILQ_INIT(&direct->granted);
	TAILQ_INIT(&direct->revoked);
	TAILQ_INIT(&direct->asked);
	TAILQ_INIT(&direct->done);
	direct->puts = &direct->gets[DIRECT_GETS];
	for (unsigned i = 0; i <= DIRECT_GETS; i++) {
		direct->gets[i].link = link;
		direct->gets[i].kind = i < DIRECT_GETS ? OP_GET : OP_PUT;
	}
	link->direct = direct;
	link->set->only = link;
	return 0;
}

void direct_destroy(struct plx_link *link)
{
	free(link->direct);
	link->direct = NULL;
}

/* Return: NULL if both sides have it; else what is missing. */
const char *direct_not_agreed(const struct plx_link *link)
{
	if (!link->direct)
		return "this side did not ask for it (`direct` in struct plx_link_attr)";
	return link->direct->agreed ? NULL : "the peer did not ask for it";
}

uint64_t plx_link_direct_max(const struct plx_link *link)
{
	ASSERT_OWNER(link->home->id);
	return direct_not_agreed(link) ? 0 : link->direct->bytes_max;
}

/* Whether a put or get that found no room, rather than no credit, may be retried. */
bool direct_has_room(const struct plx_link *link)
{
	return link->direct && link->direct->blocked && !link->tx_current.head &&
	       link->tx_free_count > LINK_TX_CONTROL && link->direct->get_count < DIRECT_GETS;
}

/* Checks of calls ----------------------------------------------------------------------------- */

/* Whether the link can do any. Return: 0; -errno with a text. */
int direct_check_open(const struct plx_link *link)
{
	const char *wrong = direct_not_agreed(link);

	if (plx_unlikely(link->state != LINK_OPEN))
		return link_fail_closed(link);
	if (plx_unlikely(wrong != NULL))
		return plx_fail(EOPNOTSUPP, "link to %s has no direct data placement: %s",
				link->peer, wrong);
	return 0;
}

/* Whether it can do this operation. Return: the same. */
int direct_check(const struct plx_link *link, const struct direct_target *target, unsigned access)
{
	const struct plx_remote *remote = target->remote;
	unsigned long long bytes = target->bytes, offset = target->offset;
	int rc = direct_check_open(link);

	rc = rc ? rc : remote_check(remote);
	if (plx_unlikely(rc))
		return rc;
	if (plx_unlikely(!(remote->access & access)))
		return plx_fail(EACCES, "%s has not granted that memory for %s", link->peer,
				access == PLX_REMOTE_WRITE ? "writing" : "reading");
	if (plx_unlikely(offset > remote->bytes || bytes > remote->bytes - offset))
		return plx_fail(ERANGE, "%llu bytes at offset %llu: %s has granted %llu bytes",
				bytes, offset, link->peer, (unsigned long long)remote->bytes);
	if (plx_unlikely(bytes > link->direct->bytes_max))
		return plx_fail(EMSGSIZE, "%llu bytes: %s carries at most %llu at once", bytes,
				link->set->label, (unsigned long long)link->direct->bytes_max);
	return 0;
}

int direct_no_room(struct plx_link *link)
{
	link->direct->blocked = true;
	return tx_would_block(link);
}

/* libfabric's registration cache gives every registration all rights, and keeps it after its end:
 * the same memory registered twice becomes one. Return: 0; -EOPNOTSUPP if the cache is on. */
int direct_check_set(struct plx_set *set)
{
	static uint8_t memory[64];
	struct fid_mr *first, *second = NULL;
	bool cached;

	if (!set->driver->needs_mr || fi_mr_reg(set->fids.domain, memory, sizeof(memory),
						FI_REMOTE_READ, 0, 1, 0, &first, NULL) != 0)
		return 0; /* a grant will report it */
	cached = fi_mr_reg(set->fids.domain, memory, sizeof(memory), FI_REMOTE_READ, 0, 2, 0,
			   &second, NULL) == 0 &&
		 fi_mr_key(first) == fi_mr_key(second);
	fi_close(&first->fid);
	if (second)
		fi_close(&second->fid);
	if (!cached)
		return 0;
	return plx_fail(
		EOPNOTSUPP,
		"%s: libfabric's cache of memory registrations is on, with which a peer that is "
		"granted some memory reaches more; set FI_MR_CACHE_MONITOR=disabled in the "
		"environment, and let nobody call fi_getinfo before plx_fabric_init",
		set->label);
}

/* Completions ---------------------------------------------------------------------------------- */

/* The peer reports a put. Return: whether that is valid. */
bool direct_on_put(struct plx_link *link, uint64_t value)
{
	if (plx_unlikely(link->state < LINK_OPEN || link->peer_fin || value > UINT32_MAX))
		return close_now(link, PLX_LINK_PROTOCOL, "the peer reports a put %s",
				 link->peer_fin            ? "after FIN"
				 : link->state < LINK_OPEN ? "before HELLO"
							   : "with a value of more than 32 bits");
	link->stats.puts_told++;
	if (link->events->on_put)
		link->events->on_put(link, (uint32_t)value, link->user);
	return true;
}

/* A completion of a shared queue that is neither a receive nor a send. */
PLX_NOINLINE void direct_done(struct plx_op *op, uint64_t length)
{
	if (op->kind == OP_GET)
		get_done(op, 0);
	else
		receive_slow_put(op->link, NULL, length);
}

/* As receive_completions. */
int direct_completions(struct plx_set *set, ssize_t count)
{
	if (plx_unlikely(count < 0))
		return cq_read_errors(set);

	struct plx_set *cut PLX_CLEANUP(completions_end) = set;
	const struct fi_cq_data_entry *entry = set->read.entries.data;
	struct turn *turn = &set->home->budget;

	if (plx_likely(count > 0)) {
		set->read.end = entry + count;
	} else {
		entry = set->read.next;
		count = 1;
	}
	do {
		struct plx_op *op = entry->op_context;
		uint64_t flags = entry->flags, data = entry->data;
		size_t length = entry->len;

		set->read.next = ++entry;
		if (flags & FI_REMOTE_WRITE || plx_unlikely(!op))
			receive_slow_put(set->only, op, data);
		else if (op->kind == OP_RECV)
			receive_done(op, length);
		else if (op->kind == OP_SEND)
			tx_done(op, 0);
		else
			get_done(op, 0);
		if (plx_unlikely(!turn_goes_on(turn))) {
			count = completions_keep(set, count);
			break;
		}
	} while (entry != set->read.end);
	cut = NULL;
	return (int)count;
}

/* The provider keeps operations of a closed endpoint. */
void direct_abandon(struct plx_link *link)
{
	for (unsigned i = 0; i < DIRECT_GETS; i++)
		tx_fail_op(&link->direct->gets[i]);
	region_end_all(link);
}
