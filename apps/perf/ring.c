/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-perf ring: cycles per element of every kind of ring, on one lcore and between two.
 * The cache slice of a line changes the cost of moving it between cores by a third and more. So
 * every round places its rings elsewhere, and a ring and its peer, which run one after the other,
 * use the same memory. */
#include "bench.h"

#include <string.h>

#define PLACES      512 /* possible places of a ring, PLACE_BYTES apart */
#define PLACE_BYTES 128
#define LAPS_WARM   4 /* of the ring, before the clock starts */
#define WAITS_LOOK  (1 << 20)
#define WAITS_MAX   (1 << 10) /* waits without progress: about a minute */

static uint32_t second; /* the lcore that pushes */
static char *arena;
static size_t ring_bytes; /* of the largest ring */

struct producer {
	struct ring_side side;
	ring_loop_fn loop;
};

bool ring_wait(struct ring_side *side)
{
	plx_pause();
	if (plx_likely(++side->waits % WAITS_LOOK))
		return true;
	side->gave_up = plx_stopping() || side->waits / WAITS_LOOK > WAITS_MAX;
	return !side->gave_up;
}

static int produce(void *arg)
{
	struct producer *producer = arg;

	producer->loop(&producer->side);
	return producer->side.gave_up;
}

static int fail_run(const struct ring_maker *maker, unsigned burst, const struct ring_side *side)
{
	if (plx_stopping())
		return plx_fail(EINTR, "interrupted");
	return plx_fail(EIO, "%s, burst %u: %llu elements of %llu were not what was pushed%s",
			maker->name, perf_bursts[burst], (unsigned long long)side->wrong,
			(unsigned long long)side->end, side->gave_up ? ", and then none came" : "");
}

/* Between two lcores: this one pops. The clock starts after the first laps, when the other lcore is
 * awake. */
static int measure_two(const struct ring_maker *maker, unsigned burst, void *ring, uint64_t count,
		       double *cycles_out)
{
	uint64_t warm = LAPS_WARM * perf_conf.capacity / perf_bursts[burst] * perf_bursts[burst];
	struct ring_side consumer = {.ring = ring, .end = warm};
	struct producer producer = {
		.side = {.ring = ring, .end = warm + count},
		.loop = maker->push[burst],
	};
	int stuck, rc = plx_lcore_launch(second, produce, &producer);

	if (rc)
		return rc;
	maker->pop[burst](&consumer);

	uint64_t from = consumer.next, begin = plx_tsc();

	consumer.end = warm + count;
	if (!consumer.gave_up)
		maker->pop[burst](&consumer);
	*cycles_out = (double)(plx_tsc() - begin) / (double)(consumer.end - from);
	rc = plx_lcore_join(second, PLX_NEVER, &stuck);
	if (rc == 0 && (stuck || consumer.gave_up || consumer.wrong))
		rc = fail_run(maker, burst, &consumer);
	return rc;
}

/* On one lcore: first checks that pops match pushes, then measures the time. */
static int measure_one(const struct ring_maker *maker, unsigned burst, void *ring, uint64_t count,
		       double *cycles_out)
{
	uint64_t warm = LAPS_WARM * perf_conf.capacity;
	struct ring_side in = {.ring = ring}, out = {.ring = ring}, both = {.ring = ring};

	while (in.end < warm && !in.gave_up && !out.gave_up) {
		in.end = out.end += perf_bursts[burst];
		maker->push[burst](&in);
		maker->pop[burst](&out);
	}
	out.gave_up |= in.gave_up;
	if (out.gave_up || out.wrong)
		return fail_run(maker, burst, &out);
	both.end = count;

	uint64_t begin = plx_tsc();

	maker->both[burst](&both);
	*cycles_out = (double)(plx_tsc() - begin) / (double)count;
	return both.wrong ? fail_run(maker, burst, &both) : 0;
}

/* Each round has another place. */
static int measure(const struct perf_row *row, bool peer, uint32_t round, uint64_t count,
		   double *cycles_out)
{
	static uint32_t placed, random; /* rounds that have had a place, and the last of these */
	const struct ring_maker *maker = &(peer ? perf_dpdk->rings : ring_plx)[row->kind];
	char *place;
	void *ring;
	int rc;

	if (round == placed) {
		random = random * 1103515245 + 12345;
		placed++;
	}
	place = arena + (size_t)(random >> 16) % PLACES * PLACE_BYTES;
	memset(place, 0, ring_bytes);
	rc = maker->init(place, row->kind, (uint32_t)perf_conf.capacity, &ring);
	if (rc)
		return rc;
	return (row->lcores == 2 ? measure_two : measure_one)(maker, row->burst, ring, count,
							      cycles_out);
}

static void add_rows(const struct ring_maker *peers)
{
	for (unsigned i = 0; i < 2 * PERF_KINDS; i++) {
		unsigned kind = i % PERF_KINDS;
		uint32_t lcores = 1 + i / PERF_KINDS;

		if (!(perf_conf.kinds >> kind & 1) ||
		    perf_conf.on == (lcores == 1 ? PERF_ON_TWO : PERF_ON_ONE))
			continue;
		perf_rows_add((struct perf_row){
			.name = "ring",
			.variant = ring_plx[kind].name,
			.peer = peers ? peers[kind].name : NULL,
			.kind = kind,
			.lcores = lcores,
		});
	}
}

static int find_size(const struct ring_maker *makers)
{
	int rc = 0;

	for (unsigned kind = 0; makers && kind < PERF_KINDS && rc == 0; kind++) {
		size_t bytes = 0;

		rc = makers[kind].size(kind, (uint32_t)perf_conf.capacity, &bytes);
		if (bytes > ring_bytes)
			ring_bytes = bytes;
	}
	return rc;
}

static int prepare(void)
{
	const struct ring_maker *peers = perf_conf.compare ? perf_dpdk->rings : NULL;
	int rc = find_size(ring_plx);

	rc = rc ? rc : find_size(peers);
	if (rc)
		return rc;
	add_rows(peers);
	/* On the popping lcore's node, as in most programs. */
	arena = plx_mem_alloc(ring_bytes + PLACES * PLACE_BYTES, PLACE_BYTES,
			      plx_lcore_node(plx_lcore_main()), NULL);
	return arena ? 0 : -ENOMEM;
}

int perf_ring_run(void)
{
	int rc = perf_conf.on == PERF_ON_ONE ? 0 : perf_second_lcore(&second);

	rc = rc ? rc : prepare();
	rc = rc ? rc : perf_rows_run(second, measure);
	rc = rc ? rc : perf_json_write(json_pack("{s:o}", "rows", perf_rows_report("element")));
	plx_mem_free(arena);
	return rc;
}
