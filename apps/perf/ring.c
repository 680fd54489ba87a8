/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-perf ring: cycles per element of every kind of ring, on one lcore and between two.
 * The cache slice of a line changes the cost of moving it between cores by a third and more. So
 * every round places its rings elsewhere, and a ring and its peer, which run one after the other,
 * use the same memory. */
#include "ring_bench.h"

#include <stdlib.h>
#include <string.h>

#define PLACES      512 /* possible places of a ring, PLACE_BYTES apart */
#define PLACE_BYTES 128
#define LAPS_WARM   4 /* of the ring, before the clock starts */
#define WAITS_LOOK  (1 << 20)
#define WAITS_MAX   (1 << 10) /* waits without progress: about a minute */

/* A kind of ring of one maker, at one burst: the subject of one figure. */
struct subject {
	const struct ring_maker *maker;
	enum plx_ring_kind kind;
	unsigned burst; /* index of perf_bursts */
};

struct bench {
	const struct perf_conf *conf;
	uint32_t second; /* the lcore that pushes */
	char *arena, *place;
	uint32_t round, random;
	size_t ring_bytes; /* of the largest ring */
	struct perf_row *rows;
	struct subject *ours, *peers; /* of each row */
	uint32_t row_count;
};

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

static int fail_run(const struct subject *subject, const struct ring_side *side)
{
	if (plx_stopping())
		return plx_fail(EINTR, "interrupted");
	return plx_fail(EIO, "%s, burst %u: %llu elements of %llu were not what was pushed%s",
			subject->maker->name, perf_bursts[subject->burst],
			(unsigned long long)side->wrong, (unsigned long long)side->end,
			side->gave_up ? ", and then none came" : "");
}

/* Between two lcores: this one pops. The clock starts after the first laps, when the other lcore is
 * awake. */
static int measure_two(struct bench *bench, struct subject *subject, void *ring, uint64_t count,
		       double *cycles_out)
{
	uint32_t burst = perf_bursts[subject->burst];
	uint64_t warm = LAPS_WARM * bench->conf->capacity / burst * burst;
	struct ring_side consumer = {.ring = ring, .end = warm};
	struct producer producer = {
		.side = {.ring = ring, .end = warm + count},
		.loop = subject->maker->push[subject->burst],
	};
	int stuck, rc = plx_lcore_launch(bench->second, produce, &producer);

	if (rc)
		return rc;
	subject->maker->pop[subject->burst](&consumer);

	uint64_t from = consumer.next, begin = plx_tsc();

	consumer.end = warm + count;
	if (!consumer.gave_up)
		subject->maker->pop[subject->burst](&consumer);
	*cycles_out = (double)(plx_tsc() - begin) / (double)(consumer.end - from);
	rc = plx_lcore_join(bench->second, PLX_NEVER, &stuck);
	if (rc == 0 && (stuck || consumer.gave_up || consumer.wrong))
		rc = fail_run(subject, &consumer);
	return rc;
}

/* On one lcore: first checks that pops match pushes, then measures the time. */
static int measure_one(struct bench *bench, struct subject *subject, void *ring, uint64_t count,
		       double *cycles_out)
{
	const struct ring_maker *maker = subject->maker;
	uint64_t warm = LAPS_WARM * bench->conf->capacity;
	struct ring_side in = {.ring = ring}, out = {.ring = ring}, both = {.ring = ring};

	while (in.end < warm && !in.gave_up && !out.gave_up) {
		in.end = out.end += perf_bursts[subject->burst];
		maker->push[subject->burst](&in);
		maker->pop[subject->burst](&out);
	}
	out.gave_up |= in.gave_up;
	if (out.gave_up || out.wrong)
		return fail_run(subject, &out);
	both.end = count;

	uint64_t begin = plx_tsc();

	maker->both[subject->burst](&both);
	*cycles_out = (double)(plx_tsc() - begin) / (double)count;
	return both.wrong ? fail_run(subject, &both) : 0;
}

