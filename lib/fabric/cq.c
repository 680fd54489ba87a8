/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions: hot path. */
#include "fabric_priv.h"

#define ERRORS_MAX 64 /* failed operations looked at in one poll */

/* An operation failed. While the link lives that is how its death shows first: tcp and net cancel
 * all posted receives, verbs fails the send, before the event of the EQ tells. */
static void operation_failed(const struct fi_cq_err_entry *entry)
{
	struct plx_op *op = entry->op_context;
	struct plx_link *link;

	if (!op) /* an injected frame: nobody waits for it, and the link's own death will show */
		return;
	link = op->link;
	if (op->kind == OP_RECV)
		receive_take_back(op);
	else
		send_done(op, entry->err ? -entry->err : -EIO);
	if (entry->err == FI_ETRUNC)
		link_end(link, PLX_LINK_PROTOCOL, "the peer sent a frame longer than %u bytes",
			 link->rx_buf_bytes);
	else if (link->state != LINK_CONNECTING) /* else the EQ will tell why it failed */
		close_on_shutdown(link);
}

static int read_errors(struct plx_set *set)
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

/* Take completions, at most CQ_BURST. Return: how many. */
int cq_poll(struct plx_set *set)
{
	struct fi_cq_msg_entry entries[CQ_BURST];
	ssize_t count = fi_cq_read(set->fids.cq, entries, CQ_BURST);

	if (plx_likely(count == -FI_EAGAIN))
		return 0;
	if (plx_unlikely(count < 0))
		return read_errors(set);
	for (ssize_t i = 0; i < count; i++) {
		struct plx_op *op = entries[i].op_context;

		if (op->kind == OP_RECV)
			receive_done(op, entries[i].len);
		else
			send_done(op, 0);
	}
	return (int)count;
}

/* Take all completions there are: good data may lie before the end of a connection. Bounded, as
 * reposted receives could go on for ever where the connection is alive after all. */
void cq_drain(struct plx_set *set)
{
	for (int i = 0; i < 64; i++) {
		if (cq_poll(set) == 0)
			break;
	}
}
