/* SPDX-License-Identifier: BSD-3-Clause */
/* A parameter with an integer. */
#ifndef INT_PARAM_H
#define INT_PARAM_H

#include "param.h"

#include <string.h>

static inline struct param int_param(const char *name, uint64_t id, uint64_t revision,
				     int64_t value)
{
	return (struct param){
		.name = name,
		.name_length = (uint32_t)strlen(name),
		.id = id,
		.revision = revision,
		.kind = {.type = PARAM_INT},
		.value = {PARAM_INT, .integer = value},
	};
}

#endif
