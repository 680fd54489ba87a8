/* SPDX-License-Identifier: BSD-3-Clause */
/* Failed completions, and draining the queue. */
#include "fabric_link.h"

#define ERRORS_MAX 64 /* failed operations per poll */

/* An operation failed. On a live link this is the first sign of a broken connection, before the
 * EQ's event: tcp cancels all posted receives, verbs fails the send. */
static void operation_failed(const struct fi_cq_err_entry *entry)
{
	struct plx_op *op = entry->op_context;
	struct plx_link *link;

	if (!op) /* an injected frame: the link's failure shows elsewhere */
		return;
	link = op->link;
	if (op->kind == OP_RECV)
		receive_take_back(op);
	else if (op->kind == OP_SEND)
		tx_done(op, entry->err ? -entry->err : -EIO);
	if (entry->err == FI_ETRUNC)
		close_now(link, PLX_LINK_PROTOCOL, "the peer sent a frame longer than %u bytes",
			  link_frame_bytes(link));
	else if (link->state != LINK_CONNECTING) /* else the EQ reports why it failed */
		close_on_shutdown(link, entry->prov_errno);
	if (op->kind == OP_GET) /* last, so that its callback cannot start another one */
		get_done(op, entry->err ? -entry->err : -EIO);
}

int cq_read_errors(struct plx_set *set)
{
	int count = 0;

	while (count < ERRORS_MAX) {
		struct fi_cq_err_entry entry = {0};

		if (fi_cq_readerr(set->fids.cq, &entry, 0) != 1)
			break;
		operation_failed(&entry);
		count++;
	}
	return count;
}

/* Take all completions, for at most TURN_BUDGET_NS of a turn: those of thousands of links are left
 * for the next turns. Return: whether none are left. */
bool cq_drain(struct plx_set *set)
{
	if (set->drain_turn != set->home->turn) {
		set->drain_turn = set->home->turn;
		set->drain_end_ns = plx_now_ns() + TURN_BUDGET_NS;
	}
	while (plx_now_ns() < set->drain_end_ns) {
		if (cq_poll(set) == 0)
			return true;
	}
	return false;
}
