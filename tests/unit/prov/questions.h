/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions for fi_getinfo. Each test has empty hints. */
#ifndef PROV_TEST_QUESTIONS_H
#define PROV_TEST_QUESTIONS_H

#include "tested.h"

#define VERSION FI_VERSION(1, 14)

static struct fi_info *hints;
static struct fi_info *answer; /* the newest one */

static inline int set_up(void **state)
{
	hints = fi_allocinfo();
	return hints ? 0 : -1;
}

static inline int tear_down(void **state)
{
	fi_freeinfo(hints);
	fi_freeinfo(answer);
	answer = NULL;
	return 0;
}

/* Return: the answer, which is freed after the next question. */
static inline struct fi_info *ask_for(const char *node, const char *service, uint64_t flags,
				      const struct fi_info *wanted)
{
	struct fi_info *info = NULL;

	assert_int_equal(prov_getinfo(tested, VERSION, node, service, flags, wanted, &info), 0);
	assert_non_null(info);
	fi_freeinfo(answer);
	answer = info;
	return info;
}

static inline struct fi_info *ask(const struct fi_info *wanted)
{
	return ask_for(NULL, NULL, 0, wanted);
}

/* The returned error; a refusal must not set an answer. */
static inline int refusal(const char *node, const char *service, uint64_t flags,
			  const struct fi_info *wanted)
{
	struct fi_info *info = (void *)wanted;
	int rc = prov_getinfo(tested, VERSION, node, service, flags, wanted, &info);

	if (rc)
		assert_ptr_equal(info, wanted);
	else
		fi_freeinfo(info);
	return rc;
}

#define TEST(name) PLX_TEST_WITH(name, set_up, tear_down)

#endif
