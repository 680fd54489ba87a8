/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal_priv.h"
#include "plx_test.h"

/* Lcores 0 to 3, and 8. */
static struct plx_lcore_place places[] = {
	{0, {{1 << 0}}}, {1, {{1 << 1}}}, {2, {{1 << 2}}}, {3, {{1 << 3}}}, {8, {{1 << 8}}}};
static const struct plx_lcore_map map = {PLX_ARRAY_LEN(places), places};

static struct plx_idle_conf others;

static int parse(const char *text, struct plx_idle_conf *idle)
{
	struct eal_claims claims = {0};

	others = (struct plx_idle_conf){0};
	plx_cpuset_add(&claims.contested, 1);
	memset(idle, 0, PLX_ARRAY_LEN(places) * sizeof(*idle));
	return eal_idle_value(&(struct plx_eal_conf){.idle = text}, &map, &claims, idle, &others);
}

/* A letter per lcore's mode, and one for threads that are adopted: a, p or e. */
static void expect(const char *text, const char *modes)
{
	struct plx_idle_conf idle[PLX_ARRAY_LEN(places)];

	assert_works(parse(text, idle));
	assert_int_equal("ape"[others.mode], modes[PLX_ARRAY_LEN(places)]);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(places); i++) {
		assert_int_equal("ape"[idle[i].mode], modes[i]);
		assert_int_equal(idle[i].crowded, i == 1);
	}
}

PLX_TEST(each_lcore_has_its_idle_policy_and_parameters)
{
	struct plx_idle_conf idle[PLX_ARRAY_LEN(places)];

	expect(NULL, "aaaaaa");
	expect("poll", "pppppp");
	expect("0:poll", "paaaaa");
	expect("0:poll,1-3:event", "peeeaa");
	expect("0:poll,event", "peeeee");
	expect("event,0:poll", "peeeee");
	expect("0,2,8:poll,event", "pepepe");
	expect("0-3:adaptive:eco:20%,8:poll", "aaaapa");

	assert_int_equal(parse("0:adaptive:eco:fixed,adaptive:latency:20%", idle), 0);
	assert_true(idle[0].alpha > 0.9 && idle[1].alpha < 0.1);
	assert_int_equal(idle[0].algorithm, PLX_IDLE_FIXED);
	assert_true(idle[0].budget <= 0 && idle[4].budget > 0.19);
}

PLX_TEST(bad_idle_policies_are_refused)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"", "'' has no policy"},
		{"pol", "idle pol: 'pol' is no way to be idle"},
		{"0:poll,", "'' has no policy"},
		{"0", "'0' has no policy; give one for all lcores"},
		{"0,poll", "'0,poll' has no policy"},
		{"4:poll", "lcore 4 is not one of the lcores; give some of 0-3,8"},
		{"0-99999999999999999999:poll", "lcore 4 is not one of"},
		{"3-1:poll", "'3-1' is no lcore, and no range of them"},
		{"0:poll,0:event", "lcore 0 stands there twice"},
		{"poll,event", "there are two policies without lcores"},
		{"0:adaptive:fast", "'fast' is unknown, or the second of its kind"},
	};
	struct plx_idle_conf idle[PLX_ARRAY_LEN(places)];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++)
		assert_fails(parse(rows[i].text, idle), -EINVAL, rows[i].error);
}

PLX_TEST_MAIN()
