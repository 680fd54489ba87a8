/* SPDX-License-Identifier: BSD-3-Clause */
/* Which hosts the limits per address count as one. */
#include "plx_test.h"
#include "sockaddr.h"

#include <arpa/inet.h>

static struct in6_addr host_of(const char *text)
{
	struct in6_addr host;

	assert_int_equal(inet_pton(AF_INET6, text, &host), 1);
	return host;
}

static const char *group_of(const char *text)
{
	static char out[ADDRESS_GROUP_TEXT_BYTES];
	struct in6_addr host = host_of(text), group = address_group(&host);

	return address_group_format(&group, out, sizeof(out));
}

PLX_TEST(an_ipv6_host_counts_with_its_slash_64)
{
	assert_string_equal(group_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
	assert_string_equal(group_of("2001:db8:1:2::"), "2001:db8:1:2::/64");
	assert_string_equal(group_of("2001:db8:1:3::1"), "2001:db8:1:3::/64");
	assert_string_equal(group_of("0:0:0:1::1"), "0:0:0:1::/64");
}

PLX_TEST(an_ipv4_host_and_loopback_count_alone)
{
	assert_string_equal(group_of("::ffff:10.0.0.1"), "10.0.0.1");
	assert_string_equal(group_of("::ffff:10.0.0.2"), "10.0.0.2");
	assert_string_equal(group_of("::1"), "::1");
	assert_string_equal(group_of("::"), "::");
}

PLX_TEST(a_48_is_the_network_of_its_groups_and_equals_none_of_them)
{
	struct in6_addr one = host_of("2001:db8:1:2::"), other = host_of("2001:db8:1::"), above,
			same;
	char text[ADDRESS_GROUP_TEXT_BYTES];

	assert_true(address_network(&one, &above));
	assert_true(address_network(&other, &same));
	assert_memory_equal(&above, &same, sizeof(above));
	assert_memory_not_equal(&above, &other, sizeof(above));
	assert_string_equal(address_group_format(&above, text, sizeof(text)), "2001:db8:1::/48");
	one = host_of("::ffff:192.0.2.1");
	assert_false(address_network(&one, &above));
}

PLX_TEST_MAIN()
