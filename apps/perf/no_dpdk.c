/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces DPDK's rows in a program built without DPDK. */
#include "pool_bench.h"
#include "ring_bench.h"

const struct ring_maker *ring_dpdk(void)
{
	return NULL;
}

const struct pool_maker *pool_dpdk(void)
{
	return NULL;
}

const char *perf_dpdk_version(void)
{
	return NULL;
}

int perf_dpdk_open(void)
{
	return -ENOTSUP;
}

void perf_dpdk_close(void)
{
}