static int run_row(void *arg, uint32_t i, bool peer, uint32_t round, uint64_t count,
		   double *cycles_out)
{
	struct bench *bench = arg;
	struct subject *subject = peer ? &bench->peers[i] : &bench->ours[i];
	void *ring;
	int rc;

	if (round != bench->round || !bench->place) {
		bench->round = round;
		bench->random = bench->random * 1103515245 + 12345;
		bench->place = bench->arena + (size_t)(bench->random >> 16) % PLACES * PLACE_BYTES;
	}
	memset(bench->place, 0, bench->ring_bytes);
	rc = subject->maker->init(bench->place, subject->kind, (uint32_t)bench->conf->capacity,
				  &ring);
	if (rc)
		return rc;
	return (bench->rows[i].lcores == 2 ? measure_two : measure_one)(bench, subject, ring, count,
									cycles_out);
}

static void add_row(struct bench *bench, enum plx_ring_kind kind, unsigned burst, uint32_t lcores)
{
	const struct ring_maker *peers = bench->conf->compare ? ring_dpdk() : NULL;
	uint32_t i = bench->row_count++;

	bench->ours[i] = (struct subject){&ring_plx[kind], kind, burst};
	bench->peers[i] = (struct subject){peers ? &peers[kind] : NULL, kind, burst};
	bench->rows[i] = (struct perf_row){
		.name = "ring",
		.variant = ring_plx[kind].name,
		.peer = peers ? peers[kind].name : NULL,
		.burst = perf_bursts[burst],
		.lcores = lcores,
	};
}

static void add_rows(struct bench *bench)
{
	const struct perf_conf *conf = bench->conf;

	for (uint32_t lcores = 1; lcores <= 2; lcores++) {
		if (conf->on == (lcores == 1 ? PERF_ON_TWO : PERF_ON_ONE))
			continue;
		for (unsigned kind = 0; kind < PERF_KINDS; kind++)
			for (unsigned burst = 0; burst < PERF_BURSTS; burst++)
				if (conf->kinds >> kind & 1 && conf->bursts >> burst & 1)
					add_row(bench, kind, burst, lcores);
	}
}

static int find_size(struct bench *bench)
{
	int rc = 0;

	for (uint32_t i = 0; i < bench->row_count && rc == 0; i++) {
		struct subject *both[] = {&bench->ours[i], &bench->peers[i]};

		for (unsigned j = 0; j < 2 && both[j]->maker && rc == 0; j++) {
			size_t bytes = 0;

			rc = both[j]->maker->size(both[j]->kind, (uint32_t)bench->conf->capacity,
						  &bytes);
			if (bytes > bench->ring_bytes)
				bench->ring_bytes = bytes;
		}
	}
	return rc;
}

static int prepare(struct bench *bench)
{
	const uint32_t rows_max = 2 * PERF_KINDS * PERF_BURSTS;
	int rc;

	bench->rows = calloc(rows_max, sizeof(*bench->rows));
	bench->ours = calloc(2 * rows_max, sizeof(*bench->ours));
	if (!bench->rows || !bench->ours)
		return plx_fail(ENOMEM, "out of memory");
	bench->peers = bench->ours + rows_max;
	add_rows(bench);
	rc = find_size(bench);
	if (rc)
		return rc;
	/* On the popping lcore's node, as in most programs. */
	bench->arena = plx_mem_alloc(bench->ring_bytes + PLACES * PLACE_BYTES, PLACE_BYTES,
				     plx_lcore_node(plx_lcore_main()), NULL);
	return bench->arena ? 0 : -ENOMEM;
}

int perf_ring_run(const struct perf_conf *conf)
{
	struct bench bench = {.conf = conf};
	int rc = conf->on == PERF_ON_ONE ? 0 : perf_second_lcore(conf, &bench.second);

	if (rc == 0)
		rc = prepare(&bench);
	if (rc == 0)
		rc = perf_rows_run(conf, bench.rows, bench.row_count, bench.second, run_row,
				   &bench);
	if (rc == 0) {
		perf_rows_print(bench.rows, bench.row_count, "element", stdout);
		rc = perf_json_write(conf, json_pack("{s:o}", "rows",
						     perf_rows_json(bench.rows, bench.row_count)));
	}
	plx_mem_free(bench.arena);
	free(bench.ours);
	free(bench.rows);
	return rc;
}
