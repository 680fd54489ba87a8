/* SPDX-License-Identifier: BSD-3-Clause */
/* How a link ends. Orderly close: each side sends FIN after its last message and acknowledges the
 * other's, so both know that everything arrived. A completed send does not prove that. Otherwise
 * the connection broke, the peer broke the protocol, time ran out, or the user aborted.
 *
 * The side that answered with its FIN may shut the connection down once that FIN is acknowledged:
 * nothing it sent is in flight. The other side lingers until then, so that its last acknowledgement
 * is not lost. If both FINs crossed, the connector shuts the connection down. */
#include "fabric_link.h"
#include "fabric_listen.h"

#include <stdarg.h>
#include <stdio.h>

/* This side's pause counts from dead_after_ms / PAUSE_PART on: the peer may have been waiting
 * before it. */
#define PAUSE_PART 2

/* Connecting, HELLO, closing or lingering takes too long. */
void close_on_timer(struct plx_timer *timer, void *arg)
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
			  "%s did not agree to close within %llu ms; what it had not received may "
			  "be lost",
			  link->peer, MS(link->attr.close_timeout_ns));
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

/* An accepted link whose peer never sent HELLO. */
static void end_without_hello(struct plx_link *link)
{
	close_now(link, PLX_LINK_HELLO, "%s went away before it said HELLO", link->peer);
}

/* Ask the driver, which may know more than the events. Return: whether that ended the link. */
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

/* The loop does the rest. */
void close_begin_reap(struct plx_link *link)
{
	plx_timer_stop(&link->timer);
	liveness_leave(link);
	link_go(link, LINK_DEAD);
	link->want = 0;
	link->settling = false;
	link_schedule(link, WANT_DESTROY);
}

/* The peer may have disconnected because this process paused: then report that instead. */
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

bool close_now(struct plx_link *link, enum plx_link_reason reason, const char *format, ...)
{
	va_list args;

	if (link->state == LINK_DEAD)
		return false;
	if (link->state < LINK_LINGER) {
		link->reason = reason;
		va_start(args, format);
		vsnprintf(link->text, sizeof(link->text), format, args);
		va_end(args);
		if (reason == PLX_LINK_PEER_DOWN)
			note_own_pause(link);
		if (reason == PLX_LINK_PROTOCOL && link->from)
			counter_add_shared(&link->from->protocol_broken, 1);
	}
	close_begin_reap(link);
	return false;
}

void close_notify(struct plx_link *link)
{
	if (link->close_due) {
		link->close_due = false;
		link->was_open = true;
		if (link->events->on_close)
			link->events->on_close(link, link->reason, link->text, link->user);
	} else if (link->from && !link->was_open && link->reason != PLX_LINK_CLOSED) {
		listener_failed(link);
	}
}

/* Both sides are done, the last step of an orderly close: on_close runs now, the connection is shut
 * down when allowed. Call from the loop, outside any callback. */
void close_agreed(struct plx_link *link)
{
	bool crossed = !link->fin_carried_ack && !link->peer_fin_carried_ack;
	bool may_take_down = link->fin_carried_ack || (crossed && link->connector);

	/* on_close follows the last sends: their completions call this again (tx_done), or they
	 * come back with the endpoint of a broken connection. */
	if (link->state != LINK_CLOSING || (link->tx_inflight && !link->disconnected))
		return;
	if (link->has_rest) { /* however long it takes: the peer, which has agreed, may leave */
		plx_timer_stop(&link->timer);
		liveness_leave(link);
		link_schedule(link, WANT_AGREED);
		return;
	}
	link->reason = PLX_LINK_CLOSED;
	snprintf(link->text, sizeof(link->text), "closed");
	if (may_take_down || link->disconnected) {
		close_begin_reap(link);
		return;
	}
	liveness_leave(link);
	link_go(link, LINK_LINGER);
	plx_timer_start(&link->timer, LINGER_NS);
	if (!direct_has_regions(link->direct)) /* else on_close follows the disconnect */
		close_notify(link);
}

void close_step(struct plx_link *link)
{
	if (link->state != LINK_CLOSING)
		return;
	if (!link->fin_sent && !link->tx_current.head && !(link->direct && link->direct->get_count))
		control_send(link, WANT_FIN);
	if (link->fin_sent && link->fin_acked && link->peer_fin && link->tx_inflight == 0 &&
	    !(link->want & WANT_CONTROL & ~WANT_CREDIT))
		link_schedule(link, WANT_AGREED);
}

static void start_closing(struct plx_link *link)
{
	link_go(link, LINK_CLOSING);
	/* Once: a peer that takes a little now and then would keep the link for ever. */
	plx_timer_start(&link->timer, link->attr.close_timeout_ns);
	close_step(link);
}

int plx_link_close(struct plx_link *link)
{
	ASSERT_OWNER(link->home->id);
	if (plx_is_forked())
		return plx_fail_forked("plx_link_close");
	if (link->state >= LINK_CLOSING || link->ended_in_hello)
		return plx_fail(EALREADY, "the link to %s is closing already", link->peer);
	if (link->in_hello)
		link->ended_in_hello = true;
	else if (link->state < LINK_OPEN)
		close_now(link, PLX_LINK_ABORTED, "closed before it was open");
	else
		start_closing(link);
	return 0;
}

void plx_link_abort(struct plx_link *link)
{
	ASSERT_OWNER(link->home->id);
	if (link->in_hello)
		link->ended_in_hello = true;
	else
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
		start_closing(link); /* answer with FIN and an ACK in it */
		return;
	}
	if (link->fin_sent)
		control_send(link, WANT_FIN_ACK);
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

/* The connection has ended. Take its completions first: they may be messages that arrived in time,
 * and verbs drops those of a closed endpoint. With thousands of links that may take several turns.
 * Return: whether all are taken. */
bool close_settle(struct plx_link *link)
{
	if (cq_drain(link->set))
		return true;
	link->settling = true;
	link->ended_ns = plx_loop_now_ns();
	link_schedule(link, 0);
	return false;
}

void close_settled(struct plx_link *link)
{
	if (!cq_drain(link->set) && link->set->emptied_ns <= link->ended_ns)
		return;
	link->settling = false;
	close_on_shutdown(link, 0);
}

/* For a closing link, a broken connection is equivalent to a shutdown by the peer. */
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
			  direct_not_agreed(link)
				  ? ""
				  : ", or one side used memory that is not granted to it");
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
	case LINK_REFUSING:
		close_now(link, PLX_LINK_CLOSED, "closed");
		break;
	default:
		break;
	}
}

/* Close a dead link's endpoint, and free the link once the provider has returned all operations.
 * Return: whether it is freed. */
bool close_reap(struct plx_link *link, uint64_t now_ns)
{
	receive_early(link);
	if (!link->shut_down && link->ep) {
		link->shut_down = true;
		fi_shutdown(link->ep, 0); /* verbs returns posted receives only after this */
		if (!close_settle(link))
			return false;
	}
	if (!link->ep_closed) {
		link->ep_closed = true;
		link->ended_ns = now_ns;
		if (link->ep)
			fi_close(&link->ep->fid);
		cq_drain(link->set);
	}
	/* Unread completions of the peer's puts belong to no operation. */
	if (link->direct && link->set->emptied_ns <= link->ended_ns)
		return false;
	if (link->has_rest)
		return false;
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
