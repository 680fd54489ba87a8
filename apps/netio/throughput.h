/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-throughput: throughput.c measures a row for each size as a load of the engine
 * (lib/app/load.h), throughput_report.c has the command line and the rows. And its requests to
 * netio-recv, which counts messages without a tag and does not answer them. */
#ifndef NETIO_THROUGHPUT_H
#define NETIO_THROUGHPUT_H

#include "load.h"
#include "netio/netio.h"

#define BENCH_TAG_COUNT      1 /* answered with a struct bench_count */
#define BENCH_TAG_ECHO       2 /* answered with its bytes */

#define THROUGHPUT_SIZES_MAX 32

/* In host byte order: for programs of one build. */
struct bench_count {
	uint64_t messages, bytes; /* on this connection, so far */
	uint64_t now_ns;
};

enum throughput_mode { MODE_BUFFERED, MODE_UNBUFFERED, MODE_REFERENCE, MODE_PING };

/** The parsed command line. */
struct throughput_conf {
	const char *connect;
	const char *sizes_text, *json_path;
	uint64_t sizes[THROUGHPUT_SIZES_MAX];
	unsigned size_count;
	unsigned mode;          /**< enum throughput_mode */
	struct plx_measure run; /**< duration_ns, of each row */
	uint64_t page_bytes, page_count;
};

extern struct throughput_conf throughput_conf;
extern const struct plx_app throughput_app;

/** Print and keep a row: the receiver's counts and time; of round trips `rtt_ns`. */
void throughput_print(uint64_t size_bytes, const struct bench_count *count,
		      const struct plx_hist *rtt_ns);

/** Write the rows to the output file, if any. Return: 0; -errno. */
int throughput_write(void);

#endif
