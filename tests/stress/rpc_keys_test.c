/* SPDX-License-Identifier: BSD-3-Clause */
/* The same keys requested on several lcores at once, as when clients lose their links and reconnect
 * to other lcores: each key runs once, and later requests get the first answer. */
#include "stress.h"

#include "rpc_service.h"

#define THREADS 4
#define CLIENTS 3
#define KEYS    4000

static struct rpc_keys *keys;
static _Atomic unsigned runs[CLIENTS][KEYS]; /* that must not be repeated */
static _Atomic unsigned again;

/* Short replies, and ones with separate memory. */
static uint32_t reply_of(struct rpc_key key, uint8_t *out)
{
	uint32_t length = (uint32_t)(key.number % 3 == 0 ? KEY_REPLY_BYTES + 1 + key.number % 64
							 : 8);

	memset(out, (int)(key.client * 31 + key.number), length);
	return length;
}

static void check_answer(struct rpc_key key, const struct key_answer *answer)
{
	uint8_t expected[KEY_REPLY_BYTES + 65];
	uint32_t length = reply_of(key, expected);

	assert_int_equal(answer->header.status, PLX_RPC_OK);
	assert_int_equal(answer->header.length, length);
	assert_memory_equal(answer->heap ? answer->heap : answer->bytes, expected, length);
	free(answer->heap);
}

static void run(struct rpc_key key, struct key_entry *entry, bool is_refused)
{
	uint8_t bytes[KEY_REPLY_BYTES + 65];
	struct rpc_header header = {.kind = RPC_REPLY, .handler_ns = 1};

	if (is_refused) {
		rpc_keys_forget(keys, entry);
		return;
	}
	atomic_fetch_add(&runs[key.client][key.number], 1);
	header.length = reply_of(key, bytes);
	rpc_keys_done(keys, entry, &header, bytes, 1);
}

static void ask(struct rpc_key key)
{
	struct key_entry *entry;
	struct key_answer answer;
	uint64_t retry_ns;

	switch (rpc_keys_claim(keys, key, 1, 1, &entry, &answer, &retry_ns)) {
	case KEY_NEW:
		run(key, entry, dice(4) == 0);
		return;
	case KEY_RUNNING:
		if (rpc_keys_claim(keys, key, 1, 1, NULL, &answer, NULL) == KEY_DONE)
			check_answer(key, &answer);
		return;
	case KEY_DONE:
		atomic_fetch_add(&again, 1);
		check_answer(key, &answer);
		return;
	default:
		fail_msg("%s", plx_error());
	}
}

static void *asker(void *arg)
{
	stress_dice = (uintptr_t)arg + 1;
	for (unsigned i = 0; i < stress_amount * CLIENTS * KEYS; i++)
		ask((struct rpc_key){dice(CLIENTS), dice(KEYS)});
	return NULL;
}

PLX_TEST(each_key_runs_once)
{
	const struct plx_rpc_service_attr attr = {.keys_max = 16 * 2 * CLIENTS * KEYS,
						  .key_bytes_max = UINT64_C(1) << 30,
						  .key_ns = PLX_NS_PER_S};
	unsigned ran = 0;

	assert_int_equal(plx_mem_init(NULL), 0);
	keys = rpc_keys_create(0x9e3779b97f4a7c15, &attr);
	assert_non_null(keys);
	run_in_threads(THREADS, asker, NULL, 1);
	for (int i = 0; i < CLIENTS * KEYS; i++) {
		unsigned count = atomic_load(&runs[i / KEYS][i % KEYS]);

		assert_in_range(count, 0, 1);
		ran += count;
	}
	assert_true(ran > CLIENTS * KEYS * 9 / 10);
	assert_true(atomic_load(&again) > ran);
	rpc_keys_destroy(keys);
	plx_mem_fini();
}

/* Requests per thread and key. */
STRESS_MAIN(6, 6)
