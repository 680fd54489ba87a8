/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring loops of `plx-perf pool`: like ring_bench.h, for pools. */
#ifndef PERF_POOL_BENCH_H
#define PERF_POOL_BENCH_H

#include "perf.h"

#define POOL_OBJECTS      8192
#define POOL_OBJECT_BYTES 64

/** Get and put `count` objects in bursts. Return: how many gets failed. */
typedef uint64_t (*pool_loop_fn)(void *pool, uint64_t count);

/** A kind of pool of one maker: how to create it, and its loops by burst. */
struct pool_maker {
	const char *name;
	int (*create)(void **pool_out);
	void (*destroy)(void *pool);
	/** Memory of its caches, once every lcore has used it. */
	int (*cache_bytes)(void *pool, size_t *bytes_out);
	pool_loop_fn loops[PERF_BURSTS];
};

/** Shared by all lcores, and owned by one. */
extern const struct pool_maker pool_plx_shared, pool_plx_owned;

/** DPDK's; NULL: built without it. open: once, before create. */
const struct pool_maker *pool_dpdk(void);
int perf_dpdk_open(void);
void perf_dpdk_close(void);

static inline PLX_ALWAYS_INLINE uint64_t
bench_pool(void *pool, bool (*get)(void *pool, void **objects, uint32_t count),
	   void (*put)(void *pool, void **objects, uint32_t count), uint64_t count,
	   const uint32_t burst)
{
	void *objects[256] = {NULL};
	uint64_t failed = 0;
	uint32_t size = burst;

	/* The burst is runtime data that the compiler cannot see; a single object it may see. */
	if (burst > 1)
		__asm__("" : "+r"(size));
	for (uint64_t i = 0; i < count; i += burst) {
		if (plx_likely(get(pool, objects, size)))
			put(pool, objects, size);
		else
			failed += burst;
	}
	return failed;
}

#define POOL_LOOP_OF(name, get, put, burst)                              \
	static PLX_NOINLINE uint64_t name##_##burst(void *p, uint64_t n) \
	{                                                                \
		return bench_pool(p, get, put, n, burst);                \
	}

/** Define the loops of a get and a put, for POOL_LOOPS. */
#define DEFINE_POOL_LOOPS(name, get, put) \
	POOL_LOOP_OF(name, get, put, 1)   \
	POOL_LOOP_OF(name, get, put, 8)   \
	POOL_LOOP_OF(name, get, put, 32)  \
	POOL_LOOP_OF(name, get, put, 256)

#define POOL_LOOPS(name) .loops = {name##_1, name##_8, name##_32, name##_256}

#endif
