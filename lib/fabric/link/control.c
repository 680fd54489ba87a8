/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are not messages: HELLO, REFUSE, CREDIT, FIN, REVOKE and their answers, HEARTBEAT.
 * They need no credit; the peer keeps LINK_RX_CONTROL receives for them. */
#include "tx.h"

#define PAYLOAD_MAX (HELLO_BYTES_MAX > REFUSE_TEXT_MAX ? HELLO_BYTES_MAX : REFUSE_TEXT_MAX)

/* A frame that is no longer than an operation has room for needs no buffer. Return: 0; -EAGAIN. */
static int send_from_op(struct plx_link *link, const uint8_t *frame, uint32_t length)
{
	struct plx_op *op = tx_take_op(link, 0);

	if (!op)
		return -EAGAIN;
	memcpy(op->header, frame, length);

	void *desc = set_desc(link->set, link->ops_zone);
	int rc = tx_submit(link, op, &(struct iovec){op->header, length}, &desc, 1);

	if (rc)
		tx_give_op(link, op);
	return rc;
}

/* Send a frame of header and payload that is already put together: injected, or by reference;
 * signalled: so that the link knows when it has left. Return: 0; -EAGAIN. */
int send_small(struct plx_link *link, const uint8_t *frame, uint32_t length, bool signalled)
{
	int rc;

	if (!signalled && tx_may_inject(link, length))
		return tx_inject(link, frame, length);
	if (length <= sizeof(((struct plx_op *)0)->header))
		return send_from_op(link, frame, length);

	struct plx_buf *buf = plx_buf_get(link->home->tx_pool);
	struct plx_op *op = buf ? tx_take_op(link, 0) : NULL;

	if (!op) {
		plx_buf_unref(buf);
		return -EAGAIN;
	}
	memcpy(plx_buf_append(buf, length), frame, length);
	op->buf = buf;

	void *desc = set_desc(link->set, buf->zone_index);

	rc = tx_submit(link, op, &(struct iovec){buf->data, length}, &desc, 1);
	if (rc) {
		plx_buf_unref(buf);
		tx_give_op(link, op);
	}
	return rc;
}

/* Return: its length. */
static uint32_t write_hello(const struct plx_link *link, uint8_t *out)
{
	struct frame_hello hello = {
		.version_min = WIRE_VERSION_MIN,
		.version_max = WIRE_VERSION_MAX,
		.features = (link->direct ? FEATURE_DIRECT : 0) | self_test_feature(link) |
			    protocol_feature(link),
		.rx_buf_bytes = link_frame_bytes(link),
		.rx_buf_count = link->rx_buf_count,
		.message_max = link->message_max,
		.data_length = link->attr.hello_length,
		.data = link->attr.hello,
	};

	liveness_offer(link, &hello);
	return hello_write(out, &hello);
}

/* Return: its length. */
static uint32_t write_refusal(const struct plx_link *link, uint8_t *out)
{
	size_t length = strnlen(link->refusal, REFUSE_TEXT_MAX);

	memcpy(out, link->refusal, length);
	return (uint32_t)length;
}

/* Return: its length. */
static uint32_t write_payload(const struct plx_link *link, uint8_t type, uint8_t *out)
{
	switch (type) {
	case FRAME_HELLO:
		return write_hello(link, out);
	case FRAME_REFUSE:
		return write_refusal(link, out);
	case FRAME_REVOKE:
		frame_revoke_write(out, link->direct->question);
		return FRAME_REVOKE_BYTES;
	case FRAME_REVOKED:
		frame_revoke_write(out, link->direct->answer);
		return FRAME_REVOKE_BYTES;
	default:
		return 0;
	}
}

static int send_control_frame(struct plx_link *link, uint8_t type, uint8_t flags)
{
	uint8_t frame[FRAME_HEADER_BYTES + PAYLOAD_MAX];
	uint32_t length = write_payload(link, type, frame + FRAME_HEADER_BYTES);

	tx_write_header(link, frame, type, flags, length);

	int rc = send_small(link, frame, FRAME_HEADER_BYTES + length, type == FRAME_FIN_ACK);

	if (rc == 0) {
		tx_header_sent(link);
		link->rx_when_control = link->stats.frames_received;
	}
	return rc;
}

/* Where a frame that finds no receive ends the connection, the peer keeps one for each control
 * frame that it may not have read yet: HELLO has gone before others come; FIN, its answer, REVOKE
 * and its answer; two CREDITs, as the second one takes all that the peer knew of when the first one
 * left; and one more of CREDIT or HEARTBEAT, as nothing else follows one of those until a frame of
 * the peer comes. The peer has not used what it was told of then, or is told now that it may go on.
 */
bool control_can_wait(const struct plx_link *link)
{
	return link->needs_receives && link->rx_when_control == link->stats.frames_received;
}

static bool credit_can_wait(const struct plx_link *link)
{
	return control_can_wait(link) && link->rx_frames_told != link->rx_frames;
}

/* Send the control frames that are due, in an order that makes sense to the peer. Return: 0;
 * -EAGAIN where some are left for later. */
int send_control(struct plx_link *link)
{
	const struct {
		uint32_t want;
		uint8_t type;
	} order[] = {
		{WANT_HELLO, link->refusal ? FRAME_REFUSE : FRAME_HELLO},
		{WANT_REVOKED, FRAME_REVOKED},
		{WANT_REVOKE, FRAME_REVOKE},
		{WANT_FIN_ACK, FRAME_FIN_ACK},
		{WANT_FIN, FRAME_FIN},
		{WANT_CREDIT, FRAME_CREDIT},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(order); i++) {
		bool is_fin = order[i].type == FRAME_FIN;

		if (!(link->want & order[i].want))
			continue;
		if (order[i].type == FRAME_CREDIT && credit_can_wait(link)) {
			link->want &= ~WANT_CREDIT; /* until a message takes some */
			continue;
		}

		int rc = send_control_frame(link, order[i].type,
					    is_fin && link->peer_fin ? FRAME_FLAG_ACK : 0);
		if (rc)
			return rc;
		link->want &= ~order[i].want;
		if (order[i].type == FRAME_REVOKE)
			region_asked(link);
		if (is_fin) {
			link->fin_sent = true;
			link->want &= ~WANT_MORE_TIME;
			link->fin_carried_ack = link->peer_fin;
		}
		link->stats.credit_frames += order[i].type == FRAME_CREDIT;
	}
	return 0;
}

/* Return: 0; -EAGAIN, or the link has ended. */
int send_heartbeat(struct plx_link *link)
{
	int rc = control_can_wait(link) ? -EAGAIN : send_control_frame(link, FRAME_HEARTBEAT, 0);

	link->stats.heartbeats_sent += rc == 0;
	return rc;
}
