/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Direct data placement: memory of one side of a link that the other one writes and reads.
 */
#ifndef PLX_DIRECT_H
#define PLX_DIRECT_H

#include "plx_fabric.h"

PLX_BEGIN_DECLS

/* One side of a link grants memory; the other side writes (put) and reads (get) it without
 * involving the owner's program. Both sides must ask for it (`direct`); it works over tcp and
 * verbs. Only granted bytes can be reached, by one peer, until the grant is revoked or the link
 * ends. The program sends the description of its grant to the peer in a message. Examples:
 * direct_server.c and direct_client.c in apps/examples.
 *
 * The granting side checks bounds and rights, in RDMA hardware or in plx_tcp. An operation that
 * violates them does nothing and ends the link. */

struct plx_region;

#define PLX_REMOTE_READ  0x1u /**< the peer may get */
#define PLX_REMOTE_WRITE 0x2u /**< the peer may put */

/** Memory that the peer granted; valid on that link only. */
struct plx_remote {
	uint64_t address; /**< of its first byte, in the provider's terms */
	uint64_t key;
	uint64_t bytes;
	unsigned access; /**< PLX_REMOTE_READ, PLX_REMOTE_WRITE */
};

#define PLX_REMOTE_BYTES 32 /**< bytes of an encoded struct plx_remote */

/** Grant the peer exactly `bytes` bytes at base. Any memory works, inside or outside zones. On
 * verbs granting takes at least one system call, so grant regions that are used often.
 * access: PLX_REMOTE_READ, PLX_REMOTE_WRITE or both. Memory granted for writing must be writable:
 * over tcp this process writes to it and crashes otherwise.
 * Ownership: the caller keeps the memory. It must stay mapped until it is released (see
 * plx_region_revoke) or on_close runs.
 * Thread: owner.
 * Return: 0; -ENOTCONN not open, or closing; -EOPNOTSUPP one side did not ask for `direct`;
 * -EINVAL; -ENOMEM, or the memory cannot be registered. */
int plx_link_grant(struct plx_link *link, void *base, size_t bytes, unsigned access,
		   struct plx_region **region_out);

/** Describe a region for the peer. Thread: owner. */
void plx_region_remote(const struct plx_region *region, struct plx_remote *remote_out);

/** Encode a description for a message: PLX_REMOTE_BYTES at out, the same on every host. Thread:
 * any. */
void plx_remote_encode(const struct plx_remote *remote, void *out);

/** Decode a peer's description; size must be PLX_REMOTE_BYTES.
 * Thread: any.
 * Return: 0; -EINVAL malformed. */
int plx_remote_decode(const void *in, size_t size, struct plx_remote *remote_out);

/** The peer can no longer reach the memory: it may be freed. Runs from the loop, not inside
 * another call into the link. */
typedef void (*plx_region_released_fn)(void *base, size_t bytes, void *arg);

/** Revoke a grant. No new operation on it starts; one that the peer starts later ends the link, so
 * agree with the peer by messages first. released (may be NULL) runs once:
 * tcp, InfiniBand, RoCE: in the next turn. Operations in flight fail and end the link.
 * iWARP: operations in flight complete. released runs when the peer's library confirms
 * that, or when the link ends, before on_close.
 * Ownership: region is invalid on return. All regions of a link end with it, and are invalid in
 * on_close.
 * Thread: owner. */
void plx_region_revoke(struct plx_region *region, plx_region_released_fn released, void *arg);

/** Longest put and get in bytes: the provider's limit, at most 16 MiB so that heartbeats queued
 * after it leave in time. 0: no direct data placement. Valid from on_open on.
 * Thread: owner. */
uint64_t plx_link_direct_max(const struct plx_link *link);

/** Write a buffer or chain into the peer's memory, `offset` bytes from its start. The peer gets no
 * event. Messages sent later arrive after the data. Nothing is copied, unless the provider needs
 * other memory or the chain has more than 4 pieces.
 * sent (may be NULL) runs as for plx_link_send_buf. Status 0: the transport took the data, and the
 * buffer may be reused. The peer may still refuse the put, which ends the link.
 * Ownership: on success the caller's reference moves to the library; on error the caller keeps it.
 * Do not change the bytes until `sent`.
 * Thread: owner.
 * Return: 0; -EAGAIN 32 operations are in flight or a message is partly sent, on_writable follows;
 * -ENOTCONN not open, or closing; -EOPNOTSUPP no direct data placement; -EINVAL malformed `to`;
 * -EACCES not granted for writing; -ERANGE beyond the grant; -EMSGSIZE above plx_link_direct_max;
 * -ENOMEM. */
int plx_link_put(struct plx_link *link, const struct plx_remote *to, uint64_t offset,
		 struct plx_buf *buf, plx_link_sent_fn sent, void *arg);

/** plx_link_put that also calls the peer's on_put with value. buf may be empty. It takes one frame
 * of credit and counts as a message in plx_link_credit and plx_link_unfinished. -EAGAIN also: no
 * credit. */
int plx_link_put_and_tell(struct plx_link *link, const struct plx_remote *to, uint64_t offset,
			  struct plx_buf *buf, uint32_t value, plx_link_sent_fn sent, void *arg);

/** Read `bytes` bytes of the peer's memory and append them to `into`. It sees earlier puts of this
 * link. It does not wait for the peer to receive earlier messages. At most 8 are in flight per
 * link; plx_link_close waits for them.
 * done (may be NULL) runs once per accepted get, even if the link fails, and never inside
 * plx_link_get. status 0: buf->len includes the bytes. -ETIMEDOUT: the provider may still write
 * them; never change or free the buffer. Another -errno: the link ended. The library then drops
 * its reference as for plx_link_send_buf.
 * Ownership: on success the caller's reference moves to the library; on error the caller keeps it.
 * Do not use the buffer until `done`.
 * Thread: owner.
 * Return: 0; -EAGAIN 8 are in flight or a message is partly sent, on_writable follows; -EINVAL no
 * bytes, no room, or malformed `from`; -EACCES not granted for reading; else as plx_link_put. */
int plx_link_get(struct plx_link *link, const struct plx_remote *from, uint64_t offset,
		 uint32_t bytes, struct plx_buf *into, plx_link_sent_fn done, void *arg);

PLX_END_DECLS

#endif
