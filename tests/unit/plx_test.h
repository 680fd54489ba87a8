/* SPDX-License-Identifier: BSD-3-Clause */
/* What every cmocka test needs: cmocka with its prerequisites, and a check on error texts. */
#ifndef PLX_TEST_H
#define PLX_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plx_base.h"

/* AddressSanitizer or ThreadSanitizer: all is slower, and what was freed is kept. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLX_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PLX_TEST_SANITIZED 1
#endif
#endif
#ifndef PLX_TEST_SANITIZED
#define PLX_TEST_SANITIZED 0
#endif

/** Under qemu-user (scripts/test-on.sh --arch) some system calls do nothing, among them madvise,
 * mbind and process_vm_readv, and the cycle counter is coarse. */
#define skip_if_emulated()                       \
	do {                                     \
		if (getenv("PLX_TEST_EMULATED")) \
			skip();                  \
	} while (0)

/** Fail unless the last error's text has `part` in it; shows the whole text. */
#define assert_error_has(part)                                                       \
	do {                                                                         \
		if (!strstr(plx_error(), (part)))                                    \
			fail_msg("error text '%s' lacks '%s'", plx_error(), (part)); \
	} while (0)

#endif
