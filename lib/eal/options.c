/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table, parsing argv with it, and its help text. */
#include "eal_priv.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define HELP_COLUMN          30
#define HELP_WIDTH           50
#define LONG_BASE            256 /* getopt_long's value of long option i is LONG_BASE + i */

#define PARSE_STRING(field_) NULL
#define PARSE_LEVELS(field_) NULL
#define PARSE_FLAG(field_)   NULL
#define PARSE_SIZE(field_)   eal_parse_size
#define PARSE_LIMIT(field_)  eal_parse_limit
#define PARSE_VALUE(field_)  eal_parse_##field_

#define AS_OPTION(kind_, id_, letter_, name_, placeholder_, field_, key_, group_, help_) \
	[OPT_##id_] = {                                                                  \
		.kind = EAL_##kind_,                                                     \
		.letter = (letter_),                                                     \
		.name = (name_),                                                         \
		.placeholder = (placeholder_),                                           \
		.offset = offsetof(struct plx_eal_conf, field_),                         \
		.parse = PARSE_##kind_(field_),                                          \
		.key = (key_),                                                           \
		.group = EAL_GROUP_##group_,                                             \
		.help = (help_),                                                         \
	},
#define AS_NAME(kind_, id_, letter_, name_, ...) [OPT_##id_] = (name_),

const struct eal_option eal_options[OPT_COUNT] = {EAL_OPTIONS(AS_OPTION)};
static const char *const names[OPT_COUNT] = {EAL_OPTIONS(AS_NAME)};

const char *const *plx_eal_option_names(size_t *count_out)
{
	*count_out = OPT_COUNT;
	return names;
}

static const struct eal_option *by_letter(int letter)
{
	for (size_t i = 0; i < OPT_COUNT; i++)
		if (letter && eal_options[i].letter == letter)
			return &eal_options[i];
	return NULL;
}

int plx_eal_option_words(const char *word)
{
	if (word[0] != '-' || word[1] == '\0' || strcmp(word, "--") == 0)
		return 0;
	if (word[1] == '-') {
		int id = plx_option_find(word, names, OPT_COUNT);
		bool takes = id >= 0 && eal_options[id].placeholder;

		return id < 0 ? 0 : takes && !strchr(word, '=') ? 2 : 1;
	}
	/* -hl 0: letters without a value, then one with a value */
	for (const char *c = word + 1; *c; c++) {
		const struct eal_option *option = by_letter(*c);

		if (!option)
			return 0;
		if (option->placeholder)
			return c[1] ? 1 : 2;
	}
	return 1;
}

static void make_getopt_tables(struct option longs[OPT_COUNT + 1], char letters[2 * OPT_COUNT + 3])
{
	size_t used = 0;

	letters[used++] = '+'; /* stop at the first non-option */
	letters[used++] = ':'; /* distinguish a missing value from an unknown option */
	for (int i = 0; i < OPT_COUNT; i++) {
		const struct eal_option *option = &eal_options[i];
		bool takes = option->placeholder != NULL;

		longs[i] = (struct option){option->name, takes, NULL, LONG_BASE + i};
		if (option->letter)
			letters[used++] = (char)option->letter;
		if (option->letter && takes)
			letters[used++] = ':';
	}
	longs[OPT_COUNT] = (struct option){0};
	letters[used] = '\0';
}

/* The option for getopt_long's return value, and how the user wrote it. */
static const struct eal_option *option_of(int value, char *given, size_t size)
{
	const struct eal_option *option = value >= LONG_BASE ? &eal_options[value - LONG_BASE]
							     : by_letter(value);

	if (option && value >= LONG_BASE)
		snprintf(given, size, "--%s", option->name);
	else
		snprintf(given, size, "-%c", value);
	return option;
}

static int fail_missing(const struct eal_option *option, const char *given, const char *follows)
{
	if (follows)
		return plx_fail(EINVAL, "%s: a value is missing: %s %s is wanted, and '%s' follows",
				given, given, option->placeholder, follows);
	return plx_fail(EINVAL, "%s: a value is missing; give %s %s", given, given,
			option->placeholder);
}

