/* SPDX-License-Identifier: BSD-3-Clause */
/* How a link opens: both HELLOs, their checks, and refusals.
 *
 * HELLO's opening is private data of fi_connect and fi_accept. Over drivers with long_private_data
 * the rest is too: the acceptor checks all of it before it accepts, and both sides open once they
 * are connected. Otherwise the rest is a frame: the connector's comes first, and over iWARP nothing
 * may come before it (RFC 5044, 7.1). */
#include "base_internal.h"
#include "fabric_link.h"
#include "fabric_listen.h"
#include "tx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROTOCOL_NAME_BYTES 32

/* Refuse the link because of the peer's HELLO. refusal: constant text for the peer; NULL: the peer
 * finds the reason in this side's HELLO. An acceptor that is not connected yet rejects the request.
 * Otherwise the link ends when the peer closes the connection, or after LINGER_NS, so that the peer
 * receives the reason. Return: false. */
PLX_PRINTF(3, 4)
static bool decline(struct plx_link *link, const char *refusal, const char *format, ...)
{
	va_list args;

	link->reason = PLX_LINK_HELLO;
	va_start(args, format);
	vsnprintf(link->text, sizeof(link->text), format, args);
	va_end(args);
	link->refusal = refusal;
	if (link->connector && !refusal) { /* its HELLO has left: the peer knows */
		close_begin_reap(link);
	} else if (link->state == LINK_HELLO) {
		link_go(link, LINK_REFUSING);
		plx_timer_start(&link->timer, LINGER_NS);
		control_send(link, WANT_HELLO);
	}
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
	uint8_t own = link->attr.protocol, theirs = (uint8_t)link->hello.protocol;
	bool is_self_test = link->connector ? link->attr.self_test
					    : link->hello.features & FEATURE_SELF_TEST;
	char own_text[PROTOCOL_NAME_BYTES], their_text[PROTOCOL_NAME_BYTES];

	if (is_self_test || own == theirs || !own || !theirs)
		return true;
	return decline(link, NULL,
		       link->connector ? "%s speaks %s, not %s; check the port"
				       : "%s speaks %s; this port expects %s",
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
	bool peer_says_so = link->hello.features & FEATURE_SELF_TEST;

	if (!link->connector && peer_says_so && !is_offered(link))
		return decline(link, NULL, "%s wants the self-test service, which is off here%s",
			       link->peer, self_test.events ? " for other hosts" : "");
	if (!link->connector && peer_says_so) {
		link_set_events(link, self_test.events);
		link->user = self_test.user;
		link->attr.hello_length = self_test.hello_length;
		memcpy(link->attr.hello, self_test.hello, sizeof(link->attr.hello));
	}
	if (!link->connector || !link->attr.self_test || peer_says_so)
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

/* HELLO and refusals --------------------------------------------------------------------------- */

/* libfabric's verbs refuses private data of more than 55 bytes. */
static size_t refusal_max(const struct plx_link *link)
{
	bool is_private = link->state == LINK_CONNECTING;

	return is_private && !link->driver->long_private_data ? REFUSE_SHORT_MAX : REFUSE_TEXT_MAX;
}

static uint8_t own_program[1 + HELLO_PROGRAM_MAX];
static pid_t own_pid;

void handshake_init(void)
{
	own_program[0] = (uint8_t)strnlen(program_invocation_short_name, HELLO_PROGRAM_MAX);
	memcpy(own_program + 1, program_invocation_short_name, own_program[0]);
	own_pid = getpid();
}

/* A listener names itself only to a peer that it accepts. */
static void introduce(const struct plx_link *link, struct frame_hello *hello)
{
	if (!link->connector && link->reason == PLX_LINK_HELLO) /* see decline */
		return;
	memcpy(hello->program, own_program, sizeof(hello->program));
	hello->pid = (uint64_t)own_pid;
}

/* This side's HELLO, or why it refuses the peer's. */
static struct frame_hello own_hello(const struct plx_link *link)
{
	bool wanted = link->hello.features & FEATURE_SELF_TEST;
	bool self_test_bit = link->connector ? link->attr.self_test : wanted && is_offered(link);
	struct frame_hello hello = {
		.magic = HELLO_MAGIC,
		.version_min = WIRE_VERSION,
		.version_max = WIRE_VERSION,
	};

	if (link->refusal) {
		hello.refused[0] = (uint8_t)strnlen(link->refusal, refusal_max(link));
		memcpy(hello.refused + 1, link->refusal, hello.refused[0]);
		return hello;
	}
	hello.features = (link->direct ? FEATURE_DIRECT : 0) |
			 (self_test_bit ? FEATURE_SELF_TEST : 0);
	hello.protocol = link->attr.protocol;
	hello.rx_buf_bytes = link_frame_bytes(link);
	hello.rx_buf_count = link->rx_buf_count;
	hello.message_max = link->message_max;
	hello.data[0] = link->attr.hello_length;
	memcpy(hello.data + 1, link->attr.hello, link->attr.hello_length);
	liveness_offer(link, &hello);
	introduce(link, &hello);
	return hello;
}

bool handshake_is_private(const struct plx_link *link)
{
	return link->driver->long_private_data && (link->connector || hello_is_whole(&link->hello));
}

uint32_t handshake_write(const struct plx_link *link, uint8_t first, uint8_t *out)
{
	struct frame_hello hello = own_hello(link);
	bool whole = first || link->refusal || handshake_is_private(link);

	return hello_write(out, &hello, first, whole ? HELLO_TYPES : HELLO_REFUSED);
}

/* Return: whether the peer refuses the link. */
static bool is_refused(struct plx_link *link)
{
	const uint8_t *refused = link->hello.refused;
	char text[REFUSE_TEXT_MAX + 1] = "", printable[REFUSE_TEXT_MAX + 1];

	if (!refused[0] || link->hello.magic != HELLO_MAGIC)
		return false;
	memcpy(text, refused + 1, refused[0]);
	return !close_now(link, PLX_LINK_HELLO, "%s refused the link: %s", link->peer,
			  plx_printable(text, printable, sizeof(printable)));
}

bool handshake_rejected(struct plx_link *link, const uint8_t *in, size_t length)
{
	const char *wrong;

	link->busy_ns = busy_read(in, length);
	if (link->busy_ns)
		return !close_now(link, PLX_LINK_REFUSED, "%s is busy: come again in %llu ms",
				  link->peer, MS(link->busy_ns));
	wrong = hello_read(in, length, true, &link->hello);
	return is_refused(link) || (!wrong && (!protocol_agree(link) || !self_test_agree(link)));
}

/* If a C++ callback has thrown, the link ends when its time is up, or the user closes it. */
static void asked_user(struct plx_link **link)
{
	(*link)->in_hello = (*link)->ended_in_hello = false;
}

/* Return: why the user refuses the link, or has ended it; NULL: neither. */
static const char *ask_user(struct plx_link *link)
{
	struct plx_link *asking PLX_CLEANUP(asked_user) = link;
	const char *wrong;

	link->in_hello = true;
	wrong = link->events->on_hello(link, link->user);
	if (!wrong && link->ended_in_hello)
		wrong = "the program closed it";
	return wrong;
}

/* The peer's HELLO is whole. Return: whether the link continues. */
static bool check_hello(struct plx_link *link)
{
	const char *wrong;

	link->peer_message_max = lesser(link->hello.message_max, LINK_MESSAGE_MAX_LIMIT);
	liveness_agree(link, &link->hello);
	if (!protocol_agree(link) || !self_test_agree(link))
		return false;
	wrong = liveness_refusal(link);
	if (wrong)
		return decline(link, wrong, "%s was refused with a heartbeat of %u ms: %s",
			       link->peer, link->live.heartbeat_ms, wrong);
	if (link->events->on_hello)
		wrong = ask_user(link);
	return !wrong || decline(link, wrong, "%s was refused: %s", link->peer, wrong);
}

bool handshake_hear(struct plx_link *link, const uint8_t *in, size_t length, bool whole)
{
	const char *wrong = hello_read(in, length, whole, &link->hello);

	if (link->state == LINK_HELLO && is_refused(link))
		return false;
	if (wrong)
		return decline(link, wrong, "%s sent a bad HELLO: %s", link->peer, wrong);
	return !hello_is_whole(&link->hello) || check_hello(link);
}

/* Opening -------------------------------------------------------------------------------------- */

/* The peer chooses its name: any bytes. */
static void note_peer(struct plx_link *link)
{
	const struct plx_fabric_driver *driver = link->driver;
	const uint8_t *program = link->hello.program;
	char name[HELLO_PROGRAM_MAX + 1] = "";

	memcpy(name, program + 1, program[0]);
	plx_printable(name, link->peer_program, sizeof(link->peer_program));
	link->peer_pid = driver->peer_pid ? driver->peer_pid(link->ep) : (pid_t)link->hello.pid;
}

/* Why the link is not over shared memory, although both sides are on this host: a listener knows
 * what it offers. */
static void note_choice(struct plx_link *link)
{
	if (link->connector || link->driver->same_host || !plx_link_is_same_host(link))
		return;
	link->choice = link->from->offers_same_host
			     ? "the peer is on this host and chose it, although shm is offered"
			     : "the peer is on this host, but shm is not offered here";
}

static void opened(struct plx_link *link)
{
	const struct frame_hello *hello = &link->hello;
	char peer[PLX_PEER_BYTES];

	plx_timer_stop(&link->timer);
	link->tx_window = link->tx_frames_granted = (uint32_t)hello->rx_buf_count;
	link->rx_frames_advertised = link->rx_frames_granted;
	link->peer_frame_max = (uint32_t)lesser(hello->rx_buf_bytes, link->frame_max) -
			       FRAME_HEADER_BYTES;
	if (link->direct)
		link->direct->agreed = hello->features & FEATURE_DIRECT;
	link_go(link, LINK_OPEN);
	link->close_due = true;
	if (link->events->on_credit)
		link->want |= WANT_GRANTS;
	arrival_begin(link);
	liveness_join(link);
	if (link->from) {
		admission_opened(link->ticket);
		counter_add_shared(&link->from->opened, 1);
	}
	note_peer(link);
	note_choice(link);
	log_info("lcore %u: link with %s over %s is open: %s", link->home->id,
		 plx_link_peer_format(link, peer), link->set->label, link->choice);
	if (link->events->on_open)
		link->events->on_open(link, link->user);
}

/* Open once the peer's HELLO was checked and ours has left: no message may overtake it. */
void handshake_try_open(struct plx_link *link)
{
	if (link->state == LINK_HELLO && hello_is_whole(&link->hello) && !(link->want & WANT_HELLO))
		opened(link);
}

void handshake_on_hello(struct plx_link *link, const uint8_t *payload, uint32_t length)
{
	if (link->state != LINK_HELLO) { /* only a refusal may follow */
		link->hello.newest = 0;
		hello_read(payload, length, true, &link->hello);
		if (!is_refused(link))
			close_now(link, PLX_LINK_PROTOCOL, "a second HELLO");
		return;
	}
	if (!handshake_hear(link, payload, length, true))
		return;
	if (!link->connector)
		control_send(link, WANT_HELLO);
	handshake_try_open(link);
}

/* A C++ on_hello or on_open has thrown: frames may have come. */
static void receive_later(struct plx_link **opening)
{
	if (*opening)
		link_schedule(*opening, WANT_EARLY);
}

void handshake_connected(struct plx_link *link, const uint8_t *in, size_t length)
{
	struct plx_link *opening PLX_CLEANUP(receive_later) = NULL;
	bool whole = handshake_is_private(link);

	if (link->state != LINK_CONNECTING)
		return;
	free(link->plan);
	link->plan = NULL;
	link_go(link, LINK_HELLO);
	plx_timer_start(&link->timer, link->attr.hello_timeout_ns);
	opening = link;
	if (link->connector && handshake_hear(link, in, length, whole) && !whole)
		control_send(link, WANT_HELLO);
	handshake_try_open(link);
	opening = NULL;
	receive_early(link);
}
