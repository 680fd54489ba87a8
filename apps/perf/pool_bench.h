/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring loops of `plx-perf pool`: as ring_bench.h, for pools. */
#ifndef PERF_POOL_BENCH_H
#define PERF_POOL_BENCH_H

#include "perf.h"

#define POOL_OBJECTS      8192
#define POOL_OBJECT_BYTES 64

/** Get and put `count` objects, in bursts. Return: how many could not be got. */
typedef uint64_t (*pool_loop_fn)(void *pool, uint64_t count);

/** One pool of one maker: how to make it, and its loops by burst. */
struct pool_maker {
	const char *name;
	int (*create)(void **pool_out);
	void (*destroy)(void *pool);
	/** Memory of its caches, once every lcore that there is has used it. */
	int (*cache_bytes)(void *pool, size_t *bytes_out);
	pool_loop_fn loops[PERF_BURSTS];
};

/** Shared by all lcores, and the pool of one. */
extern const struct pool_maker pool_plx_shared, pool_plx_owned;

/** DPDK's: NULL, this program was built without it. open: once, before create. */
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

	/* A burst is what there was to do, which no compiler knows: one object it may know of. */
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

/** Define the loops of one get and put, for POOL_LOOPS. */
#define DEFINE_POOL_LOOPS(name, get, put) \
	POOL_LOOP_OF(name, get, put, 1)   \
	POOL_LOOP_OF(name, get, put, 8)   \
	POOL_LOOP_OF(name, get, put, 32)  \
	POOL_LOOP_OF(name, get, put, 256)

#define POOL_LOOPS(name) .loops = {name##_1, name##_8, name##_32, name##_256}

#endif
