/* SPDX-License-Identifier: BSD-3-Clause */
/* The round trip of a bare cache line: the lower bound for messages between these two CPUs. */
#include "perf.h"

#define BARE_PAIRS  16 /* pairs of cache lines per round */
#define ARENA_BYTES (UINT32_C(1) << 20)
#define TRIP_NS     300 /* rough estimate, to fit trips into the time */
#define TRIPS_LEAST 200
#define TRIPS_WARM  50
#define HIGHEST_NS  PLX_NS_PER_S
#define DIGITS      3

/* How the waiting side spins. Without a pause it requests the line constantly, even while the other
 * side is about to write it; with a pause it notices late. Which is faster depends on the
 * processor. */
enum spin { SPIN_TIGHT, SPIN_PAUSE, SPINS };

struct bare {
	_Atomic uint64_t *there[BARE_PAIRS], *back[BARE_PAIRS]; /* each has its own line */
	uint64_t trips;                                         /* per pair and way of spinning */
};

/* Acquire and release as in a message: earlier writes are visible to the reader. */
static inline PLX_ALWAYS_INLINE void wait_for(_Atomic uint64_t *line, uint64_t value,
					      const enum spin spin)
{
	while (atomic_load_explicit(line, memory_order_acquire) != value)
		if (spin == SPIN_PAUSE)
			plx_pause();
}

/* Values continue from one way of spinning to the next. */
static inline PLX_ALWAYS_INLINE void answer_pair(const struct bare *bare, unsigned pair,
						 const enum spin spin)
{
	uint64_t first = spin * bare->trips + 1;

	for (uint64_t i = first; i < first + bare->trips; i++) {
		wait_for(bare->there[pair], i, spin);
		atomic_store_explicit(bare->back[pair], i, memory_order_release);
	}
}

static inline PLX_ALWAYS_INLINE void ask_pair(const struct bare *bare, unsigned pair,
					      struct plx_hist *hist, const enum spin spin)
{
	uint64_t first = spin * bare->trips + 1;

	for (uint64_t i = first; i < first + bare->trips; i++) {
		uint64_t begin = plx_tsc();

		atomic_store_explicit(bare->there[pair], i, memory_order_release);
		wait_for(bare->back[pair], i, spin);
		if (plx_likely(i >= first + TRIPS_WARM))
			plx_hist_record(hist, plx_tsc_to_ns(plx_tsc() - begin));
	}
}

static int answer(void *arg)
{
	for (unsigned pair = 0; pair < BARE_PAIRS; pair++) {
		answer_pair(arg, pair, SPIN_TIGHT);
		answer_pair(arg, pair, SPIN_PAUSE);
	}
	return 0;
}

/* Measure both ways over one pair. Returns p50 of the faster one, and adds its trips to `all`. */
static double ask(const struct bare *bare, unsigned pair, struct plx_hist hists[SPINS],
		  struct plx_hist *all)
{
	uint64_t p50[SPINS];

	plx_hist_reset(&hists[SPIN_TIGHT]);
	plx_hist_reset(&hists[SPIN_PAUSE]);
	ask_pair(bare, pair, &hists[SPIN_TIGHT], SPIN_TIGHT);
	ask_pair(bare, pair, &hists[SPIN_PAUSE], SPIN_PAUSE);
	for (int i = 0; i < SPINS; i++)
		p50[i] = plx_hist_quantile(&hists[i], 0.5);

	int quicker = p50[SPIN_PAUSE] < p50[SPIN_TIGHT];

	plx_hist_add(all, &hists[quicker]);
	return (double)p50[quicker];
}

/* Choose distinct lines of the arena. */
static void choose_lines(struct bare *bare, char *arena, uint32_t *random)
{
	const uint32_t share = ARENA_BYTES / (2 * BARE_PAIRS);

	for (unsigned i = 0; i < 2 * BARE_PAIRS; i++) {
		*random = *random * 1103515245 + 12345;

		uint32_t at = (*random >> 8) % (share / PLX_CACHE_LINE) * PLX_CACHE_LINE;
		_Atomic uint64_t *chosen = (_Atomic uint64_t *)(arena + (size_t)i * share + at);

		atomic_store_explicit(chosen, 0, memory_order_relaxed); /* launching orders it */
		*(i % 2 ? &bare->back[i / 2] : &bare->there[i / 2]) = chosen;
	}
}

static int bounce(struct bare *bare, uint32_t away, struct plx_hist *hist, double *p50_ns_out)
{
	double p50[BARE_PAIRS];
	struct plx_hist hists[SPINS] = {0};
	int rc = 0;

	for (int i = 0; i < SPINS && rc == 0; i++)
		rc = plx_hist_init(&hists[i], HIGHEST_NS, DIGITS);
	if (rc == 0)
		rc = plx_lcore_launch(away, answer, bare);
	for (unsigned pair = 0; pair < BARE_PAIRS && rc == 0; pair++)
		p50[pair] = ask(bare, pair, hists, hist);
	for (int i = 0; i < SPINS; i++)
		plx_hist_fini(&hists[i]);
	if (rc)
		return rc == -ENOMEM ? plx_fail(ENOMEM, "out of memory") : rc;
	*p50_ns_out = perf_figures(p50, BARE_PAIRS).median;
	return plx_lcore_join(away, PLX_NEVER, NULL);
}

int bare_run(uint32_t away, uint64_t duration_ns, struct plx_hist *hist, double *p50_ns_out)
{
	static uint32_t random = 1; /* continues from round to round */
	struct bare bare = {.trips = duration_ns / BARE_PAIRS / SPINS / TRIP_NS};
	char *arena = plx_mem_alloc(ARENA_BYTES, 0, plx_lcore_node(plx_lcore_main()), NULL);
	int rc;

	if (!arena)
		return -ENOMEM;
	if (bare.trips < TRIPS_LEAST)
		bare.trips = TRIPS_LEAST;
	choose_lines(&bare, arena, &random);
	rc = bounce(&bare, away, hist, p50_ns_out);
	plx_mem_free(arena);
	return rc;
}
