/* SPDX-License-Identifier: BSD-3-Clause */
/* How a link ends. In order: each side sends FIN behind its last message and answers the other's,
 * so that both know that everything arrived; a completed send says less than that. Out of order:
 * the connection breaks, a rule is broken, time runs out, or the user aborts.
 *
 * The side whose FIN was the answer may take the connection down as soon as that FIN is
 * acknowledged: nothing it sent is on its way any more. The other one lingers until it sees that,
 * so that its last acknowledgement is not lost. Where both FINs crossed, the connector takes it
 * down. */
#include "fabric_link.h"
#include "fabric_listen.h"

#include <stdarg.h>
#include <stdio.h>

/* How many times close_timeout_ns a whole close may take. */
#define CLOSE_TIMES_MAX 30

/* A pause of that part of the peer's patience counts: it may have been silent before. */
#define PAUSE_PART 2

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct plx_link *link = arg;

	switch (link->state) {
	case LINK_CONNECTING:
		close_now(link, PLX_LINK_UNREACHABLE, "%s did not answer within %llu ms",
			  link->peer, MS(link->attr.connect_timeout_ns));
		break;
	case LINK_HELLO:
		close_now(link, PLX_LINK_HELLO, "%s did not say HELLO within %llu ms", link->peer,
			  MS(link->attr.hello_timeout_ns));
		break;
	case LINK_CLOSING:
		close_now(link, PLX_LINK_TIMEOUT,
			  "%s did not agree to close within %llu ms; what it "
			  "had not received may be lost",
			  link->peer, MS(plx_time_since(link->close_began_ns, plx_loop_now_ns())));
		break;
	default:
		close_now(link, PLX_LINK_CLOSED, "closed");
	}
}

void close_refused(struct plx_link *link)
{
	close_now(link, PLX_LINK_REFUSED, "%s refused the connection: is anything listening there?",
		  link->peer);
}

/* Of an accepted link: the peer connected but never sent HELLO. */
static void end_without_hello(struct plx_link *link)
{
	close_now(link, PLX_LINK_HELLO, "%s went away before it said HELLO", link->peer);
}

/* The provider knows more than its events say. Return: whether that ended the link. */
static bool end_as_driver_says(struct plx_link *link, int prov_errno)
{
	enum plx_link_reason reason;
	const char *text = link->driver->failure
				 ? link->driver->failure(link->ep, prov_errno, &reason)
				 : NULL;

	if (text)
		close_now(link, reason, "%s: %s", link->peer, text);
	return text;
}

void close_not_connected(struct plx_link *link)
{
	if (end_as_driver_says(link, 0))
		return;
	if (link->from)
		end_without_hello(link);
	else
		close_refused(link);
}

void close_timer_init(struct plx_link *link)
{
	plx_timer_init(&link->timer, on_timer, link);
	plx_timer_set_lax(&link->timer, true);
}

/* The loop does the rest. */
void close_begin_reap(struct plx_link *link)
{
	plx_timer_stop(&link->timer);
	liveness_leave(link);
	link->state = LINK_DEAD;
	link->tx_inline_end = link->rx_whole_end = 0;
	link->want = 0;
	link->settling = false;
	link_schedule(link, WANT_DESTROY);
}

/* A peer goes away without a word if it gave this process up: then the fault is here. */
static void note_own_pause(struct plx_link *link)
{
	uint64_t still_ns = plx_loop_stood_still_ns();

	if (!link->live.dead_after_ms ||
	    still_ns < link->live.dead_after_ms * PLX_NS_PER_MS / PAUSE_PART)
		return;
	snprintf(link->text, sizeof(link->text),
		 "%.100s: this process stood still for %.1f s and the peer gave up", link->peer,
		 (double)still_ns / 1e9);
}

/* End the link now. The first reason counts. Its callbacks follow from the loop, never from here.
 */
