/* SPDX-License-Identifier: BSD-3-Clause */
/* What every cmocka test needs: cmocka with its prerequisites, and a check on error texts. */
#ifndef PLX_TEST_H
#define PLX_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plx_base.h"

/** Fail unless the last error's text has `part` in it; shows the whole text. */
#define assert_error_has(part)                                                       \
	do {                                                                         \
		if (!strstr(plx_error(), (part)))                                    \
			fail_msg("error text '%s' lacks '%s'", plx_error(), (part)); \
	} while (0)

#endif
