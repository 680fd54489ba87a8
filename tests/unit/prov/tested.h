/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider under test. Tests in this folder apply to every provider, and run for all. */
#ifndef TESTED_H
#define TESTED_H

#include "plx_test.h"
#include "prov.h"

extern const struct prov shm_kind, tcp_kind;

/* A test of a single provider defines it. */
#ifndef TESTED
#define TESTED shm_kind
#endif

static const struct prov *tested = &TESTED;

/* Fail unless a call of libfabric returns 0; shows its error. */
#define assert_fi_works(call)                                              \
	do {                                                               \
		ssize_t rc_ = (call);                                      \
                                                                           \
		if (rc_ != 0)                                              \
			fail_msg("%s: %s", #call, fi_strerror((int)-rc_)); \
	} while (0)

/* Run the tests for each provider in turn. Return: the number of failures. */
static inline int tested_run(void)
{
	static const struct prov *const each[] = {&shm_kind, &tcp_kind};
	int failed = 0;

	for (size_t i = 0; i < PLX_ARRAY_LEN(each); i++) {
		tested = each[i];
		failed += plx_test_run(tested->libfabric->name, NULL, NULL);
	}
	return failed;
}

#define TESTED_MAIN()                \
	int main(void)               \
	{                            \
		return tested_run(); \
	}

/* Event queues that this thread also reads while it waits for one: progress is manual. */
static _Thread_local struct fid_eq *tested_eqs[2];

static inline void tested_progress(void)
{
	for (size_t i = 0; i < PLX_ARRAY_LEN(tested_eqs); i++) {
		if (tested_eqs[i])
			eq_progress((struct prov_eq *)tested_eqs[i]);
	}
}

static inline bool tested_has_rma(void)
{
	return tested->most->caps & FI_RMA;
}

static inline bool tested_has_ipv6(void)
{
	struct sockaddr_in6 loopback = {.sin6_family = AF_INET6,
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};

	return prov_address_is_local(tested->libfabric, (struct sockaddr *)&loopback);
}

static inline int tested_getinfo(const char *node, const char *service, uint64_t flags,
				 struct fi_info *hints, struct fi_info **info_out)
{
	return prov_getinfo(tested, FI_VERSION(1, 17), node, service, flags, hints, info_out);
}

static inline struct fid_fabric *tested_fabric(const struct fi_info *info)
{
	struct fid_fabric *fabric = NULL;

	assert_fi_works(prov_fabric_open(tested, info->fabric_attr, &fabric, NULL));
	fabric->api_version = FI_VERSION(1, 17); /* as fi_fabric does */
	return fabric;
}

#endif
