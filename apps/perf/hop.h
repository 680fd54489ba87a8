/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of `plx-perf hop`. */
#ifndef PERF_HOP_H
#define PERF_HOP_H

#include "perf.h"

enum hop_row_id { HOP_BARE, HOP_HOT, HOP_QUIET, HOP_IDLE_TCP, HOP_ROWS };

struct hop_row {
	const char *name;
	struct plx_hist all;                               /* of all rounds */
	double p50[PERF_ROUNDS_MAX], p99[PERF_ROUNDS_MAX]; /**< by round */
};

struct hop_results {
	const struct perf_conf *conf;
	unsigned cpus[2];
	struct hop_row rows[HOP_ROWS]; /**< all.count 0: not measured */
	double turn_ns[PERF_ROUNDS_MAX], turn_idle_tcp_ns[PERF_ROUNDS_MAX];
};

/** Print the results and write the requested files. Return: 0; -EIO; -errno of a path. */
int hop_report(const struct hop_results *results);

#endif
