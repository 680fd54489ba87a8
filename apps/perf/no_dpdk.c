/* SPDX-License-Identifier: BSD-3-Clause */
/* Instead of bench_dpdk.c in a program built without DPDK. */
#include "bench.h"

const struct perf_dpdk *const perf_dpdk;
