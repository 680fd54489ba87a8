/* SPDX-License-Identifier: BSD-3-Clause */
/* Match the words of a command line to options: for lib/app and the programs of this tree.
 * libpollux exports these functions for them. The header is not installed, and they change without
 * notice. */
#ifndef EAL_OPTION_WORDS_H
#define EAL_OPTION_WORDS_H

#include "base_internal.h"

PLX_BEGIN_DECLS

#define PLX_OPTIONS_MAX 64 /* of a table */

enum plx_app_kind {
	PLX_APP_FLAG,     /**< bool *; takes no value */
	PLX_APP_STRING,   /**< const char ** */
	PLX_APP_ADDRESS,  /**< const char **, host:port, checked by plx_address_check */
	PLX_APP_UINT,     /**< uint64_t *, decimal, min to max */
	PLX_APP_SIZE,     /**< uint64_t *, bytes: 64, 4K, 1M, 2G; min to max */
	PLX_APP_DURATION, /**< uint64_t *, nanoseconds: 10 (seconds), 1.5s, 500ms, 20us, 1h */
	PLX_APP_CHOICE,   /**< unsigned *, index into `choices` */
	PLX_APP_LIST,     /**< struct plx_app_list *: strings; may be given several times */
};

#define PLX_APP_LIST_MAX 64

/** The values of a PLX_APP_LIST option, in order. */
struct plx_app_list {
	const char *at[PLX_APP_LIST_MAX];
	unsigned count;
};

/** An option: a row of a table that one without a name ends. */
struct plx_option {
	const char *name;        /**< without dashes */
	const char *placeholder; /**< of its value in the help: "ADDR", "N"; NULL: takes none */
	const char *help;        /**< with the default */
	const char *now;   /**< not NULL: a deprecated name, accepted but not suggested. The help
			    * omits it, and a warning names this replacement: "--connect ADDR" */
	char letter;       /**< "-p" for "--port"; 0: none */
	bool may_be_empty; /**< the value */

	/* Only for lib/app, which stores values by it. */
	bool required; /**< must be given */
	bool *given;   /**< set if the option was given; may be NULL */
	enum plx_app_kind kind;
	union { /* where to store the value; holds the default first */
		bool *flag;
		const char **string;
		uint64_t *number; /* UINT, SIZE, DURATION */
		unsigned *choice;
		struct plx_app_list *list;
	} to;
	uint64_t min, max;          /**< UINT, SIZE, DURATION (ns); max 0: no limit */
	const char *const *choices; /**< CHOICE: ends with NULL */
};

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

struct plx_eal_conf;

/** Set the EAL's option that begins with argv[0]. Return: as plx_option_take; -ENOMEM. */
int plx_eal_take(int argc, char *const *argv, struct plx_eal_conf *conf);

/** Find the text among words, which NULL ends. Return: 0; -EINVAL, the text lists them. */
int plx_option_choice(const char *given, const char *text, const char *const *words,
		      unsigned *index_out);

/** Append the help of an option, in two columns; nothing for a deprecated one. */
void plx_option_help(struct plx_text *out, const struct plx_option *option);

/** The known name nearest to `word` ("--lcore" gives "lcores"), or NULL if none is close.
 * Leading dashes are skipped and "=" ends the word; case, "-" and "_" make no difference. names:
 * `count` long names without dashes. */
const char *plx_suggest(const char *word, const char *const *names, size_t count);

PLX_END_DECLS

#endif