void close_now(struct plx_link *link, enum plx_link_reason reason, const char *format, ...)
{
	va_list args;

	if (link->state == LINK_DEAD)
		return;
	if (link->state != LINK_LINGER) {
		link->reason = reason;
		va_start(args, format);
		vsnprintf(link->text, sizeof(link->text), format, args);
		va_end(args);
		if (reason == PLX_LINK_PEER_DOWN)
			note_own_pause(link);
		if (reason == PLX_LINK_PROTOCOL && link->from)
			counter_add_shared(&link->from->protocol_broken, 1);
	}
	if (!link->connected && link->set->connecting)
		link->set->connecting--;
	close_begin_reap(link);
}

void close_notify(struct plx_link *link)
{
	if (link->close_due) {
		link->close_due = false;
		if (link->events->on_close)
			link->events->on_close(link, link->reason, link->text, link->user);
	} else if (link->from && link->reason != PLX_LINK_CLOSED) {
		listener_failed(link);
	}
}

/* Both sides are done: the user hears of it now, the connection goes down when it may. */
static void agreed(struct plx_link *link)
{
	bool crossed = !link->fin_carried_ack && !link->peer_fin_carried_ack;
	bool may_take_down = link->fin_carried_ack || (crossed && link->connector);

	link->reason = PLX_LINK_CLOSED;
	snprintf(link->text, sizeof(link->text), "closed");
	if (may_take_down || link->disconnected) {
		close_begin_reap(link);
		return;
	}
	liveness_leave(link);
	link->state = LINK_LINGER;
	plx_timer_start(&link->timer, LINGER_NS);
	if (!direct_has_regions(link->direct)) /* else its user hears when the connection is gone */
		close_notify(link);
}

/* See whether a closing link can go a step further. */
void close_step(struct plx_link *link)
{
	if (link->state != LINK_CLOSING)
		return;
	if (!link->fin_sent && !link->tx_current.head && !direct_is_getting(link->direct)) {
		link->want |= WANT_FIN;
		if (control_send(link) != 0)
			link_schedule(link, WANT_FIN);
	}
	if (link->fin_sent && link->fin_acked && link->peer_fin && link->tx_inflight == 0 &&
	    !(link->want & WANT_CONTROL & ~WANT_CREDIT))
		link_schedule(link, WANT_AGREED);
}

/* From the loop, outside any other callback: the last step of an orderly close. */
void close_agreed(struct plx_link *link)
{
	/* on_close follows what was sent: its completions come, and look again (tx_done),
	 * or they are waited for with the endpoint of a connection that is gone. */
	if (link->state == LINK_CLOSING && (link->tx_inflight == 0 || link->disconnected))
		agreed(link);
}

/* The peer takes what was sent: it is slow, but not silent. */
void close_extend(struct plx_link *link)
{
	uint64_t timeout_ns = link->attr.close_timeout_ns;
	uint64_t passed_ns = plx_time_since(link->close_began_ns, plx_loop_now_ns());
	uint64_t most_ns = timeout_ns < UINT64_MAX / CLOSE_TIMES_MAX ? timeout_ns * CLOSE_TIMES_MAX
								     : UINT64_MAX;
	uint64_t left_ns = most_ns > passed_ns ? most_ns - passed_ns : 0;

	plx_timer_start(&link->timer, lesser(timeout_ns, left_ns));
}

static void start_closing(struct plx_link *link)
{
	link->state = LINK_CLOSING;
	link->tx_inline_end = 0;
	link->want |= WANT_MORE_TIME;
	link->close_began_ns = plx_loop_now_ns();
	close_extend(link);
	close_step(link);
}

int plx_link_close(struct plx_link *link)
{
	ASSERT_OWNER(link->home->id);
	if (plx_is_forked())
		return plx_fail_forked("plx_link_close");
	if (link->state >= LINK_CLOSING)
		return plx_fail(EALREADY, "the link to %s is closing already", link->peer);
	if (link->state < LINK_OPEN)
		close_now(link, PLX_LINK_ABORTED, "closed before it was open");
	else
		start_closing(link);
	return 0;
}

void plx_link_abort(struct plx_link *link)
{
	ASSERT_OWNER(link->home->id);
	close_now(link, PLX_LINK_ABORTED, "aborted here");
}

