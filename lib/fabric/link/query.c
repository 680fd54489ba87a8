/* SPDX-License-Identifier: BSD-3-Clause */
/* Getters. */
#include "base_internal.h"
#include "fabric_address.h"
#include "tx.h"

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

uint64_t link_copied_max(const struct plx_link *link)
{
	return link->driver->send_copy ? link->peer_frame_max : 0;
}

uint64_t plx_link_message_max(const struct plx_link *link)
{
	return link->peer_message_max;
}

void plx_link_set_user(struct plx_link *link, void *user)
{
	link->user = user;
}

bool plx_link_is_open(const struct plx_link *link)
{
	return link->state == LINK_OPEN;
}

uint32_t plx_link_credit(const struct plx_link *link)
{
	ASSERT_OWNER(link->home->id);
	return link->state == LINK_OPEN ? tx_frames_left(link) : 0;
}

/* Each unfinished message has at least one frame that is not granted again, except one whose last
 * frames have not left yet. */
uint32_t plx_link_unfinished(const struct plx_link *link)
{
	uint32_t granted = link->peer_fin ? link->tx_fin_frames : link->tx_frames_granted;
	uint32_t out = link->tx_window - (granted - link->tx_frames);

	ASSERT_OWNER(link->home->id);
	if (link->peer_fin_carried_ack)
		return 0;
	if ((int32_t)out < 0) /* the peer grants more than its first window */
		out = 0;
	return out + (link->tx_current.head || link->tx_cut);
}

const struct plx_link_events *link_events(const struct plx_link *link)
{
	return link->events;
}

const uint8_t *plx_link_hello(const struct plx_link *link, uint32_t *length_out)
{
	ASSERT_OWNER(link->home->id);
	*length_out = link->hello.data[0];
	return link->hello.data + 1;
}

enum plx_link_reason plx_link_reason(const struct plx_link *link)
{
	/* A refused link may continue with another candidate until on_close. */
	bool has_ended = link->state >= LINK_LINGER && !(link->plan && link->close_due);

	ASSERT_OWNER(link->home->id);
	return has_ended ? link->reason : PLX_LINK_REASON_NONE;
}

const char *plx_link_peer(const struct plx_link *link)
{
	return link->peer;
}

const char *plx_link_peer_program(const struct plx_link *link)
{
	ASSERT_OWNER(link->home->id);
	return link->peer_program;
}

pid_t plx_link_peer_pid(const struct plx_link *link)
{
	ASSERT_OWNER(link->home->id);
	return link->peer_pid;
}

const char *plx_peer_format(const char *address, const char *program, pid_t pid,
			    char out[PLX_PEER_BYTES])
{
	struct plx_text text = {.out = out, .size = PLX_PEER_BYTES};
	const char *before = " (";

	plx_text_add(&text, "%s", address);
	if (program[0]) {
		plx_text_add(&text, " (%s", program);
		before = ", ";
	}
	if (pid)
		plx_text_add(&text, "%spid %d", before, (int)pid);
	if (pid || program[0])
		plx_text_add(&text, ")");
	return out;
}

const char *plx_link_peer_format(const struct plx_link *link, char out[PLX_PEER_BYTES])
{
	ASSERT_OWNER(link->home->id);
	return plx_peer_format(link->peer, link->peer_program, link->peer_pid, out);
}

const char *plx_link_driver(const struct plx_link *link)
{
	return link->driver->name;
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
	return link->driver->provider;
}

void plx_link_stats_read(const struct plx_link *link, struct plx_link_stats *stats_out)
{
	*stats_out = link->stats;
	stats_out->tx_queued = link->tx_current.head != NULL;
	stats_out->tx_inflight = link->tx_inflight;
	stats_out->rx_posted = link->rx_posted;
	stats_out->rx_kept = link->rx_kept + link->rx_long_kept;
}

const char *plx_link_without_peer(const struct plx_link *link, const char *text)
{
	size_t length = strlen(link->peer);

	ASSERT_OWNER(link->home->id);
	if (strncmp(text, link->peer, length) != 0)
		return text;
	if (strncmp(text + length, ": ", 2) == 0)
		return text + length + 2;
	return text[length] == ' ' ? text + length + 1 : text;
}

int plx_link_peer_sockaddr(const struct plx_link *link, struct sockaddr_storage *peer_out)
{
	ASSERT_OWNER(link->home->id);
	return address_parse(link->peer, peer_out);
}

bool plx_link_is_same_host(const struct plx_link *link)
{
	struct sockaddr_storage own = {0}, peer = {0};
	size_t own_bytes = sizeof(own), peer_bytes = sizeof(peer);

	ASSERT_OWNER(link->home->id);
	if (link->driver->same_host)
		return true;
	if (link->ep_closed || !link->ep || /* inside on_close or on_hello */
	    fi_getname(&link->ep->fid, &own, &own_bytes) != 0 ||
	    fi_getpeer(link->ep, &peer, &peer_bytes) != 0)
		return address_is_here(link->peer);
	return address_is_same_host((struct sockaddr *)&peer, (struct sockaddr *)&own);
}

bool plx_link_is_suspect(const struct plx_link *link)
{
	ASSERT_OWNER(link->home->id);
	return link->presence->suspect;
}

uint64_t plx_link_busy_ns(const struct plx_link *link)
{
	ASSERT_OWNER(link->home->id);
	return link->busy_ns;
}

struct plx_link *plx_link_next(const struct plx_link *link)
{
	struct plx_fabric_lcore *home = fabric_home();
	struct plx_link *next = link ? LIST_NEXT(link, of_home) : NULL;

	if (!link && home)
		next = LIST_FIRST(&home->links);
	while (next && !next->close_due)
		next = LIST_NEXT(next, of_home);
	return next;
}
