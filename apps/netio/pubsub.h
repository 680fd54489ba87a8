/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of netio-pubsub-bench. */
#ifndef PUBSUB_BENCH_H
#define PUBSUB_BENCH_H

#include "load.h"
#include "netio/netio.h"

#include <jansson.h>

#define PUBSUB_TAG       0x1000 /* the first; message n has this plus n modulo --tags */
#define PUBSUB_WARMUP_NS (100 * PLX_NS_PER_MS) /* messages in it are not counted */

enum pubsub_mode { PUBSUB_BUFFERED, PUBSUB_AT_ONCE, PUBSUB_UNBUFFERED };

/** The parsed command line. */
struct pubsub_conf {
	const char *listen, *connect; /**< one of the two: publish or subscribe */
	const char *json_path;
	unsigned mode; /**< enum pubsub_mode */
	uint64_t size, subscribers, tags;
	uint64_t page_bytes, page_count;
	struct plx_measure run; /**< duration_ns; rate, 0: unlimited */
	unsigned policy;        /**< enum netio_policy */
};

extern struct pubsub_conf pubsub_conf;

/** Write the result to --json, if given, and release it. Return: 0; -errno, which is reported. */
int pubsub_write(json_t *object);

/** Print what was published, and write it to --json. cycles: of busy turns. Return: as
 * pubsub_write. */
int pubsub_report(uint64_t messages, uint64_t copies, double seconds, double cycles);

/** Run as publisher or as subscribers. Return: exit status. */
int pubsub_publish(void);
int pubsub_subscribe(void);

#endif
