/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are not messages: HELLO, CREDIT, FIN, REVOKE and their answers, HEARTBEAT.
 * They need no credit; the peer reserves LINK_RX_CONTROL receives for them. */
#include "tx.h"

/* Return: the payload's length. */
static uint32_t write_payload(const struct plx_link *link, uint8_t type, uint8_t *out)
{
	switch (type) {
	case FRAME_HELLO:
		return handshake_write(link, HELLO_REFUSED, out);
	case FRAME_REVOKE:
	case FRAME_REVOKED:
		put64(out, type == FRAME_REVOKE ? link->direct->question : link->direct->answer);
		return FRAME_REVOKE_BYTES;
	case FRAME_HEARTBEAT:
		memset(out, 0, FRAME_HEARTBEAT_BYTES);
		return FRAME_HEARTBEAT_BYTES;
	default:
		return 0;
	}
}

static int send_control_frame(struct plx_link *link, uint8_t type, uint8_t flags)
{
	uint8_t frame[FRAME_HEADER_BYTES + HELLO_BYTES_MAX];
	uint32_t length = write_payload(link, type, frame + FRAME_HEADER_BYTES);

	tx_write_header(link, frame, type, flags, length);

	int rc = tx_send_small(link, frame, FRAME_HEADER_BYTES + length, type == FRAME_FIN_ACK);

	if (rc == 0) {
		tx_header_sent(link);
		link->rx_when_control = link->stats.frames_received;
	}
	return rc;
}

/* With some providers a frame that finds no receive ends the connection. There the peer reserves
 * one for each control frame that it may not have read yet. HELLO is done before others are sent.
 * That leaves FIN, its acknowledgement, REVOKE, its acknowledgement; two CREDITs, as the second one
 * takes the credit that the peer knew of when the first one left; and one more CREDIT or HEARTBEAT,
 * as none follows until a frame of the peer arrives. Waiting is safe: the
 * peer has not used that credit yet, and its next frame ends the wait. */
bool control_can_wait(const struct plx_link *link)
{
	return link->is_iwarp && link->rx_when_control == link->stats.frames_received;
}

/* Send the control frames that are due, and those of `want`, in the order that the peer needs. The
 * loop sends those that find no room. */
void control_send(struct plx_link *link, uint32_t want)
{
	static const uint8_t order[] = {FRAME_HELLO,   FRAME_REVOKED, FRAME_REVOKE,
					FRAME_FIN_ACK, FRAME_FIN,     FRAME_CREDIT};

	link->want |= want;
	for (size_t i = 0; i < PLX_ARRAY_LEN(order); i++) {
		uint8_t type = order[i];
		bool ack = type == FRAME_FIN && link->peer_fin;

		if (!(link->want & 1u << type))
			continue;
		if (type == FRAME_CREDIT && control_can_wait(link) &&
		    link->rx_frames_advertised != link->rx_frames) {
			link->want &= ~WANT_CREDIT; /* until a message uses some */
			continue;
		}
		if (send_control_frame(link, type, ack ? FRAME_FLAG_ACK : 0) != 0) {
			link_schedule(link, 0);
			return;
		}
		link->want &= ~(1u << type);
		if (type == FRAME_REVOKE)
			region_asked(link);
		link->fin_sent |= type == FRAME_FIN;
		link->fin_carried_ack |= ack;
		link->stats.credit_frames += type == FRAME_CREDIT;
	}
}

/* Return: 0; -EAGAIN, or the link has ended. */
int control_send_heartbeat(struct plx_link *link)
{
	int rc = control_can_wait(link) ? -EAGAIN : send_control_frame(link, FRAME_HEARTBEAT, 0);

	link->stats.heartbeats_sent += rc == 0;
	return rc;
}
