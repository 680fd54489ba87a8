/* SPDX-License-Identifier: BSD-3-Clause */
/* How a connected link opens: both HELLOs, their checks, and REFUSE. */
#include "base_internal.h"
#include "fabric_link.h"
#include "fabric_listen.h"
#include "tx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PROTOCOL_NAME_BYTES 32

/* Decline the link because of the peer's HELLO. refusal: constant text for the peer; NULL: the peer
 * finds the reason in this side's HELLO, which is sent first if it has not left. The link ends when
 * the peer closes the connection, or after LINGER_NS, so that the peer receives it.
 * Return: false. */
PLX_PRINTF(3, 4)
static bool decline(struct plx_link *link, const char *refusal, const char *format, ...)
{
	va_list args;

	link->declined = true;
	link->reason = PLX_LINK_HELLO;
	va_start(args, format);
	vsnprintf(link->text, sizeof(link->text), format, args);
	va_end(args);
	if (!refusal && !link->from) { /* its HELLO has left: the peer knows */
		close_begin_reap(link);
		return false;
	}
	link->refusal = refusal;
	link->state = LINK_LINGER;
	plx_timer_start(&link->timer, LINGER_NS);
	control_send(link, WANT_HELLO);
	return false;
}

/* The protocol above the link ------------------------------------------------------------------ */

static const char *protocol_name(uint8_t protocol, char out[PROTOCOL_NAME_BYTES])
{
	static const char *const names[] = {
		[PLX_PROTOCOL_NETIO] = PLX_NAME_NETIO,
		[PLX_PROTOCOL_RPC] = PLX_NAME_RPC,
		[PLX_PROTOCOL_ECHO] = "the echo of plx-ping",
	};

	if (protocol < PLX_ARRAY_LEN(names) && names[protocol])
		return names[protocol];
	snprintf(out, PROTOCOL_NAME_BYTES, "protocol %u", protocol);
	return out;
}

static bool protocol_agree(struct plx_link *link)
{
	uint32_t features = link->peer_features;
	uint8_t own = link->attr.protocol;
	uint8_t theirs = (features & FEATURE_PROTOCOL_MASK) >> FEATURE_PROTOCOL_SHIFT;
	bool is_self_test = link->from ? features & FEATURE_SELF_TEST : link->attr.self_test;
	char own_text[PROTOCOL_NAME_BYTES], their_text[PROTOCOL_NAME_BYTES];

	if (is_self_test || own == theirs || !own || !theirs)
		return true;
	return decline(link, NULL,
		       link->from ? "%s speaks %s; this port expects %s"
				  : "%s speaks %s, not %s; check the port",
		       link->peer, protocol_name(theirs, their_text), protocol_name(own, own_text));
}

/* The self-test service, for which a link may be instead of a listener ------------------------- */

/* Written while there are no links. */
static struct plx_link_attr self_test; /* without events: no service */
static bool self_test_remote;          /* also for other hosts */

void plx_fabric_set_self_test(const struct plx_link_attr *attr, bool remote)
{
	self_test = attr ? *attr : (struct plx_link_attr){0};
	self_test_remote = remote;
}

static bool is_offered(const struct plx_link *link)
{
	return self_test.events && (self_test_remote || plx_link_is_same_host(link));
}

static bool self_test_agree(struct plx_link *link)
{
	bool peer_says_so = link->peer_features & FEATURE_SELF_TEST;

	if (link->from && peer_says_so && !is_offered(link))
		return decline(link, NULL, "%s wants the self-test service, which is off here%s",
			       link->peer, self_test.events ? " for other hosts" : "");
	if (link->from && peer_says_so) {
		link_set_events(link, self_test.events);
		link->user = self_test.user;
		link->attr.hello_length = self_test.hello_length;
		memcpy(link->attr.hello, self_test.hello, sizeof(link->attr.hello));
	}
	if (link->from || !link->attr.self_test || peer_says_so)
		return true;
	return decline(
		link, NULL,
		plx_link_is_same_host(link)
			? "the process at %s has no self-test service: it was started with "
			  "--self-test off, or is older than that service"
			: "the process at %s offers its self-test service to its own host alone, "
			  "if at all; start it with --self-test RATE to offer it to others",
		link->peer);
}

/* HELLO and REFUSE ----------------------------------------------------------------------------- */

