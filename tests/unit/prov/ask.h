/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_getinfo queries for tests. Each test's state is empty hints. */
#ifndef ASK_H
#define ASK_H

#include "tested.h"

#define VERSION FI_VERSION(1, 14)

static inline int set_up(void **state)
{
	*state = fi_allocinfo();
	return *state ? 0 : -1;
}

static inline int tear_down(void **state)
{
	fi_freeinfo(*state);
	return 0;
}

static inline struct fi_info *ask_for(const char *node, const char *service, uint64_t flags,
				      const struct fi_info *hints)
{
	struct fi_info *info = NULL;

	assert_int_equal(prov_getinfo(tested, VERSION, node, service, flags, hints, &info), 0);
	assert_non_null(info);
	return info;
}

static inline struct fi_info *ask(const struct fi_info *hints)
{
	return ask_for(NULL, NULL, 0, hints);
}

/* The returned error; a refusal must not set an answer. */
static inline int refusal(const char *node, const char *service, uint64_t flags,
			  const struct fi_info *hints)
{
	struct fi_info *info = (void *)hints;
	int rc = prov_getinfo(tested, VERSION, node, service, flags, hints, &info);

	if (rc)
		assert_ptr_equal(info, hints);
	else
		fi_freeinfo(info);
	return rc;
}

#endif
