/* SPDX-License-Identifier: BSD-3-Clause */
/* Convert the texts of options to values: those of programs and of the EAL. */
#include "eal_priv.h"
#include "plx_address.h"

#include <stdio.h>
#include <string.h>

int plx_option_check_text(const char *given, const char *text)
{
	char printable[128], one[PLX_PRINTABLE_BYTES];
	size_t length = strlen(text);

	for (size_t at = 0; at < length;) {
		at += plx_printable_next(text + at, length - at, "\\", one);
		if (one[0] == '\\' && one[1])
			return plx_fail(EINVAL,
					"%s \"%s\": a control character, or not UTF-8; give "
					"printable characters",
					given, plx_printable(text, printable, sizeof(printable)));
	}
	return 0;
}

int plx_option_choice(const char *given, const char *text, const char *const *words,
		      unsigned *index_out)
{
	char allowed[256] = "";

	for (unsigned i = 0; words[i]; i++) {
		if (strcmp(text, words[i]) == 0) {
			*index_out = i;
			return 0;
		}
		plx_list_add(allowed, sizeof(allowed), words[i]);
	}
	return plx_fail(EINVAL, "%s %s: unknown value; give one of: %s", given, text, allowed);
}

/* Kinds of programs ------------------------------------------------------------------------ */

static int store_address(const char *given, const char *text, const char **to)
{
	int rc = plx_option_check_text(given, text) ?: plx_address_check(given, text);

	if (rc == 0)
		*to = text;
	return rc ? -EINVAL : 0;
}

static int store_in_list(const char *given, const char *text, struct plx_app_list *list)
{
	if (list->count == PLX_APP_LIST_MAX)
		return plx_fail(EINVAL, "%s %s: it was given %d times already; give at most %d",
				given, text, PLX_APP_LIST_MAX, PLX_APP_LIST_MAX);
	list->at[list->count++] = text;
	return 0;
}

/* Kinds of the EAL ------------------------------------------------------------------------- */

static int store_number(const struct plx_option *option, const char *given, const char *text,
			uint32_t *to)
{
	const char *word = option->choices ? option->choices[0] : NULL;
	uint64_t number = UINT32_MAX;
	int rc = 0;

	if (!word || strcmp(text, word) != 0)
		rc = plx_parse_uint(given, text, option->min, option->max, &number);
	if (rc)
		return word ? plx_fail(EINVAL, "%s, or %s", plx_error(), word) : rc;
	*to = (uint32_t)number;
	return 0;
}

static int store_power(const struct plx_option *option, const char *given, const char *text,
		       uint32_t *to)
{
	uint32_t number = 0;
	int rc = store_number(option, given, text, &number);

	if (rc)
		return rc;
	if (number & (number - 1))
		return plx_fail(EINVAL, "%s %s: not a power of two; give one from %u to %u", given,
				text, (unsigned)option->min, (unsigned)option->max);
	*to = number;
	return 0;
}

static int store_bool(const struct plx_option *option, const char *given, const char *text,
		      bool *to)
{
	unsigned value = 0;
	int rc = plx_option_choice(given, text, option->choices, &value);

	if (rc == 0)
		*to = value == 1;
	return rc;
}

static int store_node_bytes(const struct plx_option *option, const char *given, const char *text,
			    size_t *bytes)
{
	char what[256];
	uint64_t value;

	memset(bytes, 0, PLX_EAL_NODES_MAX * sizeof(*bytes));
	for (unsigned node = 0; text; node++) {
		size_t len = strcspn(text, ",");
		char amount[32] = ""; /* none if it is longer than any valid one */

		if (node == PLX_EAL_NODES_MAX)
			return plx_fail(EINVAL, "%s: more than %d NUMA nodes", given,
					PLX_EAL_NODES_MAX);
		snprintf(what, sizeof(what), "%s, node %u:", given, node);
		if (len < sizeof(amount))
			memcpy(amount, text, len);
		if (plx_parse_mib(what, amount, option->max, &value) != 0)
			return -EINVAL;
		bytes[node] = value;
		text = text[len] ? text + len + 1 : NULL;
	}
	return 0;
}

static int store_heartbeat(const struct plx_option *option, const char *given, const char *text,
			   uint64_t *heartbeat_ns)
{
	struct plx_eal_conf *conf = plx_container_of(heartbeat_ns, struct plx_eal_conf,
						     heartbeat_ns);
	const char *colon = strchr(text, ':');
	char what[256], period[64];
	int rc;

	if (strcmp(text, option->choices[0]) == 0) {
		conf->heartbeat_ns = conf->dead_after_ns = PLX_NEVER;
		return 0;
	}
	conf->dead_after_ns = 0;
	snprintf(period, sizeof(period), "%.*s", (int)strcspn(text, ":"), text);
	rc = plx_parse_duration(given, period, option->min, option->max, heartbeat_ns);
	if (rc)
		return plx_fail(EINVAL, "%s, or %s", plx_error(), option->choices[0]);
	if (!colon)
		return 0;
	snprintf(what, sizeof(what), "%s, silence", given);
	return plx_parse_duration(what, colon + 1, PLX_DEAD_AFTER_MIN * conf->heartbeat_ns,
				  PLX_DEAD_AFTER_NS_MAX, &conf->dead_after_ns);
}

int plx_option_store(const struct plx_option *option, const char *given, const char *text, void *to)
{
	switch ((unsigned)option->kind) {
	case PLX_APP_FLAG:
		*(bool *)to = true;
		return 0;
	case PLX_APP_STRING:
		*(const char **)to = text;
		return 0;
	case PLX_APP_ADDRESS:
		return store_address(given, text, to);
	case PLX_APP_UINT:
		return plx_parse_uint(given, text, option->min, option->max, to);
	case PLX_APP_SIZE:
		return plx_parse_size(given, text, option->min, option->max, to);
	case PLX_APP_DURATION:
		return plx_parse_duration(given, text, option->min, option->max, to);
	case PLX_APP_CHOICE:
		return plx_option_choice(given, text, option->choices, to);
	case PLX_APP_LIST:
		return store_in_list(given, text, to);
	case PLX_OPTION_NUMBER:
		return store_number(option, given, text, to);
	case PLX_OPTION_POWER:
		return store_power(option, given, text, to);
	case PLX_OPTION_BOOL:
		return store_bool(option, given, text, to);
	case PLX_OPTION_NODE_BYTES:
		return store_node_bytes(option, given, text, to);
	case PLX_OPTION_HEARTBEAT:
		return store_heartbeat(option, given, text, to);
	}
	return plx_fail(EINVAL, "%s: an option of unknown kind", given);
}
