/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of plx_app_start: for the programs of this tree. libpollux exports these functions for
 * them. The header is not installed, and they change without notice.
 *
 * option_words.c matches words to a table of options, values.c stores their values, app_options.c
 * does both for the options of a program, app_output.c writes to standard output, and app.c puts
 * them together. The EAL's table is in options.c. */
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

/** Kinds of options that only the EAL has, after those of enum plx_app_kind. */
enum plx_option_kind {
	PLX_OPTION_NUMBER = PLX_APP_LIST + 1, /**< uint32_t *, min to max; the word choices[0], if
					       * any, stands for UINT32_MAX */
	PLX_OPTION_POWER,                     /**< uint32_t *, a power of two */
	PLX_OPTION_BOOL,                      /**< bool *, choices[1] is true */
	PLX_OPTION_NODE_BYTES,                /**< plx_eal_conf.node_bytes */
	PLX_OPTION_HEARTBEAT,                 /**< plx_eal_conf.heartbeat_ns, dead_after_ns */
};

/** Store the value of an option. given: how the user wrote the option, for errors. text: kept, not
 * copied; NULL for a flag. to: as option->to. Return: 0; -EINVAL. */
int plx_option_store(const struct plx_option *option, const char *given, const char *text,
		     void *to);

/** Find the text among words, which NULL ends. Return: 0; -EINVAL, the text lists them. */
int plx_option_choice(const char *given, const char *text, const char *const *words,
		      unsigned *index_out);

/** Refuse a text that would reach a terminal as more than characters. Return: 0; -EINVAL. */
int plx_option_check_text(const char *given, const char *text);

/** Append the help of an option, in two columns. */
void plx_option_help(struct plx_text *out, const struct plx_option *option);

/** The known name nearest to `word` ("--lcore" gives "lcores"), or NULL if none is close.
 * Leading dashes are skipped and "=" ends the word; case, "-" and "_" make no difference. names:
 * `count` long names without dashes. */
const char *plx_suggest(const char *word, const char *const *names, size_t count);

/* Programs without an EAL -------------------------------------------------------------------- */

/** plx_app_start for a program that starts no lcore: its options, --help and --version, and no
 * other option of the EAL. */
int plx_app_start_alone(int argc, char **argv, const struct plx_app *app);

/** Check the program's table of options, then parse its words, from argv[0] on, without the EAL's.
 * Return: 0; -EINVAL. */
int plx_app_parse(int argc, char **argv, const struct plx_app *app);

/** Print the options with their placeholders and help. */
void plx_app_print_options(const struct plx_app *app, FILE *out);

/** plx_printable, but a backslash is not doubled: parts of the text may be escaped already. Return:
 * out. */
const char *plx_app_printable(const char *from, char *out, size_t size);

/** Explain an errno value of reading standard input or writing standard output. */
const char *plx_app_stream_error(int err);

/** plx_app_fail for an error of the command line; names --help. Return: 2, for `return`. */
int plx_app_fail_usage(const struct plx_app *app);

/** plx_app_flush at program exit; prints its failure. Return: status; 1 if status is 0 and output
 * was lost. plx_app_finish calls this. */
int plx_app_end_output(const struct plx_app *app, int status);

PLX_END_DECLS

#endif