/* Write the payload of this side's HELLO or REFUSE. Return: its length. */
uint32_t handshake_write(const struct plx_link *link, uint8_t *out)
{
	bool self_test_bit = link->from ? is_offered(link) : link->attr.self_test;
	struct frame_hello hello = {
		.version_min = WIRE_VERSION_MIN,
		.version_max = WIRE_VERSION_MAX,
		.features = (link->direct ? FEATURE_DIRECT : 0) |
			    (self_test_bit ? FEATURE_SELF_TEST : 0) |
			    (uint32_t)link->attr.protocol << FEATURE_PROTOCOL_SHIFT,
		.rx_buf_bytes = link_frame_bytes(link),
		.rx_buf_count = link->rx_buf_count,
		.message_max = link->message_max,
		.data_length = link->attr.hello_length,
		.data = link->attr.hello,
	};

	if (link->refusal) {
		size_t length = strnlen(link->refusal, REFUSE_TEXT_MAX);

		memcpy(out, link->refusal, length);
		return (uint32_t)length;
	}
	liveness_offer(link, &hello);
	return hello_write(out, &hello);
}

void handshake_on_hello(struct plx_link *link, const uint8_t *payload, uint32_t length)
{
	struct frame_hello hello;
	const char *wrong = hello_read(payload, length, &hello);

	if (wrong) {
		close_now(link, PLX_LINK_HELLO, "%s sent a bad HELLO: %s", link->peer, wrong);
		return;
	}
	if (link->hello_received) {
		close_now(link, PLX_LINK_PROTOCOL, "a second HELLO");
		return;
	}
	link->hello_received = true;
	link->tx_window = link->tx_frames_granted;
	link->peer_frame_max = (uint32_t)lesser(hello.rx_buf_bytes, link->frame_max) -
			       FRAME_HEADER_BYTES;
	link->peer_message_max = lesser(hello.message_max, LINK_MESSAGE_MAX_LIMIT);
	liveness_agree(link, &hello);
	if (link->direct)
		link->direct->agreed = hello.features & FEATURE_DIRECT;
	link->peer_features = hello.features;
	link->peer_hello_length = hello.data_length;
	if (hello.data_length)
		memcpy(link->peer_hello, hello.data, hello.data_length);
	handshake_try_open(link);
}

void handshake_on_refuse(struct plx_link *link, const uint8_t *payload, uint32_t length)
{
	char text[REFUSE_TEXT_MAX + 1], printable[REFUSE_TEXT_MAX + 1];

	memcpy(text, payload, length);
	text[length] = '\0';
	close_now(link, PLX_LINK_HELLO, "%s refused the link: %s", link->peer,
		  plx_printable(text, printable, sizeof(printable)));
}

/* Opening -------------------------------------------------------------------------------------- */

/* Both sides have sent HELLO. */
static void opened(struct plx_link *link)
{
	if (link->state != LINK_HELLO)
		return;
	plx_timer_stop(&link->timer);
	link->state = LINK_OPEN;
	tx_set_inline_end(link);
	receive_set_whole_end(link);
	link->close_due = true;
	if (link->events->on_credit)
		link->want |= WANT_GRANTS;
	liveness_join(link);
	if (link->from) {
		admission_opened(link->ticket);
		counter_add_shared(&link->from->opened, 1);
	}
	log_info("lcore %u: link with %s over %s is open", link->home->id, link->peer,
		 link->set->label);
	if (link->events->on_open)
		link->events->on_open(link, link->user);
}

static bool liveness_allowed(struct plx_link *link)
{
	const char *refusal = liveness_refusal(link);

	return !refusal || decline(link, refusal, "%s was refused with a heartbeat of %u ms: %s",
				   link->peer, link->live.heartbeat_ms, refusal);
}

/* Return: whether the link continues. */
static bool check_hello(struct plx_link *link)
{
	const char *wrong = NULL;

	if (!protocol_agree(link) || !self_test_agree(link) || !liveness_allowed(link))
		return false;
	if (link->events->on_hello)
		wrong = link->events->on_hello(link, link->user);
	return !wrong || decline(link, wrong, "%s was refused: %s", link->peer, wrong);
}

/* Open once the peer's HELLO has arrived and ours has left: no message may overtake it. */
void handshake_try_open(struct plx_link *link)
{
	if (!link->connected || !link->hello_received)
		return;
	if (!link->hello_checked) {
		link->hello_checked = true;
		if (!check_hello(link))
			return;
		if (link->from)
			control_send(link, WANT_HELLO);
	}
	if (!(link->want & WANT_HELLO))
		opened(link);
}

/* FI_CONNECTED: the connector sends HELLO; the acceptor answers, knowing the peer's requirements.
 * Over iWARP the acceptor could not even send first (RFC 5044, 7.1). */
void handshake_connected(struct plx_link *link)
{
	if (link->state != LINK_CONNECTING)
		return;
	link->connected = true;
	free(link->plan);
	link->plan = NULL;
	link->set->connecting--;
	link->state = LINK_HELLO;
	plx_timer_start(&link->timer, link->attr.hello_timeout_ns);
	if (!link->from)
		control_send(link, WANT_HELLO);
	handshake_try_open(link);
}
