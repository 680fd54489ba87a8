/* SPDX-License-Identifier: BSD-3-Clause */
/* A measurement that runs, in one of two ways. */
#ifndef MEASURE_H
#define MEASURE_H

#include "call.h"

#include "plx_lcore.h"

/* A call that is open. */
struct one {
	struct measure *measure;
	struct one *next_free; /* open loop */
	uint64_t sent_tsc;
	uint64_t intended_tsc; /* open loop: when it should have been made */
	bool is_measured;
};

struct measure {
	const struct call_conf *conf;
	struct plx_rpc_client *client;
	struct plx_rpc_call call;
	const void *data;
	size_t length;
	uint64_t count, warmup;                  /* to be called; of them, not measured */
	uint64_t called, done;                   /* done: that were called after the warm-up */
	uint64_t began_tsc, stop_tsc, ended_tsc; /* measured part; stop 0: no end but count */
	uint64_t statuses[PLX_RPC_STATUS_COUNT];
	uint64_t handler_ns;
	uint64_t in_flight; /* that may be open at a time */
	uint32_t open;
	uint64_t waits;           /* calls that had to wait, and are made again */
	uint64_t answered_tsc;    /* the last one, whatever the answer was */
	uint64_t warm_until_tsc;  /* closed loop: it is measured then at the latest */
	struct plx_timer *pauses; /* closed loop: of `ones`, in their order */
	bool signalled;           /* that ended it */
	bool ended;               /* what is still open is not followed by another one */
	int rc;                   /* of the last one that was called */
	struct plx_hist rtt_ns;
	struct one *ones;
	/* Open loop: */
	struct plx_schedule schedule;
	struct plx_timer drain;
	struct one *free;
	struct plx_hist service_ns; /* from when it was made */
	uint64_t first_tsc, last_intended_tsc, last_sent_tsc;
	/* Of both, and rarely touched: */
	char provider[32]; /* when it was last up */
	char failure[512]; /* what ended it when something was measured; "": nothing */
};

/** Call, as `one`. Return: 0; as plx_rpc_call, and measure->rc is that. */
int measure_call(struct measure *measure, struct one *one);

/** Whether calls that are due then are no longer made. */
bool measure_is_enough(const struct measure *measure, uint64_t tsc);

/** Note how one went. */
void measure_note(struct measure *measure, const struct plx_rpc_result *result,
		  const struct one *one, uint64_t from_tsc, uint64_t tsc);

/** Let the loop return; what is still open is not followed by another one. */
void measure_end(struct measure *measure);

/** Look at how one ended, any one. Return: whether that is the end of all: the method is not known,
 * as measure->rc says, or the service is gone. */
bool measure_is_over(struct measure *measure, const struct plx_rpc_result *result, uint64_t tsc);

/** Note which provider it is, while a service is up. */
void measure_note_provider(struct measure *measure);

/** Keep conf->in_flight calls open, until it ends, and turn the loop. Return: 0, as
 * measure->rc; what went wrong before. */
int closed_loop_run(struct measure *measure);

/** Make calls by conf's schedule until it ends, and turn the loop. Return: 0, as measure->rc; what
 * went wrong before. */
int open_loop_run(struct measure *measure);

#endif