/* getopt_long returned '?' at this word; value: its optopt. */
static int fail_unknown(int value, const char *word)
{
	char given[64];

	if (value >= LONG_BASE) {
		option_of(value, given, sizeof(given));
		return plx_fail(EINVAL, "%s: takes no value; give %s alone", word, given);
	}
	if (value == 0) {
		plx_option_find(word, names, OPT_COUNT);
		return -EINVAL;
	}
	return plx_fail(EINVAL, "-%c: unknown option (--help lists all)", value);
}

/* "-lcores": getopt_long reads it as -l with the value "cores". */
static bool has_one_dash_too_few(const char *word)
{
	for (size_t i = 0; i < OPT_COUNT; i++)
		if (word[0] == '-' && strcmp(word + 1, names[i]) == 0)
			return true;
	return false;
}

/* value: getopt_long's return value for a known option; word: the last word it took. */
static int take(struct plx_eal_conf *conf, int value, const char *text, const char *word)
{
	char given[64];
	const struct eal_option *option = option_of(value, given, sizeof(given));

	if (value < LONG_BASE && text && has_one_dash_too_few(word))
		return plx_fail(EINVAL, "%s: a long option has two dashes; give -%s", word, word);
	if (text && text[0] == '\0')
		return fail_missing(option, given, NULL);
	/* No value starts with a dash: in -l --dry-run the value of -l is missing. */
	if (text && text == word && text[0] == '-')
		return fail_missing(option, given, text);
	return eal_conf_set(conf, (enum eal_option_id)(option - eal_options), text, given);
}

int plx_eal_parse(int argc, char **argv, struct plx_eal_conf *conf)
{
	struct option longs[OPT_COUNT + 1];
	char letters[2 * OPT_COUNT + 3], given[64];
	int rc = 0;

	if (argc < 1)
		return 0;
	make_getopt_tables(longs, letters);
	optind = 0;
	opterr = 0;
	while (rc == 0) {
		int value = getopt_long(argc, argv, letters, longs, NULL);

		if (value == -1)
			break;
		if (value == ':')
			rc = fail_missing(option_of(optopt, given, sizeof(given)), given, NULL);
		else if (value == '?')
			rc = fail_unknown(optopt, argv[optind - 1]);
		else
			rc = take(conf, value, optarg, argv[optind - 1]);
	}
	rc = rc ? rc : eal_conf_check_pair(conf);
	return rc ? rc : optind - 1;
}

static void add_option(struct plx_text *text, const struct eal_option *option)
{
	char left[64], letter[8] = "    ";
	const char *line = option->help;

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	snprintf(left, sizeof(left), "  %s--%s %s", letter, option->name,
		 option->placeholder ? option->placeholder : "");
	if (strlen(left) >= HELP_COLUMN) {
		plx_text_add(text, "%s\n", left);
		left[0] = '\0';
	}
	while (*line) {
		size_t len = strcspn(line, "\n");

		if (len > HELP_WIDTH)
			for (len = HELP_WIDTH; line[len] != ' ';)
				len--;
		plx_text_add(text, "%-*s%.*s\n", HELP_COLUMN, left, (int)len, line);
		left[0] = '\0';
		line += len + (line[len] != '\0');
	}
}

const char *plx_eal_options_help(void)
{
	static const char *const titles[] = {
		[EAL_GROUP_LCORES] = "Lcores:",
		[EAL_GROUP_MEMORY] = "Memory:",
		[EAL_GROUP_LINKS] = "Links:",
		[EAL_GROUP_GENERAL] = "General:",
	};
	static char out[8192]; /* the text is the same at each call */
	struct plx_text text = {.out = out, .size = sizeof(out)};

	for (size_t group = 0; group < PLX_ARRAY_LEN(titles); group++) {
		plx_text_add(&text, "%s\n", titles[group]);
		for (size_t i = 0; i < OPT_COUNT; i++)
			if (eal_options[i].group == group)
				add_option(&text, &eal_options[i]);
	}
	assert(text.used < text.size);
	return out;
}
