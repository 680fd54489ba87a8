/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this library share and no other library sees. */
#ifndef APP_PRIV_H
#define APP_PRIV_H

#include "plx_app.h"

#include <stdio.h>

/** What a word asked for instead of a run. */
struct app_asked {
	bool help;
	bool version;
};

/** Parse the application's own words. --help and --version end it, and are told in *asked; with
 * asked NULL they are unknown. Return: 0; -EINVAL. */
int app_options_parse(int argc, char **argv, const struct plx_app *app, struct app_asked *asked);

/** Whether the word is one of the application's options, or begins one. */
bool app_options_have(const struct plx_app *app, const char *word);

/** Fail: the word is no option here. The text looks at the application's table and at the EAL's for
 * what was meant. Returns -EINVAL. */
int app_options_fail_unknown(const struct plx_app *app, const char *word);

/** Print the application's options, each with its placeholder and help. */
void app_options_help(const struct plx_app *app, FILE *out);

#endif
