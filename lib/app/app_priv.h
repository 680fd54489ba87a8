/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal to lib/app. */
#ifndef APP_PRIV_H
#define APP_PRIV_H

#include "option_words.h"
#include "plx_app.h"

#include <stdio.h>

/** Return whether the application parses this word: it is one of its options, or unknown to both.
 * Abbreviations count, but an exact name wins. eal_first: if both have the name, it is the
 * EAL's. */
bool app_options_own(const struct plx_app *app, const char *word, bool eal_first);

/** How many words the application's option argv[0] takes: 1, or 2 if its value is the next word. */
int app_options_words(const struct plx_app *app, int argc, char *const *argv);

#endif
