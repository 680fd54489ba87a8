/* SPDX-License-Identifier: BSD-3-Clause */
/* What a service remembers of requests with a key, so that none runs twice. All its lcores share
 * it, because a reconnecting client may get another lcore. It is the only part of this library with
 * locks: one per shard of clients, taken only for requests with keys. */
#ifndef PLX_RPC_KEYS_H
#define PLX_RPC_KEYS_H

#include "plx_rpc.h"

/* Longer replies are allocated separately: an entry is two cache lines. */
#define KEY_REPLY_BYTES 48

/* Longer replies are not remembered, because they are copied under a lock. */
#define KEY_REPLY_MAX (UINT32_C(64) << 10)

struct rpc_keys;
struct key_entry;

/* Keys are per client: equal keys of two clients are different. */
struct rpc_key {
	uint64_t client, number;
};

enum key_state {
	KEY_NEW,     /* first use: run this request */
	KEY_RUNNING, /* its reply is not known yet */
	KEY_DONE,    /* it has run; this is its reply */
	KEY_OTHER,   /* used for another method */
	KEY_FULL,    /* no more keys can be remembered now */
};

struct key_answer {
	enum plx_rpc_status status;
	uint32_t number, handler_ns; /* as on the wire */
	uint32_t length;
	uint8_t *heap; /* malloc'd, freed by the receiver; NULL: use the inline bytes */
	uint8_t bytes[KEY_REPLY_BYTES];
};

static inline const uint8_t *key_answer_bytes(const struct key_answer *answer)
{
	return answer->heap ? answer->heap : answer->bytes;
}

/* Return: NULL: no memory. */
struct rpc_keys *rpc_keys_create(uint64_t secret, const struct plx_rpc_service_attr *attr);
void rpc_keys_destroy(struct rpc_keys *keys);

/* Claim the key of a new request. NEW: pass *entry_out to rpc_keys_done or rpc_keys_forget. DONE:
 * *out is the reply. FULL: *retry_ns_out is a hint. */
enum key_state rpc_keys_claim(struct rpc_keys *keys, struct rpc_key key, uint32_t method,
			      uint64_t now_ns, struct key_entry **entry_out, struct key_answer *out,
			      uint64_t *retry_ns_out);

/* Look up a key that was RUNNING. Return: its state; NEW: it was forgotten. */
enum key_state rpc_keys_lookup(struct rpc_keys *keys, struct rpc_key key, struct key_answer *out);

/* The request has run: this is its reply, of `length` bytes in the pieces. Remembers OVERLOADED if
 * they cannot be allocated. */
void rpc_keys_done(struct rpc_keys *keys, struct key_entry *entry, const struct key_answer *answer,
		   const struct iovec *iov, int count, uint64_t now_ns);
/* It has not run and may be tried again. */
void rpc_keys_forget(struct rpc_keys *keys, struct key_entry *entry);

#endif
