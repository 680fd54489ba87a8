/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring loops of `plx-perf ring` and `pool`. Each maker includes this and supplies push and
 * pop, get and put, which the compiler inlines with the burst as a constant. So both sides of a
 * comparison run the same loops, as their users would write them. */
#ifndef PERF_BENCH_H
#define PERF_BENCH_H

#include "perf.h"
#include "plx_ring.h"

#define BENCH_INLINE   static inline PLX_ALWAYS_INLINE
#define BENCH_NOINLINE static PLX_NOINLINE

/* Rings --------------------------------------------------------------------------------------- */

/** One measurement, as seen by one side. Element i has the value i. */
struct ring_side {
	void *ring;
	uint64_t next;  /**< the next element to push or pop */
	uint64_t end;   /**< one past the last */
	uint64_t wrong; /**< popped elements that were out of order */
	uint32_t waits;
	bool gave_up;
};

typedef void (*ring_loop_fn)(struct ring_side *side);

/** A kind of ring of one maker: how to create it, and its loops by burst. */
struct ring_maker {
	const char *name;
	int (*size)(enum plx_ring_kind kind, uint32_t capacity, size_t *bytes_out);
	int (*init)(void *memory, enum plx_ring_kind kind, uint32_t capacity, void **ring_out);
	ring_loop_fn push[PERF_BURSTS], pop[PERF_BURSTS];
	ring_loop_fn both[PERF_BURSTS]; /**< alternating push and pop, on one thread */
};

/** By enum plx_ring_kind. */
extern const struct ring_maker ring_plx[PERF_KINDS];

/** Called when nothing could be moved. Return: false: give up, nothing has moved for long. */
bool ring_wait(struct ring_side *side);

BENCH_INLINE void bench_push(struct ring_side *side,
			     uint32_t (*push)(void *ring, uint64_t *elements, uint32_t count),
			     const uint32_t burst)
{
	uint64_t elements[256], end = side->end;
	void *ring = side->ring;

	for (uint64_t i = side->next; i < end; i += burst) {
		for (uint32_t j = 0; j < burst; j++)
			elements[j] = i + j;

		uint32_t done = push(ring, elements, burst);

		while (plx_unlikely(done < burst)) {
			uint32_t more = push(ring, elements + done, burst - done);

			if (!more && !ring_wait(side))
				return;
			done += more;
		}
	}
	side->next = end;
}

BENCH_INLINE void bench_pop(struct ring_side *side,
			    uint32_t (*pop)(void *ring, uint64_t *elements, uint32_t count),
			    const uint32_t burst)
{
	uint64_t elements[256], wrong = 0, i = side->next, end = side->end;
	void *ring = side->ring;

	while (i < end) {
		uint32_t count = pop(ring, elements, burst);

		if (!count && !ring_wait(side))
			break;
		for (uint32_t j = 0; j < count; j++)
			wrong += elements[j] != i + j;
		i += count;
	}
	side->next = i;
	side->wrong += wrong;
}

/* Elements keep their values here: filling and checking them costs as much as the ring. */
BENCH_INLINE void bench_both(struct ring_side *side,
			     uint32_t (*push)(void *ring, uint64_t *elements, uint32_t count),
			     uint32_t (*pop)(void *ring, uint64_t *elements, uint32_t count),
			     const uint32_t burst)
{
	uint64_t elements[256] = {0}, lost = 0, end = side->end;
	void *ring = side->ring;

	for (uint64_t i = side->next; i < end; i += burst) {
		lost += burst - push(ring, elements, burst);
		lost += burst - pop(ring, elements, burst);
	}
	side->next = end;
	side->wrong += lost;
}

#define RING_LOOPS_OF(name, push, pop, burst)                        \
	BENCH_NOINLINE void name##_push_##burst(struct ring_side *s) \
	{                                                            \
		bench_push(s, push, burst);                          \
	}                                                            \
	BENCH_NOINLINE void name##_pop_##burst(struct ring_side *s)  \
	{                                                            \
		bench_pop(s, pop, burst);                            \
	}                                                            \
	BENCH_NOINLINE void name##_both_##burst(struct ring_side *s) \
	{                                                            \
		bench_both(s, push, pop, burst);                     \
	}

/** Define the loops of a push and a pop, for RING_LOOPS. */
#define DEFINE_RING_LOOPS(name, push, pop) \
	RING_LOOPS_OF(name, push, pop, 1)  \
	RING_LOOPS_OF(name, push, pop, 8)  \
	RING_LOOPS_OF(name, push, pop, 32) \
	RING_LOOPS_OF(name, push, pop, 256)

#define RING_LOOPS(name)                                                         \
	.push = {name##_push_1, name##_push_8, name##_push_32, name##_push_256}, \
	.pop = {name##_pop_1, name##_pop_8, name##_pop_32, name##_pop_256},      \
	.both = {name##_both_1, name##_both_8, name##_both_32, name##_both_256}

/* Pools --------------------------------------------------------------------------------------- */

#define POOL_OBJECTS      8192
#define POOL_OBJECT_BYTES 64

/** Get and put `count` objects in bursts. Return: how many gets failed. */
typedef uint64_t (*pool_loop_fn)(void *pool, uint64_t count);

/** The pools of one maker, and its loops by burst. */
struct pool_maker {
	int (*create)(bool is_owned, void **pool_out); /**< by the main lcore, or shared by all */
	void (*destroy)(void *pool);
	/** Memory of its caches, once every lcore has used it. */
	int (*cache_bytes)(void *pool, size_t *bytes_out);
	pool_loop_fn loops[PERF_BURSTS];
};

extern const struct pool_maker pool_plx;

BENCH_INLINE uint64_t bench_pool(void *pool,
				 bool (*get)(void *pool, void **objects, uint32_t count),
				 void (*put)(void *pool, void **objects, uint32_t count),
				 uint64_t count, const uint32_t burst)
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

#define POOL_LOOP_OF(name, get, put, burst)                         \
	BENCH_NOINLINE uint64_t name##_##burst(void *p, uint64_t n) \
	{                                                           \
		return bench_pool(p, get, put, n, burst);           \
	}

/** Define the loops of a get and a put, for POOL_LOOPS. */
#define DEFINE_POOL_LOOPS(name, get, put) \
	POOL_LOOP_OF(name, get, put, 1)   \
	POOL_LOOP_OF(name, get, put, 8)   \
	POOL_LOOP_OF(name, get, put, 32)  \
	POOL_LOOP_OF(name, get, put, 256)

#define POOL_LOOPS(name) .loops = {name##_1, name##_8, name##_32, name##_256}

/* DPDK ---------------------------------------------------------------------------------------- */

/** What DPDK has for the same. */
struct perf_dpdk {
	const struct ring_maker *rings; /**< by enum plx_ring_kind */
	const struct pool_maker *pool;
	int (*open)(void); /**< once, before a pool is created */
	void (*close)(void);
	const char *(*version)(void);
};

/** NULL: built without it. */
extern const struct perf_dpdk *const perf_dpdk;

#endif
