/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a process uses, to check that it does not grow. */
#ifndef PROV_TEST_MEMORY_H
#define PROV_TEST_MEMORY_H

#include "plx_test.h"

#include <stdio.h>

/* Sanitizers keep freed memory, so their figures mean nothing. */
#define MEMORY_IS_TOLD (!PLX_TEST_SANITIZED)

static inline long memory_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, "VmRSS: %ld", &kib) != 1)
		;
	fclose(file);
	return kib;
}

#endif
