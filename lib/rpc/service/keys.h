/* SPDX-License-Identifier: BSD-3-Clause */
/* What a service remembers of requests that have a key, so that none of them runs twice. Shared by
 * its lcores, as a client that connects again may come to another one: the one thing in this
 * library that has locks, each for the clients of one shard, and only requests with keys take it.
 */
#ifndef PLX_RPC_KEYS_H
#define PLX_RPC_KEYS_H

#include "plx_rpc.h"

/* Longer replies have memory of their own: an entry is two lines. */
#define KEY_REPLY_BYTES 48

/* What is longer is not remembered: it is copied under a lock. */
#define KEY_REPLY_MAX (UINT32_C(64) << 10)

struct rpc_keys;
struct key_entry;

/* A key is its client's: that of another one is another one. */
struct rpc_key {
	uint64_t client, number;
};

enum key_state {
	KEY_NEW,     /* it is this request that runs */
	KEY_RUNNING, /* its reply is not known yet */
	KEY_DONE,    /* it has run, and this was the reply */
	KEY_OTHER,   /* it was another method's */
	KEY_FULL,    /* no more can be remembered now */
};

struct key_answer {
	enum plx_rpc_status status;
	uint32_t number, handler_ns; /* as on the wire */
	uint32_t length;
	uint8_t *heap; /* malloc'd, of whom it was given to; NULL: the bytes are here */
	uint8_t bytes[KEY_REPLY_BYTES];
};

static inline const uint8_t *key_answer_bytes(const struct key_answer *answer)
{
	return answer->heap ? answer->heap : answer->bytes;
}

/* Return: 0; -ENOMEM. */
int rpc_keys_create(uint64_t secret, uint32_t keys_max, uint64_t bytes_max, uint64_t keep_ns,
		    struct rpc_keys **keys_out);
void rpc_keys_destroy(struct rpc_keys *keys);

/* A request with that key has come. NEW: *entry_out is to be ended by one of the two below. DONE:
 * *answer_out is what it was. FULL: *retry_ns_out is a hint. */
enum key_state rpc_keys_claim(struct rpc_keys *keys, struct rpc_key key, uint32_t method,
			      uint64_t now_ns, struct key_entry **entry_out,
			      struct key_answer *answer_out, uint64_t *retry_ns_out);

/* What became of a key that was RUNNING. Return: that; NEW: it was forgotten. */
enum key_state rpc_keys_lookup(struct rpc_keys *keys, struct rpc_key key,
			       struct key_answer *answer_out);

/* It has run: this is the reply, of `length` bytes in the pieces. Where there is no memory for
 * these, it is remembered as OVERLOADED. */
void rpc_keys_done(struct rpc_keys *keys, struct key_entry *entry, const struct key_answer *answer,
		   const struct iovec *iov, int count, uint64_t now_ns);

/* It has not run, and may be tried again. */
void rpc_keys_forget(struct rpc_keys *keys, struct key_entry *entry);

#endif
