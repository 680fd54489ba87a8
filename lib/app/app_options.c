/* SPDX-License-Identifier: BSD-3-Clause */
/* The application's options: find them in its table, store values, list them for --help. */
#include "app_priv.h"
#include "base_internal.h"
#include "plx_fabric.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX   64 /* of an application */
#define HELP_COLUMN 30 /* of the help text; names are to its left */
#define HELP_WIDTH  80

struct names {
	const char *at[NAMES_MAX];
	size_t count;
};

/* old: include deprecated options, which are not suggested. */
static struct names own_names(const struct plx_app *app, bool old)
{
	struct names names = {.count = 0};

	for (const struct plx_app_option *o = app->options; o && o->name; o++) {
		assert(names.count < NAMES_MAX);
		assert(!o->letter || plx_eal_option_words((char[]){'-', o->letter, '\0'}) == 0);
		if (old || !o->now)
			names.at[names.count++] = o->name;
	}
	return names;
}

/* "-listen" */
static bool has_one_dash_too_few(const struct plx_app *app, const char *word)
{
	for (const struct plx_app_option *o = app->options; o && o->name; o++)
		if (word[0] == '-' && strcmp(word + 1, o->name) == 0)
			return true;
	return false;
}

/* The option that "-p", or "-p" with its value, means. Return: its index; -ENOENT. */
static int find_letter(const struct plx_app *app, const char *word)
{
	const struct plx_app_option *o = app->options;

	for (int i = 0; word[0] == '-' && o && o[i].name; i++)
		if (o[i].letter && o[i].letter == word[1] &&
		    (o[i].kind != PLX_APP_FLAG || !word[2]))
			return i;
	return -ENOENT;
}

static bool is_long(const char *word)
{
	return word[0] == '-' && word[1] == '-' && word[2];
}

/* The option that the word means. Return: its index; -ENOENT; -EINVAL ambiguous, the text names the
 * candidates. */
static int find_option(const struct plx_app *app, const char *word)
{
	struct names names = own_names(app, true);

	if (!is_long(word))
		return has_one_dash_too_few(app, word) ? -ENOENT : find_letter(app, word);
	return plx_option_find(word, names.at, names.count);
}

static bool is_whole_name(const char *word, const char *const *names, size_t count)
{
	size_t len = strcspn(word, "=");

	for (size_t i = 0; i < count; i++)
		if (is_long(word) && strlen(names[i]) == len - 2 &&
		    strncmp(word + 2, names[i], len - 2) == 0)
			return true;
	return false;
}

bool app_options_own(const struct plx_app *app, const char *word, bool eal_first)
{
	size_t eal_count;
	const char *const *eals = plx_eal_option_names(&eal_count);
	struct names own = own_names(app, true);
	bool own_has = find_option(app, word) != -ENOENT || has_one_dash_too_few(app, word);
	bool eal_has = plx_eal_option_words(word) > 0;
	bool own_whole = is_whole_name(word, own.at, own.count);

	if (!own_has || !eal_has)
		return !eal_has;
	if (own_whole != is_whole_name(word, eals, eal_count))
		return own_whole;
	return !eal_first;
}

static int fail_unknown(const struct plx_app *app, const char *word)
{
	size_t eal_count;
	const char *const *eals = plx_eal_option_names(&eal_count);
	struct names own = own_names(app, false);
	bool is_option = word[0] == '-' && word[1] && strcmp(word, "--") != 0;
	int len = (int)strcspn(word, "=");
	const char *nearest;

	if (has_one_dash_too_few(app, word))
		return plx_fail(EINVAL, "%s: a long option has two dashes; give -%s", word, word);
	if (plx_eal_option_words(word))
		return plx_fail(EINVAL, "%.*s: an EAL option; %s takes none", len, word, app->name);
	nearest = plx_suggest(word, own.at, own.count);
	if (!nearest)
		nearest = plx_suggest(word, eals, eal_count);
	return plx_fail(EINVAL, "%.*s: %s%s%s%s (--help lists all)", len, word,
			is_option ? "unknown option" : "not an option",
			nearest ? "; did you mean --" : "", nearest ? nearest : "",
			nearest ? "?" : "");
}

/* Storing ---------------------------------------------------------------------------------- */

static int store_choice(const struct plx_app_option *option, const char *given, const char *text)
{
	char allowed[256] = "";
	unsigned i = 0;

	for (; option->choices[i]; i++) {
		if (strcmp(text, option->choices[i]) == 0) {
			*option->to.choice = i;
			return 0;
		}
		plx_list_add(allowed, sizeof(allowed), option->choices[i]);
	}
	return plx_fail(EINVAL, "%s %s: unknown value; give one of: %s", given, text, allowed);
}

static int store_in_list(struct plx_app_list *list, const char *given, const char *text)
{
	if (list->count == PLX_APP_LIST_MAX)
		return plx_fail(EINVAL, "%s %s: it was given %d times already; give at most %d",
				given, text, PLX_APP_LIST_MAX, PLX_APP_LIST_MAX);
	list->at[list->count++] = text;
	return 0;
}

static int store(const struct plx_app_option *option, const char *given, const char *text)
{
	switch (option->kind) {
	case PLX_APP_FLAG:
		*option->to.flag = true;
		return 0;
	case PLX_APP_ADDRESS:
	case PLX_APP_STRING:
		if (option->kind == PLX_APP_ADDRESS && plx_address_check(given, text) != 0)
			return -EINVAL;
		*option->to.string = text;
		return 0;
	case PLX_APP_UINT:
		return plx_parse_uint(given, text, option->min, option->max, option->to.number);
	case PLX_APP_SIZE:
		return plx_parse_size(given, text, option->min, option->max, option->to.number);
	case PLX_APP_DURATION:
		return plx_parse_duration(given, text, option->min, option->max, option->to.number);
	case PLX_APP_CHOICE:
		return store_choice(option, given, text);
	case PLX_APP_LIST:
		return store_in_list(option->to.list, given, text);
	}
	return plx_fail(EINVAL, "%s: an option of unknown kind", given);
}

