/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of netio-pubsub-bench share. */
#ifndef PUBSUB_BENCH_H
#define PUBSUB_BENCH_H

#include "bench.h"
#include "plx_app.h"

#define PUBSUB_TAG       0x1000 /* the first; message n has this and n modulo --tags */
#define PUBSUB_WARMUP_NS (100 * PLX_NS_PER_MS) /* what comes first is not counted */

enum pubsub_mode { PUBSUB_BUFFERED, PUBSUB_AT_ONCE, PUBSUB_UNBUFFERED };

/** What the command line asked for. */
struct pubsub_conf {
	const char *listen, *connect; /**< one of the two: to publish, or to subscribe */
	const char *json_path;
	unsigned mode; /**< enum pubsub_mode */
	uint64_t size, subscribers, tags, duration_ns;
	uint64_t page_bytes, page_count;
	uint64_t rate;   /**< messages a second; 0: as fast as it goes */
	unsigned policy; /**< enum netio_policy */
};

extern struct pubsub_conf pubsub_conf;
extern const char *const pubsub_modes[];

/** What was measured at the publisher; copies: at least one. */
struct pubsub_published {
	double seconds, cycles;
	uint64_t messages, copies;
};

/** What all subscribers of a process have got. */
struct pubsub_received {
	uint64_t messages, bytes, missed;
	uint64_t wrong;     /**< messages out of sequence */
	double least_per_s; /**< messages, of the one that got fewest; 0: not known */
};

/** Tell, and write --json if it is given; pubsub_report.c. Return: 0; -1 a file that cannot be
 * written, which is told. */
int pubsub_report_published(const struct pubsub_published *published);
int pubsub_report_received(const struct pubsub_received *received);

/** Be the one or the other. Return: exit status. */
int pubsub_publish(void);
int pubsub_subscribe(void);

#endif
