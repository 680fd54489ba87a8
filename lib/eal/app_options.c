/* SPDX-License-Identifier: BSD-3-Clause */
/* The application's options: find them in its table, check that, list them for --help. */
#include "app_priv.h"

#include <ctype.h>
#include <string.h>

#define MODES_MAX     32 /* bits of plx_option.modes */
#define USAGE_COLUMNS 80
#define USAGE_INDENT  11

/* Find an option as plx_option_find. is_whole_out: whether the word has its whole name. */
static int find(const struct plx_option *options, const char *word, bool *is_whole_out)
{
	int index = plx_option_find(options, word);

	*is_whole_out = index >= 0 && strcspn(word, "=") == 2 + strlen(options[index].name);
	return index;
}

bool app_options_own(const struct plx_app *app, const struct plx_option *eal, const char *word,
		     bool eal_first)
{
	bool own_whole, eal_whole;
	bool own_has = find(app->options, word, &own_whole) != -ENOENT ||
		       plx_option_lacks_dash(app->options, word);
	bool eal_has = find(eal, word, &eal_whole) != -ENOENT;

	if (!own_has || !eal_has)
		return !eal_has;
	return own_whole != eal_whole ? own_whole : !eal_first;
}

/* The table -------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
	return name[0] && name[0] != '-' && !name[strcspn(name, "= \t\n")];
}

static bool has_letter_of_eal(const struct plx_option *option)
{
	const char word[] = {'-', option->letter, '\0'};

	return plx_option_find(plx_eal_options, word) != -ENOENT;
}

/* What is wrong with the row; NULL: nothing. */
static const char *fault_of(const struct plx_option *option)
{
	bool is_flag = option->kind == PLX_APP_FLAG;

	if (!is_name(option->name))
		return "a name has no dash in front, no '=' and no space";
	if ((unsigned)option->kind > PLX_APP_LIST)
		return "its kind is none of enum plx_app_kind";
	if (is_flag && option->required)
		return "a flag cannot be required";
	if (is_flag != !option->placeholder)
		return is_flag ? "a flag has no placeholder" : "it has no placeholder";
	if (!option->to || !option->help)
		return option->to ? "it has no help" : "it has nowhere to store its value";
	if (option->kind == PLX_APP_CHOICE && !option->choices)
		return "it has no choices";
	if (option->letter && !isalnum((unsigned char)option->letter))
		return "its letter is neither a letter nor a digit";
	if (option->letter && has_letter_of_eal(option))
		return "its letter belongs to an option of the EAL";
	return NULL;
}

/* The same for the row, the program and the rows before it. */
static const char *clash_of(const struct plx_app *app, unsigned row)
{
	const struct plx_option *options = app->options, *option = &options[row];

	if (option->modes && !app->modes)
		return "it goes with some modes, but the program has none";
	for (unsigned i = 0; i < row; i++) {
		if (strcmp(options[i].name, option->name) == 0)
			return "another row has the same name";
		if (option->letter && options[i].letter == option->letter)
			return "another row has the same letter";
	}
	return NULL;
}

static int check_modes_table(const struct plx_app *app)
{
	unsigned count = 0;

	if (!app->modes)
		return 0;
	if (!app->mode)
		return plx_fail(EINVAL, "the program has modes, but nowhere to store the choice");
	while (app->modes[count])
		if (++count > MODES_MAX)
			return plx_fail(
				EINVAL,
				"the program has too many modes; give at most %d, then NULL",
				MODES_MAX);
	return 0;
}

int app_options_check_table(const struct plx_app *app)
{
	const struct plx_option *options = app->options;

	if (check_modes_table(app))
		return -EINVAL;
	for (unsigned i = 0; options && options[i].name; i++) {
		const char *fault;

		if (i == PLX_OPTIONS_MAX)
			return plx_fail(EINVAL,
					"the program's table of options is too long; give at most "
					"%d, then PLX_OPTIONS_END",
					PLX_OPTIONS_MAX);
		fault = fault_of(&options[i]) ?: clash_of(app, i);
		if (fault)
			return plx_fail(EINVAL, "the program's table of options, row %u, '%s': %s",
					i + 1, options[i].name, fault);
	}
	return 0;
}

/* Parsing ---------------------------------------------------------------------------------- */

/* seen: bit n is set if option n of the table was given. */
static int store_once(const struct plx_app *app, const struct plx_option_use *use, uint64_t *seen)
{
	const struct plx_option *option = &app->options[use->index];
	int rc;

	if (*seen >> use->index & 1 && option->kind != PLX_APP_LIST)
		return plx_fail(EINVAL, "%s: given twice; give it once", use->given);
	rc = plx_option_store(option, use->given, use->text, option->to);
	if (rc)
		return rc;
	*seen |= UINT64_C(1) << use->index;
	if (option->given)
		*option->given = true;
	return 0;
}

