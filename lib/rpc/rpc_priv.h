/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by clients and services:
 *
 *   rpc_wire.h   wire format of requests and replies; rpc_wire.c, also names of statuses
 *   tx.c         sending on a link: records written in one turn share a message
 *   slab.c       objects that are reused
 *   client/      rpc_client.h
 *   service/     rpc_service.h */
#ifndef RPC_PRIV_H
#define RPC_PRIV_H

#include "fabric_internal.h"
#include "lcore_internal.h"
#include "owner.h"
#include "plx_rpc.h"
#include "rpc_wire.h"

#include <stdalign.h>
#include <sys/queue.h>

/* Receive buffers per link: what one lcore writes while the other is away for a few us. */
#define RPC_RX_BUFS 32

extern struct plx_log_component *const rpc_log;

/* Objects of one size, allocated many at a time and only freed together. The first bytes of unused
 * ones, and of slabs, point to the next. */
struct rpc_slabs {
	void *unused, *all;
};

/* New objects are zero except for those bytes. Thread: an lcore. Return: NULL: no memory. */
void *rpc_slab_take(struct rpc_slabs *slabs, size_t object_bytes);
void rpc_slab_free(struct rpc_slabs *slabs);

static inline void rpc_slab_put(struct rpc_slabs *slabs, void *object)
{
	*(void **)object = slabs->unused;
	slabs->unused = object;
}

struct rpc_tx {
	struct plx_link *link; /* NULL: ended */
	struct plx_task flush;
	uint32_t bytes;                    /* written in the batch */
	uint32_t batch_max;                /* RPC_BATCH_BYTES, or less if the peer accepts less */
	STAILQ_HEAD(, rpc_queued) waiting; /* whole messages, sent before the batch */
	uint64_t waiting_bytes;            /* of `waiting` */
	uint64_t messages;                 /* sent, also on earlier links */
	alignas(RPC_ALIGN) uint8_t batch[RPC_BATCH_BYTES];
};

/* Fill in attr for a link that receives records with payloads of up to payload_max. greeting:
 * without versions. */
void rpc_describe_link(struct plx_link_attr *attr, const struct plx_link_events *events,
		       uint64_t payload_max, struct rpc_greeting greeting);
/* Read the greeting of the peer's HELLO. Return: NULL; or the error as text. */
const char *rpc_peer_greeting(const struct plx_link *link, enum rpc_role role,
			      struct rpc_greeting *out);
/* tx: zeroed, or used for a link before. */
void rpc_tx_init(struct rpc_tx *tx, struct plx_link *link);
void rpc_tx_fini(struct rpc_tx *tx); /* also of a zeroed one */

/* Add a record and return where to write its payload; record and payload must fit into batch_max.
 * Return: NULL: no memory, or the link has ended. */
uint8_t *rpc_tx_reserve(struct rpc_tx *tx, const struct rpc_header *header);
/* Write the header of the last reserved record, whose payload may be shorter now. */
void rpc_tx_rewrite(struct rpc_tx *tx, uint8_t *payload, const struct rpc_header *header);
/* Drop the last reserved record. */
void rpc_tx_discard(struct rpc_tx *tx, const uint8_t *payload);
/* Write a record of any length. Return: 0; -ENOMEM. */
int rpc_tx_put(struct rpc_tx *tx, const struct rpc_header *header, const void *payload);
/* Send the batch. Return: whether it is now empty. */
bool rpc_tx_flush(struct rpc_tx *tx);
/* The link has room again. */
void rpc_tx_writable(struct rpc_tx *tx);

/* The longest payload on this link for a peer that accepts accepted_max. */
static inline uint64_t rpc_payload_max(const struct plx_link *link, uint64_t accepted_max)
{
	uint64_t longest = plx_link_message_max(link);

	longest = longest > RPC_RECORD_BYTES ? longest - RPC_RECORD_BYTES : 0;
	if (longest > PLX_RPC_PAYLOAD_MAX)
		longest = PLX_RPC_PAYLOAD_MAX;
	return accepted_max < longest ? accepted_max : longest;
}

/* Return whether more is written than the link takes. */
static inline bool rpc_tx_is_full(const struct rpc_tx *tx)
{
	return !STAILQ_EMPTY(&tx->waiting);
}

#endif
