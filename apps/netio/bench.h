/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests from netio-throughput to netio-recv. Messages without a tag are counted and not
 * answered. */
#ifndef NETIO_BENCH_H
#define NETIO_BENCH_H

#include "netio/netio.h"

#define BENCH_TAG_COUNT 1 /* answered with a struct bench_count */
#define BENCH_TAG_ECHO  2 /* answered with its bytes */

/* In host byte order: for programs of one build. */
struct bench_count {
	uint64_t messages, bytes; /* on this connection, so far */
	uint64_t now_ns;
};

#endif
