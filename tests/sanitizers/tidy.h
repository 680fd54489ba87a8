/* SPDX-License-Identifier: BSD-3-Clause */
/* Put in front of each file for clang-tidy alone: its analyzer looks at one file at a time, and so
 * does not know that plx_fail never returns 0. lib/base/error.c, which defines it, is left out. */
#include "../../lib/base/plx_base.h"

#define plx_fail(err, ...) ((void)plx_fail((err), __VA_ARGS__), -(err))
