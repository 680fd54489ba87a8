/* SPDX-License-Identifier: BSD-3-Clause */
/* What the raw baselines share: their command line, waits that end, and the record of round trips.
 * A baseline stamps immediately before its send call and first thing after it has seen the answer,
 * as plx-ping does, so that what is compared is the path between the two stamps. */
#ifndef RAW_COMMON_H
#define RAW_COMMON_H

#include "plx_base.h"
#include "plx_stats.h"

#include <stdatomic.h>
#include <sys/types.h>

#define RAW_SIZE_MAX    ((uint64_t)64 << 20)
#define RAW_PEER_NS     (5 * PLX_NS_PER_S)  /* silence of a connected peer that ends the program */
#define RAW_CONNECT_NS  (10 * PLX_NS_PER_S) /* how long a client tries to reach its server */
#define RAW_SPINS_CHECK 4096                /* spins between two looks at the clock */

struct raw_options {
	const char *name;
	const char *provider;
	const char *address; /* as given */
	char host[256];
	char port[16];
	const char *out;
	uint64_t size;
	uint64_t duration_ns; /* 0: count decides */
	uint64_t count;
	uint64_t warmup;
	uint64_t wait_ns; /* how long a server waits for its client */
	uint64_t cpu;     /* RAW_CPU_ANY: not pinned */
	bool listen;
	bool cq_cannot_sleep; /* libfabric's FI_WAIT_NONE: on its tcp 1.17 quicker for one link */
};

#define RAW_CPU_ANY UINT64_MAX

/* The measured part of a run. */
struct raw_run {
	struct plx_hist hist;
	uint64_t warmup_left;
	uint64_t count_left;   /* of the measured ones */
	uint64_t duration_tsc; /* 0: count_left decides */
	uint64_t first_tsc;    /* stamp before the first measured send */
	uint64_t last_tsc;
};

/* What one baseline is. serve and ping return 0 or -errno with the text in plx_error(). */
struct raw_program {
	const char *name;
	const char *provider;
	const char *idle;
	const char *address;    /* "HOST:PORT", or what stands for it */
	bool choose_provider;   /* has --provider and --cq */
	bool address_is_a_name; /* not to be split at the colon */
	int (*serve)(const struct raw_options *options);
	int (*ping)(const struct raw_options *options, struct raw_run *run);
};

/* Parse, pin, run serve or ping, print and write the result. Returns the exit status. */
int raw_main(int argc, char **argv, const struct raw_program *program);

/* Print "listening on ADDRESS" for scripts that wait for it. */
void raw_say_listening(const char *host, const char *port);

/* End on SIGINT and SIGTERM through the ordinary way out. libfabric and its providers bring
 * handlers of their own, so this comes after the endpoint is made. */
void raw_catch_signals(void);

extern atomic_bool raw_stop;

/* A page-aligned, touched buffer with a pattern in it. NULL and an error text where none is. */
uint8_t *raw_buffer(size_t size);

/* Whether the answer to the pattern is the pattern. Return: 0; -EBADMSG. */
int raw_check_echo(const uint8_t *sent, const uint8_t *received, size_t size);

/* A wait that ends. */
struct raw_wait {
	uint32_t spins;
	uint64_t deadline_ns;
};

/* The slow part of raw_wait_over. */
int raw_wait_check(struct raw_wait *wait, uint64_t limit_ns, const char *what);

/* Call on every empty look. Return: 0 go on; -ETIMEDOUT or -EINTR with a text naming `what`. */
static inline int raw_wait_over(struct raw_wait *wait, uint64_t limit_ns, const char *what)
{
	if (plx_likely(++wait->spins % RAW_SPINS_CHECK))
		return 0;
	return raw_wait_check(wait, limit_ns, what);
}

/* Take in one round trip. Returns whether another is due. */
static inline bool raw_run_add(struct raw_run *run, uint64_t sent_tsc, uint64_t seen_tsc)
{
	/* Relaxed: a flag of its own, set by a signal to this thread. */
	if (plx_unlikely(atomic_load_explicit(&raw_stop, memory_order_relaxed)))
		return false;
	if (plx_unlikely(run->warmup_left)) {
		run->warmup_left--;
		return true;
	}
	if (plx_unlikely(!run->first_tsc))
		run->first_tsc = sent_tsc;
	run->last_tsc = seen_tsc;
	plx_hist_record(&run->hist, plx_tsc_to_ns(seen_tsc - sent_tsc));
	if (run->duration_tsc)
		return seen_tsc - run->first_tsc < run->duration_tsc;
	return --run->count_left > 0;
}

#endif
