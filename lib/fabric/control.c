/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are not messages: HELLO, CREDIT, FIN and its answer, HEARTBEAT. They need no credit;
 * the peer keeps LINK_RX_CONTROL receives for them. */
#include "fabric_priv.h"

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
static int send_small(struct plx_link *link, const uint8_t *frame, uint32_t length, bool signalled)
{
	int rc = signalled ? -EMSGSIZE : tx_inject(link, frame, length);

	if (plx_likely(rc != -EMSGSIZE))
		return rc;
	if (length <= sizeof(((struct plx_op *)0)->header))
		return send_from_op(link, frame, length);

	struct plx_buf *buf = plx_buf_get(link->set->home->tx_pool);
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

static int send_control_frame(struct plx_link *link, uint8_t type, uint8_t flags)
{
	uint8_t frame[FRAME_HEADER_BYTES + HELLO_BYTES];
	uint32_t length = type == FRAME_HELLO ? HELLO_BYTES : 0;

	if (type == FRAME_HELLO) {
		struct frame_hello hello = {
			.version_min = WIRE_VERSION_MIN,
			.version_max = WIRE_VERSION_MAX,
			.rx_buf_bytes = link->rx_buf_bytes,
			.rx_buf_count = link->rx_buf_count,
			.message_max = link->message_max,
		};

		liveness_offer(link, &hello);
		hello_write(frame + FRAME_HEADER_BYTES, &hello);
	}
	tx_write_header(link, frame, type, flags, length);

	int rc = send_small(link, frame, FRAME_HEADER_BYTES + length, type == FRAME_FIN_ACK);

	if (rc == 0)
		tx_header_sent(link);
	return rc;
}

/* Send the control frames that are due, in an order that makes sense to the peer. Return: 0;
 * -EAGAIN where some are left for later. */
int send_control(struct plx_link *link)
{
	static const struct {
		uint16_t want;
		uint8_t type;
	} order[] = {
		{WANT_HELLO, FRAME_HELLO},
		{WANT_FIN_ACK, FRAME_FIN_ACK},
		{WANT_FIN, FRAME_FIN},
		{WANT_CREDIT, FRAME_CREDIT},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(order); i++) {
		bool is_fin = order[i].type == FRAME_FIN;

		if (!(link->want & order[i].want))
			continue;

		int rc = send_control_frame(link, order[i].type,
					    is_fin && link->peer_fin ? FRAME_FLAG_ACK : 0);
		if (rc)
			return rc;
		link->want &= (uint16_t)~order[i].want;
		if (is_fin) {
			link->fin_sent = true;
			link->fin_carried_ack = link->peer_fin;
		}
		link->stats.credit_frames += order[i].type == FRAME_CREDIT;
	}
	return 0;
}

/* Return: 0; -EAGAIN, or the link has ended. */
int send_heartbeat(struct plx_link *link)
{
	int rc = send_control_frame(link, FRAME_HEARTBEAT, 0);

	link->stats.heartbeats_sent += rc == 0;
	return rc;
}
