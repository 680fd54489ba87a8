/* SPDX-License-Identifier: BSD-3-Clause */
/* Which option a word of a command line means: for lib/app and the programs of this tree. libpollux
 * exports these functions for them; the header is not installed, and they change without notice. */
#ifndef EAL_OPTION_WORDS_H
#define EAL_OPTION_WORDS_H

#include "plx_base.h"

PLX_BEGIN_DECLS

/** The long names of all EAL options, for plx_option_find and plx_suggest. */
const char *const *plx_eal_option_names(size_t *count_out);

/** How many words the EAL option `word` takes: 0 where it is none, 1, or 2 with the value in the
 * next word. An abbreviation counts where it is clear. */
int plx_eal_option_words(const char *word);

/** Which of `names` an option's word means: the exact one, or else the only one that it begins.
 * word: as typed, "--lcor=0-3"; dashes in front are skipped, and "=" ends it.
 * Return: the index; -ENOENT none, the text naming the nearest; -EINVAL several, the text naming
 * them. */
int plx_option_find(const char *word, const char *const *names, size_t count);

/** The known option nearest to `word` ("--lcore" gives "--lcores"), or NULL where none is near.
 * Dashes in front are skipped, and "=" ends the word; case, "-" and "_" make no difference.
 * names: `count` long names without dashes. */
const char *plx_suggest(const char *word, const char *const *names, size_t count);

PLX_END_DECLS

#endif
