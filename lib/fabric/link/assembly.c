/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in several frames. Their heap memory takes no pages until it is written, so only bytes
 * that arrived are charged. A buffer is kept for the next message for IDLE_NS: page faults cost
 * more than copying. */
#include "fabric_link.h"
#include "list.h"

#include <inttypes.h>

#define SWEEP_NS (100 * PLX_NS_PER_MS)
#define IDLE_NS  SWEEP_NS            /* how long an unused buffer is kept */
#define STALL_NS (30 * PLX_NS_PER_S) /* how long a message may stall; */
#define SLOW_NS  PLX_NS_PER_S        /* the limit if another one needs the memory */

static uint64_t bytes_max; /* per lcore */

int assembly_init(uint64_t partial_bytes)
{
	bytes_max = partial_bytes ? partial_bytes : PLX_PARTIAL_BYTES_DEFAULT;
	return check_range("partial_bytes", bytes_max, PLX_PARTIAL_BYTES_MIN,
			   PLX_PARTIAL_BYTES_MAX);
}

static void on_sweep(struct plx_timer *timer, void *arg);

void assembly_home_init(struct plx_fabric_lcore *home)
{
	plx_timer_init(&home->sweep, on_sweep, home);
	plx_timer_set_lax(&home->sweep, true);
}

static void leave(struct assembly *assembly)
{
	if (!assembly->link)
		return;
	LIST_REMOVE(assembly, of_home);
	assembly->link->home->assembly_bytes -= assembly->charged;
	assembly->charged = 0;
	assembly->link = NULL;
}

void assembly_drop(struct assembly *assembly)
{
	leave(assembly);
	plx_buf_unref(assembly->buf);
	*assembly = (struct assembly){0};
}

static void end_stalled(struct assembly *assembly, uint64_t still_ns)
{
	close_now(assembly->link, PLX_LINK_PROTOCOL,
		  "a message of %" PRIu64 " bytes stopped after %" PRIu32
		  ", and stood still for %llu ms",
		  assembly->total, assembly->buf->len, MS(still_ns));
	leave(assembly); /* the bytes are freed with the link */
}

/* Free idle buffers, and end links whose messages stalled for stall_ns. */
static void sweep(struct plx_fabric_lcore *home, uint64_t idle_ns, uint64_t stall_ns)
{
	uint64_t now_ns = plx_loop_now_ns();
	struct assembly *each, *next;

	LIST_FOREACH_SAFE (each, &home->assemblies, of_home, next) {
		uint64_t still_ns = plx_time_since(each->moved_ns, now_ns);

		if (!each->total && still_ns >= idle_ns)
			assembly_drop(each);
		else if (each->total && each->link->rx_frames == each->link->rx_frames_granted)
			each->moved_ns = now_ns; /* without credit the stall is this side's */
		else if (each->total && still_ns >= stall_ns)
			end_stalled(each, still_ns);
	}
}

static void on_sweep(struct plx_timer *timer, void *arg)
{
	struct plx_fabric_lcore *home = arg;

	sweep(home, IDLE_NS, STALL_NS);
	if (!LIST_EMPTY(&home->assemblies))
		plx_timer_start(timer, SWEEP_NS);
}

bool assembly_begin(struct plx_link *link, uint64_t total, uint32_t first_bytes)
{
	struct plx_fabric_lcore *home = link->home;
	struct assembly *assembly = &link->partial;
	const struct plx_buf *buf = assembly->buf;

	if (assembly->total)
		return close_now(link, PLX_LINK_PROTOCOL, "a message began inside another");
	if (total > link->message_max || total <= first_bytes)
		return close_now(link, PLX_LINK_PROTOCOL,
				 "the peer announced a message of %" PRIu64 " bytes; at most "
				 "%" PRIu64 " are accepted",
				 total, link->message_max);
	if (buf && (!plx_buf_unshared(buf) || buf->room - PLX_BUF_HEADROOM < total))
		assembly_drop(assembly);
	if (!assembly->buf)
		assembly->buf = plx_buf_alloc((uint32_t)total);
	if (!assembly->buf)
		return close_now(link, PLX_LINK_LOCAL,
				 "no memory for a message of %" PRIu64 " bytes", total);
	if (!assembly->link) {
		assembly->link = link;
		LIST_INSERT_HEAD(&home->assemblies, assembly, of_home);
		if (!plx_timer_running(&home->sweep))
			plx_timer_start(&home->sweep, SWEEP_NS);
	}
	plx_buf_reset(assembly->buf);
	assembly->total = total;
	assembly->moved_ns = plx_loop_now_ns();
	receive_set_whole_end(link);
	return true;
}

/* Return: whether there is room for the bytes so far. */
static bool charge(struct assembly *assembly)
{
	struct plx_fabric_lcore *home = assembly->link->home;
	uint32_t more = assembly->buf->len - assembly->charged;

	if (home->assembly_bytes + more > bytes_max)
		sweep(home, 0, SLOW_NS);
	if (home->assembly_bytes + more > bytes_max)
		return false;
	assembly->charged += more;
	home->assembly_bytes += more;
	return true;
}

bool assembly_add(struct plx_link *link, const void *data, uint32_t length)
{
	struct assembly *assembly = &link->partial;
	struct plx_buf *buf = assembly->buf;

	if (!assembly->total || length > assembly->total - buf->len)
		return close_now(link, PLX_LINK_PROTOCOL,
				 "a part of a message does not fit its length");
	memcpy(plx_buf_append(buf, length), data, length);
	assembly->moved_ns = plx_loop_now_ns();
	if (buf->len <= assembly->charged || charge(assembly))
		return true;
	return close_now(link, PLX_LINK_LOCAL,
			 "no room for a message of %" PRIu64
			 " bytes: those that come in parts have %" PRIu64
			 " KiB already; --partial-mem gives them more",
			 assembly->total, link->home->assembly_bytes >> 10);
}

void assembly_done(struct assembly *assembly)
{
	assembly->total = 0;
	if (plx_buf_unshared(assembly->buf))
		plx_buf_reset(assembly->buf);
	else
		assembly_drop(assembly);
}
