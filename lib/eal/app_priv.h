/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal to app.c and app_options.c. */
#ifndef APP_PRIV_H
#define APP_PRIV_H

#include "eal_priv.h"

/** Return: app->name, or the name of the program's file. */
const char *app_name(const struct plx_app *app);

/** Check the table of options and the modes, which the program writes, not its user. Return: 0;
 * -EINVAL, the text names the row. */
int app_options_check_table(const struct plx_app *app);

/** Return whether the application parses this word: it is one of its options, or unknown to both.
 * Abbreviations count, but an exact name wins. eal: the options of the EAL. eal_first: if both have
 * the name, it is the EAL's. */
bool app_options_own(const struct plx_app *app, const struct plx_option *eal, const char *word,
		     bool eal_first);

/** Store the mode that the first word names, if the application has modes and it is no option.
 * Return: the number of words, 0 or 1; -EINVAL unknown, the text lists them. */
int app_options_take_mode(const struct plx_app *app, const char *word);

/** Store the application's option that begins with argv[0]. seen: the options so far, initially 0.
 * Return: the number of words, 1 or 2; -EINVAL. */
int app_options_take(const struct plx_app *app, int argc, char *const *argv, uint64_t *seen);

/** After the last word. has_mode: there was one. Return: 0; -EINVAL a required option or the mode
 * is missing, an option is not of the mode, or check() fails. */
int app_options_check(const struct plx_app *app, bool has_mode, uint64_t seen);

/** Print the usage: the options of each mode, those that may be left out in brackets. */
void app_options_print_usage(const struct plx_app *app, bool takes_eal);

#endif
