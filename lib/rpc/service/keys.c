/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys are in a hash table by client and number. Completed keys are also in a queue in order of
 * completion; new keys remove expired ones from it. */
#include "rpc_service.h"

#include <pthread.h>
#include <stdlib.h>

#define SHARDS        16
#define FORGET_MAX    4 /* per new key: more than one, so that the queue can shrink */
#define FULL_RETRY_NS PLX_NS_PER_MS

struct key_entry {
	SLIST_ENTRY(key_entry) chain;
	STAILQ_ENTRY(key_entry) link; /* in `done` */
	struct rpc_key key;
	union {
		_Atomic uint64_t
			waited_ns; /* before that: when a duplicate was last seen to wait */
		uint64_t end_ns;   /* then it is forgotten */
	};
	uint32_t method;
	bool done;
	struct key_answer answer;
};

_Static_assert(sizeof(struct key_entry) <= 2 * PLX_CACHE_LINE, "as KEY_REPLY_BYTES says");

SLIST_HEAD(chain, key_entry);

struct shard {
	pthread_mutex_t lock;
	const struct rpc_keys *keys;
	struct chain *chains; /* NULL: no key yet */
	struct rpc_slabs entries;
	STAILQ_HEAD(, key_entry) done; /* oldest first */
	uint64_t bytes;                /* of separately allocated replies */
	uint32_t count;
} PLX_ALIGNED_LINE;

struct rpc_keys {
	struct shard shards[SHARDS];
	uint64_t secret; /* odd and random, because clients choose keys */
	uint64_t keep_ns, shard_bytes_max;
	uint32_t shard_max; /* keys, and chains */
};

struct rpc_keys *rpc_keys_create(uint64_t secret, const struct plx_rpc_service_attr *attr)
{
	struct rpc_keys *keys = plx_mem_alloc(sizeof(*keys), 0, PLX_NODE_ANY, NULL);

	if (!keys)
		return NULL;
	keys->secret = secret | 1;
	keys->keep_ns = attr->key_ns;
	keys->shard_max = attr->keys_max / SHARDS + (attr->keys_max % SHARDS != 0);
	keys->shard_bytes_max = attr->key_bytes_max / SHARDS;
	for (int i = 0; i < SHARDS; i++) {
		keys->shards[i].keys = keys;
		pthread_mutex_init(&keys->shards[i].lock, NULL);
		STAILQ_INIT(&keys->shards[i].done);
	}
	return keys;
}

void rpc_keys_destroy(struct rpc_keys *keys)
{
	for (int i = 0; i < SHARDS; i++) {
		struct shard *shard = &keys->shards[i];
		const struct key_entry *entry;

		STAILQ_FOREACH (entry, &shard->done, link)
			free(entry->answer.heap);
		rpc_slab_free(&shard->entries);
		free(shard->chains);
		pthread_mutex_destroy(&shard->lock);
	}
	plx_mem_free(keys);
}

/* Hash with a random odd multiplier, like the table of open requests. Only the upper bits are
 * good. */
static struct shard *shard_of(struct rpc_keys *keys, struct rpc_key key)
{
	return &keys->shards[(key.client * keys->secret) >> 60];
}

_Static_assert(SHARDS == 1 << (64 - 60), "four bits name a shard");

static struct chain *chain_of(const struct shard *shard, struct rpc_key key)
{
	const struct rpc_keys *keys = shard->keys;
	uint64_t mixed = ((key.client ^ keys->secret) + key.number * keys->secret) * keys->secret;

	return &shard->chains[(mixed >> 32) * keys->shard_max >> 32];
}

static struct key_entry *find(const struct shard *shard, struct rpc_key key)
{
	struct key_entry *entry;

	if (!shard->chains)
		return NULL;
	SLIST_FOREACH (entry, chain_of(shard, key), chain)
		if (entry->key.client == key.client && entry->key.number == key.number)
			break;
	return entry;
}

static void drop(struct shard *shard, struct key_entry *entry)
{
	SLIST_REMOVE(chain_of(shard, entry->key), entry, key_entry, chain);
	if (entry->answer.heap)
		shard->bytes -= entry->answer.header.length;
	free(entry->answer.heap);
	rpc_slab_put(&shard->entries, entry);
	shard->count--;
}

static void forget_old(struct shard *shard, uint64_t now_ns)
{
	for (int i = 0; i < FORGET_MAX; i++) {
		struct key_entry *oldest = STAILQ_FIRST(&shard->done);

		if (!oldest || oldest->end_ns > now_ns)
			return;
		STAILQ_REMOVE_HEAD(&shard->done, link);
		drop(shard, oldest);
	}
}

