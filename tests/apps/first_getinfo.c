/* SPDX-License-Identifier: BSD-3-Clause */
/* The duration of a process's first fi_getinfo, in microseconds: libfabric probes the whole host.
 * Pollux cannot shorten this part of its start. */
#include <rdma/fabric.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int64_t start_us = now_us();

	if (argc != 2 || !hints)
		return 2;
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup(argv[1]);
	if (fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info))
		return 1;
	printf("%lld\n", (long long)(now_us() - start_us));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return 0;
}
