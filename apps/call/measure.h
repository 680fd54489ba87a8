/* SPDX-License-Identifier: BSD-3-Clause */
/* A running measurement, closed or open loop. */
#ifndef MEASURE_H
#define MEASURE_H

#include "call.h"

#include "plx_lcore.h"

/* A call in flight. */
struct one {
	struct measure *measure;
	struct one *next_free; /* open loop */
	uint64_t sent_tsc;
	uint64_t intended_tsc; /* open loop: when the call was due */
	bool is_measured;
};

struct measure {
	const struct call_conf *conf;
	struct plx_rpc_client *client;
	struct plx_rpc_call call;
	const void *data;
	size_t length;
	uint64_t count, warmup; /* calls to make, and warm-up calls among them */
	uint64_t called, done;  /* done: only calls made after the warm-up */
	uint64_t began_tsc, stop_tsc,
		ended_tsc; /* of the measured part; stop 0: only count ends it */
	uint64_t statuses[PLX_RPC_STATUS_COUNT];
	uint64_t handler_ns;
	uint64_t in_flight; /* calls in flight at a time */
	uint32_t open;
	uint64_t waits;           /* calls that were refused and repeated later */
	uint64_t answered_tsc;    /* the last answer of any status */
	uint64_t warm_until_tsc;  /* closed loop: latest end of the warm-up */
	struct plx_timer *pauses; /* closed loop: one per entry of `ones` */
	bool signalled;           /* a signal ended it */
	bool ended;               /* calls in flight are not followed by others */
	int rc;                   /* of the last call made */
	struct plx_hist rtt_ns;
	struct one *ones;
	/* Open loop: */
	struct plx_schedule schedule;
	struct plx_timer drain;
	struct one *free;
	struct plx_hist service_ns; /* from when the call was made */
	uint64_t first_tsc, last_intended_tsc, last_sent_tsc;
	/* Shared, and rarely touched: */
	char provider[32];  /* when last up */
	const char *choice; /* why that one: constant text */
	char failure[512];  /* why it ended early, after measuring something; "": it did not */
};

/** Make a call for `one`. Return: 0; as plx_rpc_call_start, and measure->rc is the same. */
int measure_call(struct measure *measure, struct one *one);

/** Whether calls due at that time are no longer made. */
bool measure_is_enough(const struct measure *measure, uint64_t tsc);

/** Record a call's result. */
void measure_note(struct measure *measure, const struct plx_rpc_result *result,
		  const struct one *one, uint64_t from_tsc, uint64_t tsc);

/** End the loop; calls in flight are not followed by others. */
void measure_end(struct measure *measure);

/** Check the result of any call. Return: whether to stop: the method is unknown, as measure->rc
 * says, or the service has left. */
bool measure_is_over(struct measure *measure, const struct plx_rpc_result *result, uint64_t tsc);

/** Record the provider while a service is up. */
void measure_note_provider(struct measure *measure);

/** Keep conf->in_flight calls in flight until the end, and turn the loop. Return: 0; measure->rc;
 * or an earlier error. */
int closed_loop_run(struct measure *measure);

/** Make calls on conf's schedule until the end, and turn the loop. Return: 0; measure->rc; or an
 * earlier error. */
int open_loop_run(struct measure *measure);

#endif