static struct key_entry *add(struct shard *shard, struct rpc_key key, uint32_t method)
{
	struct key_entry *entry;

	if (shard->count >= shard->keys->shard_max)
		return NULL;
	if (!shard->chains)
		shard->chains = calloc(shard->keys->shard_max, sizeof(*shard->chains));
	entry = shard->chains ? rpc_slab_take(&shard->entries, sizeof(*entry)) : NULL;
	if (!entry)
		return NULL;
	*entry = (struct key_entry){.key = key, .method = method};
	SLIST_INSERT_HEAD(chain_of(shard, key), entry, chain);
	shard->count++;
	return entry;
}

static uint64_t room_after_ns(const struct shard *shard, uint64_t now_ns)
{
	const struct key_entry *oldest = STAILQ_FIRST(&shard->done);

	return oldest && oldest->end_ns > now_ns ? oldest->end_ns - now_ns : FULL_RETRY_NS;
}

static void set_lost(struct key_answer *answer)
{
	answer->header.status = PLX_RPC_OVERLOADED;
	answer->header.code = answer->header.length = 0;
}

/* DONE: copies the reply, which counts as lost if the copy cannot be allocated. */
static enum key_state state_of(struct key_entry *entry, uint64_t now_ns, struct key_answer *out)
{
	if (!entry)
		return KEY_NEW;
	if (!entry->done) {
		counter_set(&entry->waited_ns, now_ns);
		return KEY_RUNNING;
	}
	*out = entry->answer;
	if (!out->heap)
		return KEY_DONE;
	out->heap = malloc(out->header.length);
	if (out->heap)
		memcpy(out->heap, entry->answer.heap, out->header.length);
	else
		set_lost(out);
	return KEY_DONE;
}

enum key_state rpc_keys_claim(struct rpc_keys *keys, struct rpc_key key, uint32_t method,
			      uint64_t now_ns, struct key_entry **entry_out, struct key_answer *out,
			      uint64_t *retry_ns_out)
{
	struct shard *shard = shard_of(keys, key);
	enum key_state state = KEY_OTHER;
	struct key_entry *entry;

	pthread_mutex_lock(&shard->lock);
	forget_old(shard, now_ns);
	entry = find(shard, key);
	if (!entry && entry_out) {
		*entry_out = add(shard, key, method);
		state = *entry_out ? KEY_NEW : KEY_FULL;
		*retry_ns_out = room_after_ns(shard, now_ns);
	} else if (!entry || entry->method == method) {
		state = state_of(entry, now_ns, out);
	}
	pthread_mutex_unlock(&shard->lock);
	return state;
}

uint64_t rpc_keys_waited_ns(const struct key_entry *entry)
{
	return counter_get(&entry->waited_ns);
}

/* Return: whether they could be allocated. */
static bool keep_bytes(struct key_answer *kept, const void *data)
{
	uint32_t length = kept->header.length;
	uint8_t *at = kept->bytes;

	if (length > KEY_REPLY_BYTES)
		at = kept->heap = malloc(length);
	if (!at)
		return false;
	if (length)
		memcpy(at, data, length);
	return true;
}

void rpc_keys_done(struct rpc_keys *keys, struct key_entry *entry, const struct rpc_header *header,
		   const void *data, uint64_t now_ns)
{
	struct shard *shard = shard_of(keys, entry->key);
	uint32_t length = header->length;
	bool fits;

	pthread_mutex_lock(&shard->lock);
	fits = length <= KEY_REPLY_BYTES ||
	       (length <= KEY_REPLY_MAX && length <= keys->shard_bytes_max - shard->bytes);
	entry->answer.header = *header;
	if (!fits || !keep_bytes(&entry->answer, data))
		set_lost(&entry->answer);
	if (entry->answer.heap)
		shard->bytes += length;
	entry->done = true;
	entry->end_ns = plx_time_add(now_ns, keys->keep_ns);
	STAILQ_INSERT_TAIL(&shard->done, entry, link);
	pthread_mutex_unlock(&shard->lock);
}

void rpc_keys_forget(struct rpc_keys *keys, struct key_entry *entry)
{
	struct shard *shard = shard_of(keys, entry->key);

	pthread_mutex_lock(&shard->lock);
	drop(shard, entry);
	pthread_mutex_unlock(&shard->lock);
}
