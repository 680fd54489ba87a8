/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the option that a mistyped word means. */
#include "option_words.h"

#include <ctype.h>
#include <string.h>

#define WORD_MAX 63 /* longer words match no option */

static char folded(char c)
{
	return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

/* Edit distance where swapping neighbours counts as one edit: the "optimal string alignment" form
 * of Levenshtein's distance. edits[i][j] is that of the first i and j characters. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t edits[WORD_MAX + 1][WORD_MAX + 1];

	for (size_t j = 0; j <= b_len; j++)
		edits[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		edits[i][0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			bool same = folded(a[i - 1]) == folded(b[j - 1]);
			size_t least = edits[i - 1][j - 1] + !same;

			if (edits[i - 1][j] + 1 < least)
				least = edits[i - 1][j] + 1;
			if (edits[i][j - 1] + 1 < least)
				least = edits[i][j - 1] + 1;
			if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
			    folded(a[i - 2]) == folded(b[j - 1]) && edits[i - 2][j - 2] + 1 < least)
				least = edits[i - 2][j - 2] + 1;
			edits[i][j] = least;
		}
	}
	return edits[a_len][b_len];
}

/* Characters in the longer of the common prefix and the common suffix. */
static size_t common(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t least = a_len < b_len ? a_len : b_len, begin = 0, end = 0;

	while (begin < least && folded(a[begin]) == folded(b[begin]))
		begin++;
	while (end < least && folded(a[a_len - 1 - end]) == folded(b[b_len - 1 - end]))
		end++;
	return begin > end ? begin : end;
}

const char *plx_suggest(const char *word, const char *const *names, size_t count)
{
	const char *nearest = NULL;
	size_t least = WORD_MAX, len;

	word += strspn(word, "-");
	len = strcspn(word, "=");
	if (len == 0 || len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t name_len = strlen(names[i]);

		if (name_len > WORD_MAX)
			continue;

		size_t edits = distance(word, len, names[i], name_len);
		size_t longer = name_len > len ? name_len : len;
		bool is_alike = longer < 3 || common(word, len, names[i], name_len) >= 3;

		/* One edit in three characters; one in two if both start or end alike. */
		if (edits <= longer / (is_alike ? 2 : 3) && edits < least) {
			least = edits;
			nearest = names[i];
		}
	}
	return nearest;
}
