/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a peer: the hosts that the limits per address count as one, the protocol that it
 * speaks, and the user who created a UNIX socket. */
#include "base_internal.h"
#include "folder.h"
#include "foreign_socket.h"
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

PLX_TEST(an_ipv6_host_counts_with_its_slash_64_and_others_alone)
{
	assert_string_equal(group_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
	assert_string_equal(group_of("0:0:0:1::1"), "0:0:0:1::/64");
	assert_string_equal(group_of("::ffff:10.0.0.1"), "10.0.0.1");
	assert_string_equal(group_of("::1"), "::1");
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

static void expect(const char *name, const void *bytes, size_t length)
{
	const char *found = plx_sounds_like(bytes, length);

	if (!name)
		assert_null(found);
	else
		assert_string_equal(found ? found : "nothing", name);
}

PLX_TEST(known_protocols_are_named)
{
	static const uint8_t tls[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01};
	static const uint8_t zmtp[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3};
	static const uint8_t link[] = {1, 0, 0, 0, 48, 0, 0,   0,   6,   0,
				       0, 0, 0, 0, 0,  0, '1', 'X', 'L', 'P'};
	static const uint8_t netio[] = {1, 1, 2, 0, 'N', 't', 'I', 'O', 0};

	expect("HTTP", "GET / HTTP/1.1\r\n", 16);
	expect("HTTP", "HTTP/1.1 400 Bad Request\r\n", 26);
	expect("HTTP", "<!DOCTYPE HTML PUBLIC \"-//W3C", 29);
	expect("TLS", tls, sizeof(tls));
	expect("TLS", "\x15\x03\x01\x00\x02\x02\x46", 7);
	expect("SSH", "SSH-2.0-OpenSSH_9.2\r\n", 21);
	expect("ZeroMQ", zmtp, sizeof(zmtp));
	expect("a Pollux link", link, sizeof(link));
	expect("NetIO", netio, sizeof(netio));
	expect("Pollux RPC", "PRPC\1\1\1", 7);
	expect(NULL, "", 0);
	expect(NULL, "GET", 3);
	expect(NULL, "\xff\0\0\0\0\0\0\0\1", 9);
	expect(NULL, "hello", 5);
}

PLX_TEST(the_overflow_id_is_no_user_unless_all_ids_are_mapped)
{
	static const struct {
		const char *map;
		uint32_t id;
		bool known;
	} cases[] = {
		{"0 0 4294967295\n", 65534, true},
		{"", 65534, false},
		{"", 0, true},
		{"0 100000 65536\n", 65534, false}, /* a container: other users too */
		{"0 100000 65536\n", 1000, true},
		{"0 0 1\n1 100001 65535\n", 65534, false},
		{"0 0 65534\n65534 65534 4294901761\n", 65534, true},
		{"nonsense", 65534, false},
	};
	char root[FOLDER_BYTES], path[FOLDER_BYTES + 4];

	folder_make(root);
	snprintf(path, sizeof(path), "%s/map", root);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		folder_put(root, "/map", cases[i].map);
		if (plx_id_is_known(cases[i].id, "/proc/sys/kernel/overflowuid", path) !=
		    cases[i].known)
			fail_msg("case %u", i);
	}
	folder_remove(root);
	assert_false(plx_id_is_known(65534, "/nonexistent", "/nonexistent"));
}

PLX_TEST(a_socket_belongs_to_the_user_who_created_it)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	size_t length = foreign_name("pollux-test-owner", &name);
	uid_t user = 1;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), client;

	assert_int_equal(plx_unix_owner(&name, length, &user), -ESRCH);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, (socklen_t)length), 0);
	assert_int_equal(plx_unix_owner(&name, length, &user), 0);
	assert_int_equal(user, geteuid());

	/* With a pending connection, which belongs to nobody yet. */
	assert_int_equal(listen(fd, 1), 0);
	client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&name, (socklen_t)length), 0);
	user = 1;
	assert_int_equal(plx_unix_owner(&name, length, &user), 0);
	assert_int_equal(user, geteuid());
	close(client);
	close(fd);

	if (geteuid() != 0)
		skip(); /* to be another user */
	struct foreign other = foreign_bind(&name, length, SOCK_STREAM, false);
	assert_int_equal(plx_unix_owner(&name, length, &user), 0);
	assert_int_equal(user, FOREIGN_USER);
	foreign_end(&other);
}

PLX_TEST_MAIN()
