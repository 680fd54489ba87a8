/* SPDX-License-Identifier: BSD-3-Clause */
/* Match the words of a command line to options: for lib/app and the programs of this tree.
 * libpollux exports these functions for them. The header is not installed, and they change without
 * notice. */
#ifndef EAL_OPTION_WORDS_H
#define EAL_OPTION_WORDS_H

#include "base_internal.h"

PLX_BEGIN_DECLS

#define PLX_OPTIONS_MAX 64 /* of a table */

/** An option, as far as its words go. */
struct plx_option {
	const char *name;        /* without dashes */
	const char *placeholder; /* of its value in the help; NULL: takes no value */
	const char *help;
	char letter;       /* 0: none */
	bool may_be_empty; /* the value */
	bool is_old;       /* accepted, but not suggested */
};

struct plx_options {
	const struct plx_option *at;
	size_t count;
};

/** The options of the EAL. */
struct plx_options plx_eal_options(void);

/** Find the option that a word means: its letter, its name, or else the only name with that prefix.
 * word: as typed, "--lcor=0-3" or "-l0". Return: the index; -ENOENT no match; -EINVAL ambiguous,
 * the text names the candidates. */
int plx_option_find(struct plx_options options, const char *word);

/** Return whether the word lacks a dash of the option's name: "-lcores". */
bool plx_option_lacks_dash(struct plx_options options, const char *word);

/** Set the error text for a word that plx_option_find did not find in two tables, with the nearest
 * name. Return: -EINVAL. */
int plx_option_unknown(struct plx_options first, struct plx_options second, const char *word);

/** An option as it was given. */
struct plx_option_use {
	int index;
	char given[64];   /* "--lcores", "-l" */
	const char *text; /* its value; NULL: takes none */
};

/** Read the option that begins with argv[0], and its value: after "=", after the letter, or the
 * next word. "-1" and "-.5" are values, other words with a dash are not. Return: the number of
 * words, 1 or 2; as plx_option_find; -EINVAL a value is missing, or not allowed. */
int plx_option_take(struct plx_options options, int argc, char *const *argv,
		    struct plx_option_use *use_out);

struct plx_eal_conf;

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

PLX_END_DECLS

#endif
