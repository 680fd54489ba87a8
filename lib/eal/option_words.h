/* SPDX-License-Identifier: BSD-3-Clause */
/* Match the words of a command line to options: for lib/app and the programs of this tree.
 * libpollux exports these functions for them. The header is not installed, and they change without
 * notice. */
#ifndef EAL_OPTION_WORDS_H
#define EAL_OPTION_WORDS_H

#include "plx_base.h"

PLX_BEGIN_DECLS

/** The long names of all EAL options, for plx_option_find and plx_suggest. */
const char *const *plx_eal_option_names(size_t *count_out);

/** How many words the EAL option `word` takes: 0 not an EAL option; 1; 2 with its value in the next
 * word. Accepts unambiguous abbreviations. */
int plx_eal_option_words(const char *word);

/** Find the name that an option's word means: an exact match, or else the only name with that
 * prefix. word: as typed, "--lcor=0-3"; leading dashes are skipped and "=" ends it.
 * Return: the index; -ENOENT no match, the text names the nearest; -EINVAL ambiguous, the text
 * names the candidates. */
int plx_option_find(const char *word, const char *const *names, size_t count);

/** The known option nearest to `word` ("--lcore" gives "--lcores"), or NULL if none is close.
 * Leading dashes are skipped and "=" ends the word; case, "-" and "_" make no difference. names:
 * `count` long names without dashes. */
const char *plx_suggest(const char *word, const char *const *names, size_t count);

PLX_END_DECLS

#endif