void close_on_fin(struct plx_link *link, bool carries_ack)
{
	if (link->state < LINK_OPEN || link->peer_fin || link->partial.total ||
	    (carries_ack && !link->fin_sent)) {
		close_now(link, PLX_LINK_PROTOCOL, "a FIN that does not belong here");
		return;
	}
	link->peer_fin = true;
	link->rx_whole_end = 0;
	link->tx_fin_frames = link->tx_frames_granted;
	link->peer_fin_carried_ack = carries_ack;
	link->fin_acked |= carries_ack;
	if (link->state == LINK_OPEN) {
		start_closing(link); /* the answer: our own FIN, with an ACK in it */
		return;
	}
	if (link->fin_sent) {
		link->want |= WANT_FIN_ACK;
		if (control_send(link) != 0)
			link_schedule(link, WANT_FIN_ACK);
	}
	close_step(link);
}

void close_on_fin_ack(struct plx_link *link)
{
	if (!link->fin_sent || link->fin_acked) {
		close_now(link, PLX_LINK_PROTOCOL, "an acknowledgement of no FIN");
		return;
	}
	link->fin_acked = true;
	close_step(link);
}

/* The connection is gone: completions of before are taken first, as they may be messages that came
 * in time, and as verbs takes those of an endpoint with it. Where those of thousands of links are
 * before them, the loop comes back to it, so that a turn does not take them all. Return: whether it
 * is done.
 */
bool close_settle(struct plx_link *link)
{
	if (cq_drain(link->set))
		return true;
	link->settling = true;
	link->ended_ns = plx_loop_now_ns();
	link_schedule(link, 0);
	return false;
}

/* Go on, if they are taken by now. */
void close_settled(struct plx_link *link)
{
	if (!cq_drain(link->set) && link->set->emptied_ns <= link->ended_ns)
		return;
	link->settling = false;
	close_on_shutdown(link, 0);
}

/* Of a link that is being closed the end is as good as the peer's going away. */
void close_on_shutdown(struct plx_link *link, int prov_errno)
{
	if (link->state < LINK_CLOSING && end_as_driver_says(link, prov_errno))
		return;
	switch (link->state) {
	case LINK_CONNECTING:
		close_not_connected(link);
		break;
	case LINK_HELLO:
		end_without_hello(link);
		break;
	case LINK_OPEN:
		close_now(link, PLX_LINK_PEER_DOWN, "%s went away without closing%s", link->peer,
			  direct_not_agreed(link) ? ""
						  : ", or one side used memory that is not granted "
						    "to it");
		break;
	case LINK_CLOSING:
		link->disconnected = true;
		if (link->fin_sent && link->fin_acked && link->peer_fin)
			link_schedule(link, WANT_AGREED);
		else
			close_now(link, PLX_LINK_PEER_DOWN,
				  "%s went away before it had agreed to close", link->peer);
		break;
	case LINK_LINGER:
		close_now(link, PLX_LINK_CLOSED, "closed");
		break;
	default:
		break;
	}
}

static void close_endpoint(struct plx_link *link, uint64_t now_ns)
{
	link->ep_closed = true;
	link->ended_ns = now_ns;
	if (link->driver->closing)
		link->driver->closing(link->fd);
	if (link->ep)
		fi_close(&link->ep->fid);
}

/* Close a dead link's endpoint, and the link once the provider has returned all its operations.
 * Return: whether it is gone. */
bool close_reap(struct plx_link *link, uint64_t now_ns)
{
	if (!link->shut_down && link->ep) {
		link->shut_down = true;
		fi_shutdown(link->ep, 0); /* verbs returns posted receives only after this */
		if (!close_settle(link))
			return false;
	}
	if (!link->ep_closed) {
		close_endpoint(link, now_ns);
		cq_drain(link->set);
	}
	if (link->rx_posted + link->tx_inflight) {
		if (link->set->emptied_ns < link->ended_ns + PLX_NS_PER_S)
			return false;
		link_abandon(link);
		return true;
	}
	if (plx_unlikely(link->plan != NULL) && connect_next(link))
		return false;
	send_buf_fail(link, false);
	if (link->direct)
		region_end_all(link);
	close_notify(link);
	link_destroy(link);
	return true;
}
