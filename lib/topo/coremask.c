/* SPDX-License-Identifier: BSD-3-Clause */
/* The core mask parser: any number of hexadecimal digits, the last of which is CPUs 0 to 3. */
#include "topo_priv.h"

#define GROUP_DIGITS 8 /* per ',' group, as the kernel and taskset write masks */

struct mask {
	struct topo_given given;
	const char *first; /* after blanks and "0x" */
	size_t digits;
};

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int fail_character(const struct mask *m, const char *at, const char *expected)
{
	bool list = *at == '-' || *at == '@' || *at == '(';

	return topo_fail_expected(&m->given, at, expected,
				  list ? "this is a mask, not a core list" : "");
}

/* Check every character and count the digits. */
static int scan(struct mask *m)
{
	const char *at = m->first, *end;
	const char *group = NULL; /* first digit after a ',' */
	size_t before = 0;        /* digits before this group */

	for (;; at++) {
		if (digit_value(*at) < 0)
			return fail_character(m, at, "a hexadecimal digit");
		for (; digit_value(*at) >= 0; at++)
			m->digits++;
		if (*at == '_')
			continue;
		end = topo_skip_blanks(at);
		if (*at != ',' && *end)
			return fail_character(
				m, end, end == at ? "a hexadecimal digit or the end" : "the end");
		if (group && m->digits - before != GROUP_DIGITS)
			return topo_fail_at(&m->given, group,
					    "a group after ',' has %d digits, as in f,00000000 for "
					    "CPUs 32-35, and this one %zu; '_' separates anywhere",
					    GROUP_DIGITS, m->digits - before);
		if (*at != ',')
			return 0;
		group = at + 1;
		before = m->digits;
	}
}

/* The highest bit is out of range; at: its digit. */
static int fail_bit(const struct mask *m, const char *at, size_t bit, const struct plx_cpuset *bits)
{
	unsigned id = 0;

	if (bit >= PLX_CPU_MAX)
		return topo_fail_at(&m->given, at, "bit %zu is out of range; CPU ids are 0 to %d",
				    bit, PLX_CPU_MAX - 1);
	while (id < PLX_LCORE_MAX - 1 && plx_cpuset_has(bits, id))
		id++;
	return topo_fail_at(&m->given, at,
			    "bit %zu is no lcore id (lcore ids are 0 to %d); to run an lcore on "
			    "CPU %zu give a core list with %u@%zu",
			    bit, PLX_LCORE_MAX - 1, bit, id, bit);
}

/* Collect the bits as CPUs. Omits those out of range and notes the first digit with one. */
static int collect(const struct mask *m, struct plx_cpuset *bits)
{
	const char *high = NULL;
	size_t left = m->digits, high_bit = 0;

	for (const char *at = m->first; left; at++) {
		int value = digit_value(*at);

		if (value < 0)
			continue;
		left--;
		if (value && !high && 4 * left >= PLX_LCORE_MAX) {
			high = at;
			high_bit = 4 * left + 31 - (size_t)__builtin_clz((unsigned)value);
		}
		for (unsigned i = 0; i < 4 && 4 * left < PLX_CPU_MAX; i++) {
			if (value >> i & 1)
				plx_cpuset_add(bits, (unsigned)(4 * left) + i);
		}
	}
	return high ? fail_bit(m, high, high_bit, bits) : 0;
}

int plx_lcore_map_parse_mask(const char *option, const char *text, struct plx_lcore_map *map_out)
{
	struct mask m = {.given = {option, text}, .first = topo_skip_blanks(text)};
	struct plx_cpuset bits = {{0}};

	if (!*m.first)
		return topo_fail_at(&m.given, text,
				    "the mask is empty; give hexadecimal digits such as 0x3");
	if (m.first[0] == '0' && (m.first[1] | 0x20) == 'x')
		m.first += 2;
	int rc = scan(&m);

	if (!rc)
		rc = collect(&m, &bits);
	if (rc)
		return rc;
	if (plx_cpuset_next(&bits, 0) == PLX_CPU_MAX)
		return topo_fail_at(&m.given, m.first,
				    "no bit is set; give the CPUs' bits, such as 0x3 for CPUs 0-1");
	return topo_map_plain(&bits, map_out);
}
