/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this library share and no other library sees. */
#ifndef APP_PRIV_H
#define APP_PRIV_H

#include "option_words.h"
#include "plx_app.h"

#include <stdio.h>

/** Whether the word is the application's to read: one of its options, or neither its own nor the
 * EAL's. An abbreviation counts, but a whole name comes before it. eal_first: where both have that
 * name the EAL's is meant. */
bool app_options_own(const struct plx_app *app, const char *word, bool eal_first);

/** How many words the application's option `word` takes: 1, or 2 with the value in `next`, which
 * may be NULL. */
int app_options_words(const struct plx_app *app, const char *word, const char *next);

#endif