unsigned plx_app_split_address(const char *address, char host_out[PLX_ADDRESS_MAX])
{
	const char *colon = strrchr(address, ':');

	snprintf(host_out, PLX_ADDRESS_MAX, "%.*s", (int)(colon - address), address);
	return (unsigned)strtoul(colon + 1, NULL, 10);
}

/* Parsing ---------------------------------------------------------------------------------- */

/* The remaining words, and the options seen so far. */
struct reader {
	int argc;
	char **argv;
	int at;
	uint64_t seen; /* bit n: option n of the table */
};

/* "-1" and "-.5" are values; their option checks the range. */
static bool is_value(const struct plx_app_option *option, const char *word)
{
	if (!word || !*word)
		return word && option->may_be_empty;
	return word[0] != '-' || !word[1] || isdigit((unsigned char)word[word[1] == '.' ? 2 : 1]);
}

/* Return whether the option's value is a separate word. */
static bool is_value_apart(const char *word)
{
	return is_long(word) ? !strchr(word, '=') : !word[2];
}

/* The option's value: after "=", after the letter, or the next word. NULL: missing. */
static const char *take_value(struct reader *reader, const struct plx_app_option *option,
			      const char *word)
{
	const char *next = reader->at < reader->argc ? reader->argv[reader->at] : NULL;

	if (!is_value_apart(word)) {
		const char *text = is_long(word) ? word + strcspn(word, "=") + 1 : word + 2;

		return *text || option->may_be_empty ? text : NULL;
	}
	if (!is_value(option, next))
		return NULL;
	reader->at++;
	return next;
}

int app_options_words(const struct plx_app *app, const char *word, const char *next)
{
	int index = find_option(app, word);
	const struct plx_app_option *option = index < 0 ? NULL : &app->options[index];

	if (!option || option->kind == PLX_APP_FLAG)
		return 1;
	return is_value_apart(word) && is_value(option, next) ? 2 : 1;
}

static int take_option(struct reader *reader, const struct plx_app *app, unsigned index,
		       const char *word)
{
	const struct plx_app_option *option = &app->options[index];
	const char *text = NULL;
	char given[64];
	int rc;

	if (is_long(word))
		snprintf(given, sizeof(given), "--%s", option->name);
	else
		snprintf(given, sizeof(given), "-%c", option->letter);
	if (reader->seen >> index & 1 && option->kind != PLX_APP_LIST)
		return plx_fail(EINVAL, "%s: given twice; give it once", given);
	if (option->kind == PLX_APP_FLAG && strchr(word, '='))
		return plx_fail(EINVAL, "%s: takes no value; give %s alone", word, given);
	if (option->kind != PLX_APP_FLAG) {
		text = take_value(reader, option, word);
		if (!text)
			return plx_fail(EINVAL, "%s: a value is missing; give %s %s", given, given,
					option->placeholder);
	}
	rc = store(option, given, text);
	if (rc)
		return rc;
	reader->seen |= UINT64_C(1) << index;
	if (option->given)
		*option->given = true;
	if (option->now)
		fprintf(stderr,
			"%s: %s: an old name, which the next release does not know; "
			"give %s\n",
			app->name, given, option->now);
	return 0;
}

static int check_required(const struct plx_app *app, uint64_t seen)
{
	for (unsigned i = 0; app->options && app->options[i].name; i++)
		if (app->options[i].required && !(seen >> i & 1))
			return plx_fail(EINVAL, "--%s %s is missing", app->options[i].name,
					app->options[i].placeholder);
	return 0;
}

int plx_app_parse(int argc, char **argv, const struct plx_app *app)
{
	struct reader reader = {.argc = argc, .argv = argv};

	while (reader.at < argc) {
		const char *word = argv[reader.at++];
		int index = find_option(app, word), rc;

		if (index == -ENOENT)
			return fail_unknown(app, word);
		if (index < 0)
			return index;
		rc = take_option(&reader, app, (unsigned)index, word);
		if (rc)
			return rc;
	}
	if (check_required(app, reader.seen) != 0)
		return -EINVAL;
	return app->check ? app->check() : 0;
}

/* Help ------------------------------------------------------------------------------------- */

/* How much of the text fits on one line: up to a blank, or all. */
static size_t line_of(const char *text)
{
	size_t room = HELP_WIDTH - HELP_COLUMN, len = strlen(text);

	if (len <= room)
		return len;
	for (size_t i = room; i; i--)
		if (text[i] == ' ')
			return i;
	return len;
}

void plx_app_print_options(const struct plx_app *app, FILE *out)
{
	for (const struct plx_app_option *o = app->options; o && o->name; o++) {
		if (o->now)
			continue;

		const char *value = o->placeholder && o->kind != PLX_APP_FLAG ? o->placeholder : "";
		const char *text = o->help;
		int column = o->letter ? fprintf(out, "  -%c, ", o->letter) : fprintf(out, "  ");

		column += fprintf(out, "--%s %s", o->name, value);
		if (column >= HELP_COLUMN)
			column = fprintf(out, "\n") - 1;
		do {
			size_t len = line_of(text);

			fprintf(out, "%*s%.*s\n", HELP_COLUMN - column, "", (int)len, text);
			text += len + (text[len] == ' ');
			column = 0;
		} while (*text);
	}
}
