/* SPDX-License-Identifier: BSD-3-Clause */
/* The core mask parser: any number of hexadecimal digits, the last of which is CPUs 0 to 3. */
#include "topo_priv.h"

#include <ctype.h>
#include <string.h>

#define GROUP_DIGITS 8 /* per ',' group, as the kernel and taskset write masks */

static int fail_character(const struct topo_given *given, const char *at, const char *expected)
{
	bool list = *at && strchr("-@(", *at);

	return topo_fail_expected(given, at, expected,
				  list ? "this is a mask, not a core list" : "");
}

/* Check every character. */
static int scan(const struct topo_given *given, const char *at, const char **end_out)
{
	const char *group = NULL; /* first digit after a ',' */
	size_t digits = 0;        /* of the group */

	for (;; at++) {
		size_t more = strspn(at, "0123456789abcdefABCDEF");

		if (!more)
			return fail_character(given, at, "a hexadecimal digit");
		at += more;
		digits += more;
		if (*at == '_')
			continue;
		*end_out = topo_skip_blanks(at);
		if (*at != ',' && **end_out)
			return fail_character(given, *end_out,
					      *end_out == at ? "a hexadecimal digit or the end"
							     : "the end");
		if (group && digits != GROUP_DIGITS)
			return topo_fail_at(given, group,
					    "a group after ',' has %d digits, as in f,00000000 for "
					    "CPUs 32-35, and this one %zu; '_' separates anywhere",
					    GROUP_DIGITS, digits);
		if (*at != ',')
			return 0;
		group = at + 1;
		digits = 0;
	}
}

/* Collect the bits of the digits between first and end as CPUs. */
static int collect(const struct topo_given *given, const char *first, const char *end,
		   struct plx_cpuset *bits)
{
	const char *high_at = NULL;
	size_t bit = 0, high = 0;

	while (end > first) {
		unsigned char c = (unsigned char)*--end;
		int value = isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10;

		if (!isxdigit(c))
			continue;
		for (int i = 0; i < 4; i++, bit++) {
			if (!(value >> i & 1))
				continue;
			if (bit < PLX_LCORE_MAX) {
				plx_cpuset_add(bits, (unsigned)bit);
			} else {
				high = bit;
				high_at = end;
			}
		}
	}
	if (high >= PLX_CPU_MAX)
		return topo_fail_at(given, high_at, "bit %zu is out of range; CPU ids are 0 to %d",
				    high, PLX_CPU_MAX - 1);
	if (high)
		return topo_fail_no_lcore(given, high_at, "bit ", (unsigned)high,
					  "give a core list with");
	return 0;
}

int plx_lcore_map_parse_mask(const char *option, const char *text, struct plx_lcore_map *map_out)
{
	const struct topo_given given = {option, text};
	const char *first = topo_skip_blanks(text), *end = first;
	struct plx_cpuset bits = {{0}};
	int rc;

	if (!*first)
		return topo_fail_at(&given, text,
				    "the mask is empty; give hexadecimal digits such as 0x3");
	if (first[0] == '0' && (first[1] | 0x20) == 'x')
		first += 2;
	rc = scan(&given, first, &end) ?: collect(&given, first, end, &bits);
	if (rc)
		return rc;
	if (plx_cpuset_next(&bits, 0) == PLX_CPU_MAX)
		return topo_fail_at(&given, first,
				    "no bit is set; give the CPUs' bits, such as 0x3 for CPUs 0-1");
	return topo_map_plain(&bits, map_out);
}