int app_options_take(const struct plx_app *app, int argc, char *const *argv, uint64_t *seen)
{
	struct plx_option_use use;
	int count = plx_option_take(app->options, argc, argv, &use);

	if (count == -ENOENT && !plx_option_lacks_dash(app->options, argv[0]) &&
	    plx_option_find(plx_eal_options, argv[0]) != -ENOENT)
		return plx_fail(EINVAL, "%.*s: an EAL option; %s takes none",
				(int)strcspn(argv[0], "="), argv[0], app_name(app));
	if (count == -ENOENT)
		return plx_option_unknown(app->options, plx_eal_options, argv[0]);
	return count < 0 ? count : store_once(app, &use, seen) ?: count;
}

/* Modes ------------------------------------------------------------------------------------ */

/* "send, push or receive" */
static const char *list_modes(const struct plx_app *app, char out[256])
{
	struct plx_text text = {.out = out, .size = 256};

	for (unsigned i = 0; app->modes[i]; i++)
		plx_text_add(&text, "%s%s",
			     i == 0              ? ""
			     : app->modes[i + 1] ? ", "
						 : " or ",
			     app->modes[i]);
	return out;
}

int app_options_take_mode(const struct plx_app *app, const char *word)
{
	const char *nearest;
	char list[256];
	size_t count = 0;

	if (!app->modes || !word || !word[0] || word[0] == '-')
		return 0;
	for (; app->modes[count]; count++) {
		if (strcmp(word, app->modes[count]) != 0)
			continue;
		*app->mode = (unsigned)count;
		return 1;
	}
	nearest = plx_suggest(word, app->modes, count);
	return plx_fail(EINVAL, "%s: unknown word; give %s%s%s%s", word, list_modes(app, list),
			nearest ? "; did you mean " : "", nearest ?: "", nearest ? "?" : "");
}

/* Whether the option goes with the mode of the command line. */
static bool fits_mode(const struct plx_app *app, const struct plx_option *option)
{
	return !option->modes || option->modes >> *app->mode & 1;
}

/* Check the options of the command line against its mode. */
static int check_modes(const struct plx_app *app, bool has_mode, uint64_t seen)
{
	char list[256];

	if (app->modes && !has_mode)
		return plx_fail(EINVAL, "what to do is missing; give %s as the first word",
				list_modes(app, list));
	for (unsigned i = 0; app->modes && app->options && app->options[i].name; i++) {
		const struct plx_option *option = &app->options[i];

		if (seen >> i & 1 && !fits_mode(app, option))
			return plx_fail(EINVAL, "--%s: not for %s; leave it out", option->name,
					app->modes[*app->mode]);
	}
	return 0;
}

int app_options_check(const struct plx_app *app, bool has_mode, uint64_t seen)
{
	int rc = check_modes(app, has_mode, seen);

	if (rc)
		return rc;
	for (unsigned i = 0; app->options && app->options[i].name; i++) {
		const struct plx_option *option = &app->options[i];

		if (option->required && !(seen >> i & 1) && fits_mode(app, option))
			return plx_fail(EINVAL, "--%s %s is missing", option->name,
					option->placeholder);
	}
	return app->check ? app->check() : 0;
}

int plx_app_parse(int argc, char **argv, const struct plx_app *app)
{
	uint64_t seen = 0;
	int rc = app_options_check_table(app)
		       ?: app_options_take_mode(app, argc > 0 ? argv[0] : NULL);

	if (rc < 0)
		return rc;
	for (int at = rc, count; at < argc; at += count) {
		count = app_options_take(app, argc - at, argv + at, &seen);
		if (count < 0)
			return count;
	}
	return app_options_check(app, rc, seen);
}

/* Help ------------------------------------------------------------------------------------- */

static void print_usage_of(const struct plx_app *app, unsigned mode, const char *eal)
{
	int column = printf("  %s%s%s%s", app_name(app), app->modes ? " " : "",
			    app->modes ? app->modes[mode] : "", eal);

	for (const struct plx_option *option = app->options; option && option->name; option++) {
		char word[128];
		int length;

		if (option->modes && !(option->modes >> mode & 1))
			continue;
		length = snprintf(
			word, sizeof(word), "%s--%s%s%s%s%s", option->required ? "" : "[",
			option->name, option->placeholder ? " " : "", option->placeholder ?: "",
			option->kind == PLX_APP_LIST ? "..." : "", option->required ? "" : "]");
		if (column + 1 + length > USAGE_COLUMNS)
			column = printf("\n%*s", USAGE_INDENT - 1, "") - 1;
		column += printf(" %s", word);
	}
	printf("\n");
}

void app_options_print_usage(const struct plx_app *app, bool takes_eal)
{
	const char *eal = "";

	if (takes_eal)
		eal = app->options ? " [EAL options] --" : " [EAL options]";
	if (!app->modes)
		print_usage_of(app, 0, eal);
	for (unsigned mode = 0; app->modes && app->modes[mode]; mode++)
		print_usage_of(app, mode, eal);
}

void plx_app_print_options(const struct plx_app *app, FILE *out)
{
	for (const struct plx_option *option = app->options; option && option->name; option++) {
		char help[4096] = "";
		struct plx_text text = {.out = help, .size = sizeof(help)};

		plx_option_help(&text, option);
		fputs(help, out);
	}
}
