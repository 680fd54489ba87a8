/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in several frames. Their heap memory takes no pages until it is written, so only bytes
 * that arrived are charged. A buffer is kept for the next message for IDLE_NS: page faults cost
 * more than copying. */
#include "list.h"
#include "receive.h"

#include <inttypes.h>

#define LOOK_NS    (100 * PLX_NS_PER_MS) /* between two looks at a message */
#define IDLE_NS    LOOK_NS               /* how long an unused buffer is kept */
#define LOOKS_MAX  64                    /* per turn */
#define LOOK_BYTES (64 << 10)            /* come between two looks if room is used */

/* A message or frame needs an average rate: PACE_BYTES in PACE_NS. passed_ns: time in which the
 * peer could send and this side could read: of more than two times look_ns, the usual time between
 * two looks, this lcore spent most elsewhere. */
bool pace_is_slow(struct pace *pace, uint64_t look_ns, uint64_t passed_ns, uint32_t bytes)
{
	int32_t came;
	bool slow;

	pace->counted_ns += lesser(passed_ns, 2 * look_ns);
	if (pace->counted_ns < PACE_NS)
		return false;
	came = (int32_t)(bytes - pace->from_bytes);
	slow = came < PACE_BYTES && came > -PACE_BYTES; /* a long part of another frame may go */
	*pace = (struct pace){.from_bytes = bytes};
	return slow;
}

/* Leave all lists; the bytes are freed with the link. */
void assembly_forget(struct assembly *assembly)
{
	struct partials *partials = &assembly->link->home->partials;

	TAILQ_REMOVE(assembly->begun ? &partials->begun : &partials->idle, assembly, of_home);
	partials->begun_count -= assembly->begun;
	assembly->begun = false;
	partial_leave(assembly);
}

void assembly_drop(struct assembly *assembly)
{
	if (assembly->link)
		assembly_forget(assembly);
	plx_buf_unref(assembly->buf);
	*assembly = (struct assembly){0};
}

static void end_slow(struct assembly *assembly)
{
	close_now(assembly->link, PLX_LINK_PROTOCOL,
		  "too slow: of a message of %" PRIu64 " bytes, %" PRIu32 " came, " PACE_TEXT,
		  assembly->total, assembly->buf->len, PACE_NUMBERS);
	assembly_forget(assembly);
}

static bool is_slow(struct assembly *assembly, uint64_t passed_ns)
{
	const struct plx_link *link = assembly->link;
	bool is_held;
	uint32_t bytes = assembly->buf->len + arrival_bytes(link, &is_held);

	/* Without credit the delay is this side's. */
	return link->rx_frames != link->rx_frames_granted && !is_held &&
	       pace_is_slow(&assembly->pace, LOOK_NS, passed_ns, bytes);
}

/* Return: whether one was looked at. */
static bool look_at_begun(struct partials *partials, uint64_t now_ns)
{
	struct assembly *first = TAILQ_FIRST(&partials->begun);
	uint64_t passed_ns = first ? plx_time_since(first->looked_ns, now_ns) : 0;

	if (!first || passed_ns < LOOK_NS)
		return false;
	TAILQ_REMOVE(&partials->begun, first, of_home);
	TAILQ_INSERT_TAIL(&partials->begun, first, of_home);
	first->looked_ns = now_ns;
	if (is_slow(first, passed_ns))
		end_slow(first);
	return true;
}

/* Return: whether one was dropped. */
static bool drop_idle(struct plx_fabric_lcore *home, uint64_t now_ns)
{
	struct assembly *first = TAILQ_FIRST(&home->partials.idle);

	if (!first || plx_time_since(first->looked_ns, now_ns) < IDLE_NS || !release_has_room(home))
		return false;
	assembly_drop(first);
	return true;
}

static void on_look(struct plx_timer *timer, void *arg)
{
	struct plx_fabric_lcore *home = arg;
	struct partials *partials = &home->partials;
	uint64_t now_ns = plx_loop_now_ns();
	unsigned looks = 0;

	while (looks < LOOKS_MAX && (look_at_begun(partials, now_ns) || drop_idle(home, now_ns)))
		looks++;
	if (partials->bytes - partials->looked_bytes < LOOK_BYTES)
		partial_schedule_room(home); /* what continued does not use it */
	partials->looked_bytes = partials->bytes;
	if (!TAILQ_EMPTY(&partials->begun) || !TAILQ_EMPTY(&partials->idle))
		plx_timer_start(timer, looks < LOOKS_MAX ? LOOK_NS : 0);
}

void assembly_home_init(struct plx_fabric_lcore *home)
{
	partial_home_init(home);
	plx_timer_init(&home->partials.look, on_look, home);
	plx_timer_set_lax(&home->partials.look, true);
}

void assembly_home_fini(struct plx_fabric_lcore *home)
{
	plx_timer_stop(&home->partials.look);
	plx_task_cancel(&home->partials.make_room);
}

static bool join(struct assembly *assembly, struct plx_link *link)
{
	struct partials *partials = &link->home->partials;

	if (assembly->link)
		TAILQ_REMOVE(&partials->idle, assembly, of_home);
	else if (partial_join(assembly, link) != 0)
		return false;
	TAILQ_INSERT_TAIL(&partials->begun, assembly, of_home);
	partials->begun_count++;
	assembly->begun = true;
	assembly->looked_ns = plx_loop_now_ns();
	assembly->pace = (struct pace){0};
	if (!plx_timer_running(&partials->look))
		plx_timer_start(&partials->look, LOOK_NS);
	return true;
}

bool assembly_begin(struct plx_link *link, uint64_t total, uint32_t first_bytes)
{
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
	if (!assembly->buf || !join(assembly, link))
		return close_now(link, PLX_LINK_LOCAL,
				 "no memory for a message of %" PRIu64 " bytes", total);
	plx_buf_reset(assembly->buf);
	assembly->total = total;
	receive_set_whole_end(link);
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
	if (buf->len <= assembly->charged)
		return true;
	partial_charge(assembly, buf->len - assembly->charged);
	return buf->len == assembly->total || !partial_must_wait(assembly);
}

void assembly_done(struct assembly *assembly)
{
	struct plx_link *link = assembly->link;
	struct partials *partials = &link->home->partials;
	uint32_t frames = partial_stop_waiting(assembly);

	if (frames)
		receive_grant(link, frames);
	assembly->total = 0;
	assembly->begun = false;
	assembly->looked_ns = plx_loop_now_ns();
	TAILQ_REMOVE(&partials->begun, assembly, of_home);
	TAILQ_INSERT_TAIL(&partials->idle, assembly, of_home);
	partials->begun_count--;
	if (plx_buf_unshared(assembly->buf) && !partials->waiting && !partial_is_full(link->home))
		plx_buf_reset(assembly->buf);
	else
		assembly_drop(assembly);
}
