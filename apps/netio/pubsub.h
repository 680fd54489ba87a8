/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of netio-pubsub-bench share. */
#ifndef NETIO_PUBSUB_H
#define NETIO_PUBSUB_H

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

/** Be the one or the other. Return: exit status. */
int pubsub_publish(void);
int pubsub_subscribe(void);

#endif
