/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Direct data placement: memory of one side of a link that the other one writes and reads.
 */
#ifndef PLX_DIRECT_H
#define PLX_DIRECT_H

#include "plx_fabric.h"

PLX_BEGIN_DECLS

/* Memory of one side that the other one writes and reads by itself, on links whose both sides asked
 * for it (`direct`), over tcp and verbs. Nothing can be reached that was not granted: a region,
 * from its first byte to its last, by one peer, until it is taken back or the link ends. What is
 * granted is told to the peer by a message of the program's own. doc/guide/links.md has an example.
 *
 * The bounds and rights of a region are checked on this side, by RDMA hardware or by plx_tcp. An
 * operation beyond them does nothing, and ends the link. On "fi:tcp" libfabric trusts what its peer
 * says of lengths (doc/design/direct-data.md): grant there to peers that are trusted. */

struct plx_region;

#define PLX_REMOTE_READ  0x1u /**< the peer may get */
#define PLX_REMOTE_WRITE 0x2u /**< the peer may put */

/** Memory of the peer that it has granted; good for that link alone. */
struct plx_remote {
	uint64_t address; /**< of its first byte, as the provider counts */
	uint64_t key;
	uint64_t bytes;
	unsigned access; /**< PLX_REMOTE_READ, PLX_REMOTE_WRITE */
};

#define PLX_REMOTE_BYTES 32 /**< of one that is encoded */

/** Grant the peer exactly `bytes` bytes at base. Any memory will do, of zones or not; granting
 * takes a system call and more on verbs, so it is for regions that are used often.
 * access: PLX_REMOTE_READ, PLX_REMOTE_WRITE or both. What is granted for writing has to be writable
 * memory: over tcp this process writes into it, and crashes where it cannot.
 * Ownership: the memory stays the caller's, and has to be there until it is released (see
 * plx_region_revoke) or on_close is called.
 * Thread: owner.
 * Return: 0; -ENOTCONN not open, or closing; -EOPNOTSUPP one side did not ask for it; -EINVAL;
 * -ENOMEM, or the memory cannot be registered. */
int plx_link_grant(struct plx_link *link, void *base, size_t bytes, unsigned access,
		   struct plx_region **region_out);

/** What the peer needs to use it. Thread: owner. */
void plx_region_remote(const struct plx_region *region, struct plx_remote *remote_out);

/** Write it down for a message: PLX_REMOTE_BYTES at out, the same on every host. Thread: any. */
void plx_remote_encode(const struct plx_remote *remote, void *out);

/** Read what a peer has written; size: PLX_REMOTE_BYTES and no more. Return: 0; -EINVAL that is
 * none. Thread: any. */
int plx_remote_decode(const void *in, size_t size, struct plx_remote *remote_out);

/** Nothing of the memory can be reached any more: it may go. Called from the loop, not inside
 * another call into the link. */
typedef void (*plx_region_released_fn)(void *base, size_t bytes, void *arg);

/** Take a grant back. No operation on it begins from here on; one that the peer does begin ends the
 * link, so peers are told before by a message. released (may be NULL) is called once: on tcp,
 * InfiniBand and RoCE in the next turn, and what is under way fails, and ends the link; on iWARP
 * and "fi:tcp", where it goes on, when the peer's library has answered that nothing is any more, or
 * the link has ended, before on_close.
 * Ownership: region is invalid on return. All regions of a link end with it, and are invalid in
 * on_close. Thread: owner. */
void plx_region_revoke(struct plx_region *region, plx_region_released_fn released, void *arg);

/** Longest put and get, in bytes: the provider's limit, at most 16 MiB, so that the heartbeats
 * behind it leave in time. 0: the link has no direct data placement. Valid from on_open on. Thread:
 * owner. */
uint64_t plx_link_direct_max(const struct plx_link *link);

/** Write a buffer, or a chain, into the peer's memory, `offset` bytes from where that begins.
 * Nothing is copied, unless the provider needs other memory or the chain has more than 4 pieces.
 * The peer's program hears nothing of it. Messages that are sent behind it arrive when the data are
 * there. sent (may be NULL) is called as by plx_link_send_buf; status 0 there: the transport has
 * taken it, and the buffer may be used again. A put that the other side refuses may have it, too:
 * the link's end tells.
 * Ownership: the caller's reference moves to the library on success, and stays on error; the bytes
 * must not be changed until `sent`. Thread: owner.
 * Return: 0; -EAGAIN 32 operations are out or a message is partly sent, on_writable follows;
 * -ENOTCONN not open, or closing; -EOPNOTSUPP no direct data placement; -EINVAL to is none; -EACCES
 * not granted for writing; -ERANGE beyond what was granted; -EMSGSIZE see plx_link_direct_max;
 * -ENOMEM. */
int plx_link_put(struct plx_link *link, const struct plx_remote *to, uint64_t offset,
		 struct plx_buf *buf, plx_link_sent_fn sent, void *arg);

/** The same, and the peer's on_put is told of it, with that value. buf may be empty. It takes one
 * frame of credit, as a message does, and counts as one in plx_link_credit and
 * plx_link_unfinished: -EAGAIN also where there is none. */
int plx_link_put_and_tell(struct plx_link *link, const struct plx_remote *to, uint64_t offset,
			  struct plx_buf *buf, uint32_t value, plx_link_sent_fn sent, void *arg);

/** Read bytes of the peer's memory to behind the data of a buffer, which has room for them. done
 * (may be NULL) is called once for each get that was accepted, also when the link dies, and never
 * inside plx_link_get. status 0: the bytes are there, and buf->len counts them; -ETIMEDOUT: the
 * provider may still write them, so the buffer must stay as it is for good; another -errno: the
 * link has ended. The library's reference is dropped after it, as by plx_link_send_buf.
 * It sees what this link has put before it, and does not wait until the peer has received messages
 * that were sent before it. 8 may be under way on a link.
 * plx_link_close waits for them.
 * Ownership: the caller's reference moves to the library on success, and stays on error; the buffer
 * must not be used until `done`. Thread: owner.
 * Return: 0; -EAGAIN 8 are under way or a message is partly sent, on_writable follows; -EINVAL no
 * bytes, no room for them, or from is none; -EACCES not granted for reading; else as plx_link_put.
 */
int plx_link_get(struct plx_link *link, const struct plx_remote *from, uint64_t offset,
		 uint32_t bytes, struct plx_buf *into, plx_link_sent_fn done, void *arg);

PLX_END_DECLS

#endif
