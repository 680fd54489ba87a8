/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table, parsing argv with it, and its help text. */
#include "eal_priv.h"

#include <assert.h>
#include <string.h>

#define AS_WORDS(kind_, id_, letter_, name_, placeholder_, field_, key_, group_, help_) \
	[OPT_##id_] = {                                                                 \
		.name = (name_),                                                        \
		.placeholder = (placeholder_),                                          \
		.help = (help_),                                                        \
		.letter = (letter_),                                                    \
	},
static const struct plx_option words[OPT_COUNT + 1] = {EAL_OPTIONS(AS_WORDS)};
const struct plx_option *const plx_eal_options = words;

int plx_eal_take(int argc, char *const *argv, struct plx_eal_conf *conf)
{
	struct plx_option_use use;
	int count = plx_option_take(words, argc, argv, &use);

	if (count == -ENOENT)
		return plx_option_unknown(words, NULL, argv[0]);
	if (count < 0)
		return count;
	return eal_conf_set(conf, (enum eal_option_id)use.index, use.text, use.given) ?: count;
}

int plx_eal_parse(int argc, char **argv, struct plx_eal_conf *conf)
{
	int at = 1, count;

	for (; at < argc && argv[at][0] == '-' && argv[at][1]; at += count) {
		if (strcmp(argv[at], "--") == 0)
			return eal_conf_check_pair(conf) ?: at;
		count = plx_eal_take(argc - at, argv + at, conf);
		if (count < 0)
			return count;
	}
	return argc < 1 ? 0 : eal_conf_check_pair(conf) ?: at - 1;
}

const char *plx_eal_options_help(void)
{
	static char out[8192]; /* the text is the same at each call */
	struct plx_text text = {.out = out, .size = sizeof(out)};

	for (size_t i = 0; i < OPT_COUNT; i++) {
		if (i == 0 || strcmp(eal_options[i].group, eal_options[i - 1].group) != 0)
			plx_text_add(&text, "%s:\n", eal_options[i].group);
		plx_option_help(&text, &words[i]);
	}
	assert(text.used < text.size);
	return out;
}
