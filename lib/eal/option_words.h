/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of plx_app_start: for the programs of this tree. libpollux exports these functions for
 * them. The header is not installed, and they change without notice.
 *
 * option_words.c matches words to a table of options, app_options.c stores their values,
 * app_output.c writes to standard output, and app.c puts them together. */
#ifndef EAL_OPTION_WORDS_H
#define EAL_OPTION_WORDS_H

#include "base_internal.h"
#include "plx_app.h"

#include <stdio.h>

PLX_BEGIN_DECLS

/** The options of the EAL. */
extern const struct plx_option *const plx_eal_options;

/** Find the option that a word means: its letter, its name, or else the only name with that prefix.
 * word: as typed, "--lcor=0-3" or "-l0". Return: the index; -ENOENT no match; -EINVAL ambiguous,
 * the text names the candidates. */
int plx_option_find(const struct plx_option *options, const char *word);

/** Return whether the word lacks a dash of the option's name: "-lcores". */
bool plx_option_lacks_dash(const struct plx_option *options, const char *word);

/** Set the error text for a word that plx_option_find did not find in two tables, with the nearest
 * name. second: may be NULL. Return: -EINVAL. */
int plx_option_unknown(const struct plx_option *first, const struct plx_option *second,
		       const char *word);

/** An option as it was given. */
struct plx_option_use {
	int index;
	char given[64];   /* "--lcores", "-l" */
	const char *text; /* its value; NULL: takes none */
};

/** Read the option that begins with argv[0], and its value: after "=", after the letter, or the
 * next word. "-1" and "-.5" are values, other words with a dash are not. Return: the number of
 * words, 1 or 2; as plx_option_find; -EINVAL a value is missing, or not allowed. */
int plx_option_take(const struct plx_option *options, int argc, char *const *argv,
		    struct plx_option_use *use_out);

/** Set the EAL's option that begins with argv[0]. Return: as plx_option_take; -ENOMEM. */
int plx_eal_take(int argc, char *const *argv, struct plx_eal_conf *conf);

/** Find the text among words, which NULL ends. Return: 0; -EINVAL, the text lists them. */
int plx_option_choice(const char *given, const char *text, const char *const *words,
		      unsigned *index_out);

/** Append the help of an option, in two columns. */
void plx_option_help(struct plx_text *out, const struct plx_option *option);

/** The known name nearest to `word` ("--lcore" gives "lcores"), or NULL if none is close.
 * Leading dashes are skipped and "=" ends the word; case, "-" and "_" make no difference. names:
 * `count` long names without dashes. */
const char *plx_suggest(const char *word, const char *const *names, size_t count);

/* Steps of plx_app_start and plx_app_finish, for programs without an EAL -------------------- */

/** The first step of plx_app_start: plx_hold_stdio, and ignore SIGPIPE and SIGXFSZ, so that writes
 * fail instead. Thread: setup. */
void plx_app_prepare(void);

/** Check the program's table of options, then parse its words, from argv[0] on, without the EAL's.
 * Return: 0; -EINVAL. */
int plx_app_parse(int argc, char **argv, const struct plx_app *app);

/** Print the options with their placeholders and help. */
void plx_app_print_options(const struct plx_app *app, FILE *out);

/** Print the end of --help: the examples, and where to read on. */
void plx_app_print_more(const struct plx_app *app);

/** Print what --version prints. */
void plx_app_print_version(const struct plx_app *app);

/** Explain an errno value of reading standard input or writing standard output. */
const char *plx_app_stream_error(int err);

/** plx_app_flush at program exit; prints its failure. Return: status; 1 if status is 0 and output
 * was lost. plx_app_finish calls this. */
int plx_app_end_output(const struct plx_app *app, int status);

PLX_END_DECLS

#endif
