/* SPDX-License-Identifier: BSD-3-Clause */
/* Match the words of a command line to the rows of a table of options, and list these for --help.
 */
#include "option_words.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define HELP_COLUMN 30 /* of the help text; names are to its left */
#define HELP_WIDTH  80

static bool is_long(const char *word)
{
	return word[0] == '-' && word[1] == '-' && word[2];
}

bool plx_option_lacks_dash(const struct plx_option *options, const char *word)
{
	for (; options && options->name; options++)
		if (word[0] == '-' && strcmp(word + 1, options->name) == 0)
			return true;
	return false;
}

/* The option that "-p", or "-p" with its value, means. */
static int find_letter(const struct plx_option *options, const char *word)
{
	for (int i = 0; word[0] == '-' && options && options[i].name; i++)
		if (options[i].letter && options[i].letter == word[1] &&
		    (options[i].placeholder || !word[2]))
			return i;
	return -ENOENT;
}

int plx_option_find(const struct plx_option *options, const char *word)
{
	size_t length = strcspn(word, "=");
	char candidates[256] = "";
	struct plx_text text = {.out = candidates, .size = sizeof(candidates)};
	int found = -ENOENT;

	if (!is_long(word))
		return plx_option_lacks_dash(options, word) ? -ENOENT : find_letter(options, word);
	for (int i = 0; length > 2 && options && options[i].name; i++) {
		const char *name = options[i].name;

		if (strncmp(name, word + 2, length - 2) != 0)
			continue;
		if (name[length - 2] == '\0')
			return i;
		plx_text_add(&text, "%s--%s", text.used ? " or " : "", name);
		found = found == -ENOENT ? i : -EINVAL;
	}
	if (found == -EINVAL)
		plx_fail(EINVAL, "%.*s: ambiguous; give %s", (int)length, word, candidates);
	return found;
}

static const char *nearest_of(const struct plx_option *options, const char *word)
{
	const char *names[PLX_OPTIONS_MAX];
	size_t count = 0;

	for (; options && options->name; options++) {
		assert(count < PLX_OPTIONS_MAX);
		names[count++] = options->name;
	}
	return plx_suggest(word, names, count);
}

int plx_option_unknown(const struct plx_option *first, const struct plx_option *second,
		       const char *word)
{
	bool is_option = word[0] == '-' && word[1] && strcmp(word, "--") != 0;
	const char *nearest = nearest_of(first, word) ?: nearest_of(second, word);

	if (plx_option_lacks_dash(first, word) || plx_option_lacks_dash(second, word))
		return plx_fail(EINVAL, "%s: a long option has two dashes; give -%s", word, word);
	return plx_fail(EINVAL, "%.*s: %s%s%s%s (--help lists all)", (int)strcspn(word, "="), word,
			is_option ? "unknown option" : "not an option",
			nearest ? "; did you mean --" : "", nearest ?: "", nearest ? "?" : "");
}

static bool is_value(const struct plx_option *option, const char *word)
{
	if (!word || !*word)
		return word && option->may_be_empty;
	return word[0] != '-' || !word[1] || isdigit((unsigned char)word[word[1] == '.' ? 2 : 1]);
}

static int take_value(const struct plx_option *option, const char *word, const char *next,
		      struct plx_option_use *use)
{
	const char *equals = is_long(word) ? strchr(word, '=') : NULL;
	bool apart = is_long(word) ? !equals : !word[2], follows = apart && next && *next;

	use->text = apart ? next : equals ? equals + 1 : word + 2;
	if (apart ? is_value(option, next) : *use->text || option->may_be_empty)
		return apart ? 2 : 1;
	return plx_fail(EINVAL, "%s: a value is missing%s%s%s; give %s %s", use->given,
			follows ? ", and '" : "", follows ? next : "", follows ? "' follows" : "",
			use->given, option->placeholder);
}

int plx_option_take(const struct plx_option *options, int argc, char *const *argv,
		    struct plx_option_use *use_out)
{
	const char *word = argv[0];
	int index = plx_option_find(options, word);
	const struct plx_option *option;

	if (index < 0)
		return index;
	option = &options[index];
	*use_out = (struct plx_option_use){.index = index};
	if (is_long(word))
		snprintf(use_out->given, sizeof(use_out->given), "--%s", option->name);
	else
		snprintf(use_out->given, sizeof(use_out->given), "-%c", option->letter);
	if (option->placeholder)
		return take_value(option, word, argc > 1 ? argv[1] : NULL, use_out);
	if (strchr(word, '='))
		return plx_fail(EINVAL, "%s: takes no value; give %s alone", word, use_out->given);
	return 1;
}

/* How much of the text fits on one line: up to a blank, or all. */
static size_t line_of(const char *text)
{
	size_t room = HELP_WIDTH - HELP_COLUMN, length = strlen(text);

	if (length <= room)
		return length;
	for (size_t i = room; i; i--)
		if (text[i] == ' ')
			return i;
	return length;
}

void plx_option_help(struct plx_text *out, const struct plx_option *option)
{
	const char *line = option->help;
	char left[64], letter[8] = "";

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	snprintf(left, sizeof(left), "  %s--%s %s", letter, option->name,
		 option->placeholder ?: "");
	if (strlen(left) >= HELP_COLUMN) {
		plx_text_add(out, "%s\n", left);
		left[0] = '\0';
	}
	do {
		size_t length = line_of(line);

		plx_text_add(out, "%-*s%.*s\n", HELP_COLUMN, left, (int)length, line);
		left[0] = '\0';
		line += length + (line[length] == ' ');
	} while (*line);
}
