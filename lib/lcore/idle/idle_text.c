/* SPDX-License-Identifier: BSD-3-Clause */
/* Idle policies as text. */
#include "lcore_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOWED                                                                              \
	"give poll, event or adaptive, optionally followed by :latency, :balanced or :eco, " \
	":learned or :fixed, and what polling for nothing may take of the CPU, :1%% to :100%%"

static const char *const modes[] = {
	[PLX_IDLE_ADAPTIVE] = "adaptive",
	[PLX_IDLE_POLL] = "poll",
	[PLX_IDLE_EVENT] = "event",
};
static const char *const algorithms[] = {
	[PLX_IDLE_LEARNED] = "learned",
	[PLX_IDLE_FIXED] = "fixed",
};
static const char *const presets[] = {"latency", "balanced", "eco"};
static const double alphas[] = {PLX_IDLE_LATENCY, PLX_IDLE_BALANCED, PLX_IDLE_ECO};

/* Return: the number of the word at `at` in the list; -1: it has none. */
static int find(const char *const *words, unsigned count, const char *at, size_t len)
{
	for (unsigned i = 0; i < count; i++) {
		if (strlen(words[i]) == len && memcmp(at, words[i], len) == 0)
			return (int)i;
	}
	return -1;
}

#define FIND(words, at, len) find(words, PLX_ARRAY_LEN(words), at, len)

/* "20%" */
static bool take_budget(const char *at, size_t len, struct plx_idle_conf *conf)
{
	char *end;
	unsigned long percent = strtoul(at, &end, 10);

	if (len > 4 || !isdigit((unsigned char)*at) || *end != '%' || end + 1 != at + len)
		return false;
	conf->budget = (double)percent / 100;
	return percent >= 1 && percent <= 100;
}

/* Each class of word at most once. */
static bool take_word(const char *at, size_t len, struct plx_idle_conf *conf, bool *algorithm_given)
{
	int preset = FIND(presets, at, len), algorithm = FIND(algorithms, at, len);

	if (preset >= 0 && conf->alpha <= 0) {
		conf->alpha = alphas[preset];
		return true;
	}
	if (algorithm >= 0 && !*algorithm_given) {
		*algorithm_given = true;
		conf->algorithm = (enum plx_idle_algorithm)algorithm;
		return true;
	}
	return conf->budget <= 0 && take_budget(at, len, conf);
}

int plx_idle_parse(const char *option, const char *text, struct plx_idle_conf *conf_out)
{
	struct plx_idle_conf conf = {0};
	bool algorithm_given = false;
	size_t len = strcspn(text, ":");
	const char *at = text;
	int mode = FIND(modes, at, len);

	if (mode < 0)
		return plx_fail(EINVAL, "%s %s: '%.*s' is no way to be idle; " ALLOWED, option,
				text, (int)len, at);
	conf.mode = (enum plx_idle_mode)mode;
	while (at[len] == ':') {
		at += len + 1;
		len = strcspn(at, ":");
		if (conf.mode != PLX_IDLE_ADAPTIVE)
			return plx_fail(EINVAL, "%s %s: %s takes nothing after it; " ALLOWED,
					option, text, modes[conf.mode]);
		if (!take_word(at, len, &conf, &algorithm_given))
			return plx_fail(
				EINVAL,
				"%s %s: '%.*s' is unknown, or the second of its kind; " ALLOWED,
				option, text, (int)len, at);
	}
	*conf_out = conf;
	return 0;
}

const char *plx_idle_format(const struct plx_idle_conf *conf, char *out, size_t size)
{
	double alpha = conf->alpha > 0 ? conf->alpha : PLX_IDLE_BALANCED;
	const char *preset = NULL;
	char number[32], budget[16] = "";

	if (conf->mode != PLX_IDLE_ADAPTIVE) {
		snprintf(out, size, "%s", modes[conf->mode]);
		return out;
	}
	for (unsigned i = 0; i < PLX_ARRAY_LEN(alphas); i++) {
		if (alpha >= alphas[i] && alpha <= alphas[i])
			preset = presets[i];
	}
	if (!preset) {
		snprintf(number, sizeof(number), "alpha=%g", alpha);
		preset = number;
	}
	if (conf->budget > 0 && conf->budget < 1)
		snprintf(budget, sizeof(budget), ":%g%%", conf->budget * 100);
	snprintf(out, size, "adaptive:%s:%s%s", preset, algorithms[conf->algorithm], budget);
	return out;
}
