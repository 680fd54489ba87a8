/* SPDX-License-Identifier: BSD-3-Clause */
#include "../plx_test.h"

#include "fabric_address.h"

#include <arpa/inet.h>

/* Into the parts for the resolver, and those that programs print. */
PLX_TEST(programs_split_addresses_and_join_them_again)
{
	static const struct {
		const char *text, *host, *port, *program_host;
		unsigned program_port;
	} rows[] = {
		{"127.0.0.1:7000", "127.0.0.1", "7000", "127.0.0.1", 7000},
		{"[::1]:0", "::1", "0", "[::1]", 0},
		{"[fe80::1%eth0]:65535", "fe80::1%eth0", "65535", "[fe80::1%eth0]", 65535},
		{"*:1", "", "1", "*", 1},
		{":1", "", "1", "*", 1},
		{"host.example:00080", "host.example", "00080", "host.example", 80},
		{"[::ffff:192.0.2.1]:7", "192.0.2.1", "7", "[::ffff:192.0.2.1]", 7},
	};
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];
	unsigned number = 1;

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_int_equal(address_split("--listen", rows[i].text, host, port), 0);
		assert_string_equal(host, rows[i].host);
		assert_string_equal(port, rows[i].port);
		assert_works(plx_address_split("--listen", rows[i].text, host, &number));
		assert_string_equal(host, rows[i].program_host);
		assert_int_equal(number, rows[i].program_port);
	}
	assert_fails(plx_address_split("--connect", "::1:7", host, &number), -EINVAL,
		     "--connect ::1:7: an IPv6 address needs brackets");
}

PLX_TEST(a_bad_address_is_refused_with_the_error_and_the_right_form)
{
	static const char *const rows[][2] = {
		{"", "no port"},
		{"7000", "the host is missing"},
		{"a:65536", "bad port"},
		{"a:1 ", "bad port"},
		{"[::1:80", "bracket"},
		{"tcp://127.0.0.1:7000", "it needs no scheme"},
		{"[::1]x:1", "bracket"},
		{"1::2:3", "needs brackets"},
		{"[fe80::7]:1", "a link-local address needs its interface"},
	};
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX], longest[PLX_ADDRESS_MAX + 10];

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		if (address_split("--connect", rows[i][0], host, port) != -EINVAL)
			fail_msg("'%s' was accepted", rows[i][0]);
		assert_error_has("--connect");
		assert_error_has("give HOST:PORT");
		assert_error_has(rows[i][1]);
	}
	assert_int_equal(address_split("--connect", NULL, host, port), -EINVAL);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_fails(address_split("--connect", longest, host, port), -EINVAL, "too long");
}

PLX_TEST(a_formatted_address_parses_back_to_itself)
{
	static const struct {
		const char *host, *text;
		unsigned scope_id;
	} rows[] = {
		{"2001:db8::1", "[2001:db8::1]:7001", 0},
		{"fe80::1", "[fe80::1%lo]:7001", 1}, /* of the loopback interface */
		{"fe80::1", "[fe80::1%987654321]:7001", 987654321},
	};
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(7001)};
	char text[PLX_ADDRESS_MAX], host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];
	struct address_list found;

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		inet_pton(AF_INET6, rows[i].host, &address.sin6_addr);
		address.sin6_scope_id = rows[i].scope_id;
		address_format((struct sockaddr *)&address, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
	/* The interface is kept. */
	assert_int_equal(address_split("--connect", rows[1].text, host, port), 0);
	assert_int_equal(address_resolve("--connect", rows[1].text, host, &found), 0);
	assert_string_equal(found.hosts[0], "fe80::1%lo");
	address_format(NULL, text, sizeof(text));
	assert_string_equal(text, "unknown");
}

static bool same_host(const char *peer, const char *own)
{
	struct sockaddr_storage addresses[2] = {0};
	const char *texts[] = {peer, own};

	for (int i = 0; i < 2; i++) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)&addresses[i];
		struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&addresses[i];

		if (inet_pton(AF_INET, texts[i], &v4->sin_addr) == 1)
			v4->sin_family = AF_INET;
		else if (inet_pton(AF_INET6, texts[i], &v6->sin6_addr) == 1)
			v6->sin6_family = AF_INET6;
	}
	return address_is_same_host((struct sockaddr *)&addresses[0],
				    (struct sockaddr *)&addresses[1]);
}

PLX_TEST(peers_of_this_host_are_recognized)
{
	assert_true(same_host("127.1.2.3", "127.0.0.1"));
	assert_true(same_host("192.0.2.1", "192.0.2.1"));
	assert_true(same_host("::1", "::1"));
	assert_true(same_host("192.0.2.1", "::ffff:192.0.2.1"));
	assert_false(same_host("192.0.2.2", "192.0.2.1"));
	assert_false(same_host("2001:db8::2", "2001:db8::1"));
	assert_false(same_host("unknown", "127.0.0.1"));
}

PLX_TEST(local_addresses_are_recognized_without_a_connection)
{
	assert_true(address_is_here("127.0.0.1:7000"));
	assert_true(address_is_here("127.1.2.3:7000"));
	assert_false(address_is_here("192.0.2.1:7000")); /* of documentation: RFC 5737 */
	assert_false(address_is_here("unknown"));
	assert_false(address_is_here("name.invalid:7000"));
}

PLX_TEST_MAIN()
