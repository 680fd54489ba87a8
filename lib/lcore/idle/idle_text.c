/* SPDX-License-Identifier: BSD-3-Clause */
/* Idle policies as text. */
#include "lcore_priv.h"

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
static const struct {
	const char *name;
	double alpha;
} presets[] = {
	{"latency", PLX_IDLE_LATENCY},
	{"balanced", PLX_IDLE_BALANCED},
	{"eco", PLX_IDLE_ECO},
};

static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(at, word, len) == 0;
}

static bool take_mode(const char *at, size_t len, struct plx_idle_conf *conf)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(modes); i++) {
		if (is_word(at, len, modes[i])) {
			conf->mode = (enum plx_idle_mode)i;
			return true;
		}
	}
	return false;
}

/* "20%" */
static bool take_budget(const char *at, size_t len, struct plx_idle_conf *conf)
{
	unsigned percent = 0;

	if (len < 2 || len > 4 || at[len - 1] != '%')
		return false;
	for (size_t i = 0; i + 1 < len; i++) {
		if (at[i] < '0' || at[i] > '9')
			return false;
		percent = percent * 10 + (unsigned)(at[i] - '0');
	}
	conf->budget = percent / 100.0;
	return percent >= 1 && percent <= 100;
}

/* Each class of word at most once. */
static bool take_word(const char *at, size_t len, struct plx_idle_conf *conf, bool *algorithm_given)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(presets); i++) {
		if (is_word(at, len, presets[i].name)) {
			if (conf->alpha > 0)
				return false;
			conf->alpha = presets[i].alpha;
			return true;
		}
	}
	for (unsigned i = 0; i < PLX_ARRAY_LEN(algorithms); i++) {
		if (is_word(at, len, algorithms[i])) {
			if (*algorithm_given)
				return false;
			*algorithm_given = true;
			conf->algorithm = (enum plx_idle_algorithm)i;
			return true;
		}
	}
	return conf->budget <= 0 && take_budget(at, len, conf);
}

int plx_idle_parse(const char *option, const char *text, struct plx_idle_conf *conf_out)
{
	struct plx_idle_conf conf = {0};
	bool algorithm_given = false;
	size_t len = strcspn(text, ":");
	const char *at = text;

	if (!take_mode(at, len, &conf))
		return plx_fail(EINVAL, "%s %s: '%.*s' is no way to be idle; " ALLOWED, option,
				text, (int)len, at);
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
	for (unsigned i = 0; i < PLX_ARRAY_LEN(presets); i++) {
		if (alpha >= presets[i].alpha && alpha <= presets[i].alpha)
			preset = presets[i].name;
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
