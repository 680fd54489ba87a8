/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to all targets. Their input has exactly its size, so that reads past it are found. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert, also active in release builds. */
#define must(holds)                                                                               \
	do {                                                                                      \
		if (!(holds)) {                                                                   \
			fprintf(stderr, "%s, line %d: not so: %s\n", __func__, __LINE__, #holds); \
			abort();                                                                  \
		}                                                                                 \
	} while (0)

#endif
