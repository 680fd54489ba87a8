/* SPDX-License-Identifier: BSD-3-Clause */
/* Which addresses belong to this host, and which listeners and connectors reach each other. */
#include "plx_test.h"
#include "shm.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_storage address(const char *text, uint16_t port)
{
	struct sockaddr_storage storage = {.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET};
	void *to = storage.ss_family == AF_INET
			 ? (void *)&((struct sockaddr_in *)&storage)->sin_addr
			 : (void *)&((struct sockaddr_in6 *)&storage)->sin6_addr;

	assert_int_equal(inet_pton(storage.ss_family, text, to), 1);
	address_set_port((struct sockaddr *)&storage, port);
	return storage;
}

static bool is_local(const char *text)
{
	struct sockaddr_storage storage = address(text, 7000);

	return prov_address_is_local(&shm_prov, (struct sockaddr *)&storage);
}

/* Names ------------------------------------------------------------------------------------ */

static void expect_names(const struct sockaddr_storage *storage, int count,
			 const char *const *expected)
{
	struct plx_unix_name names[3];

	assert_int_equal(shm_address_names((const struct sockaddr *)storage, names), count);
	for (int i = 0; i < count; i++) {
		assert_int_equal(names[i].address.sun_family, AF_UNIX);
		assert_int_equal(names[i].address.sun_path[0], '\0');
		assert_string_equal(names[i].address.sun_path + 1, expected[i]);
		assert_int_equal(names[i].length,
				 offsetof(struct sockaddr_un, sun_path) + 1 + strlen(expected[i]));
	}
}

PLX_TEST(the_names_of_an_address_precede_those_of_its_wildcards)
{
	struct sockaddr_storage four = address("127.0.0.1", 7000);
	struct sockaddr_storage six = address("2001:db8::1", 7000);

	expect_names(&four, 3,
		     (const char *[]){"plx_shm:127.0.0.1:7000", "plx_shm:0.0.0.0:7000",
				      "plx_shm:[::]:7000"});
	expect_names(&six, 2, (const char *[]){"plx_shm:[2001:db8::1]:7000", "plx_shm:[::]:7000"});
}

PLX_TEST(a_wildcard_has_no_duplicate_names)
{
	struct sockaddr_storage four = address("0.0.0.0", 7000), six = address("::", 7000);

	expect_names(&four, 2, (const char *[]){"plx_shm:0.0.0.0:7000", "plx_shm:[::]:7000"});
	expect_names(&six, 1, (const char *[]){"plx_shm:[::]:7000"});
}

PLX_TEST(a_mapped_address_has_the_names_of_the_ipv4_address)
{
	struct sockaddr_storage mapped = address("::ffff:10.1.2.3", 80);

	expect_names(
		&mapped, 3,
		(const char *[]){"plx_shm:10.1.2.3:80", "plx_shm:0.0.0.0:80", "plx_shm:[::]:80"});
}

PLX_TEST(link_local_addresses_of_two_interfaces_have_different_names)
{
	struct sockaddr_storage six = address("fe80::1", 7000);

	((struct sockaddr_in6 *)&six)->sin6_scope_id = if_nametoindex("lo");
	expect_names(&six, 2, (const char *[]){"plx_shm:[fe80::1%lo]:7000", "plx_shm:[::]:7000"});
	((struct sockaddr_in6 *)&six)->sin6_scope_id = 999999; /* does not exist */
	expect_names(&six, 2,
		     (const char *[]){"plx_shm:[fe80::1%999999]:7000", "plx_shm:[::]:7000"});
}

PLX_TEST(addresses_of_other_families_have_no_name)
{
	struct sockaddr_storage other = {.ss_family = AF_UNIX};

	expect_names(&other, 0, NULL);
	assert_int_equal(address_bytes((struct sockaddr *)&other), 0);
}

PLX_TEST(a_port_is_set_and_read_in_host_order)
{
	struct sockaddr_storage four = address("127.0.0.1", 258), six = address("::1", 258);

	assert_int_equal(((struct sockaddr_in *)&four)->sin_port, htons(258));
	assert_int_equal(((struct sockaddr_in6 *)&six)->sin6_port, htons(258));
	assert_int_equal(address_port((struct sockaddr *)&four), 258);
	assert_int_equal(address_port((struct sockaddr *)&six), 258);
}

/* Connecting ------------------------------------------------------------------------------- */

static int listen_at(const struct sockaddr_storage *storage)
{
	struct plx_unix_name names[3];
	int fd;

	assert_true(shm_address_names((const struct sockaddr *)storage, names) >= 1);
	fd = plx_unix_socket(&names[0], SOCK_SEQPACKET, bind);
	assert_return_code(listen(fd, 4), 0);
	return fd;
}

static bool connects_to(const struct sockaddr_storage *storage)
{
	struct plx_unix_name names[3];
	int count = shm_address_names((const struct sockaddr *)storage, names);
	bool met = false;

	for (int i = 0; i < count && !met; i++) {
		int fd = plx_unix_socket(&names[i], SOCK_SEQPACKET, connect);

		met = fd >= 0;
		if (met)
			close(fd);
	}
	return met;
}

static bool meets(const char *listener, const char *connector, uint16_t connector_port)
{
	/* Each process, perhaps another run of this test, uses another port. */
	uint16_t port = (uint16_t)(20000 + getpid() % 20000);
	struct sockaddr_storage from = address(listener, port);
	struct sockaddr_storage to = address(connector, connector_port ? connector_port : port);
	int fd = listen_at(&from);
	bool met = connects_to(&to);

	close(fd);
	assert_false(connects_to(&to));
	return met;
}

PLX_TEST(a_connector_finds_a_listener_at_its_address)
{
	assert_true(meets("127.0.0.1", "127.0.0.1", 0));
	assert_true(meets("::1", "::1", 0));
	assert_true(meets("::ffff:127.0.0.1", "127.0.0.1", 0));
}

PLX_TEST(a_connector_finds_a_wildcard_listener_at_each_local_address)
{
	assert_true(meets("0.0.0.0", "127.0.0.1", 0));
	assert_true(meets("0.0.0.0", "10.1.2.3", 0));
	assert_true(meets("::", "::1", 0));
	assert_true(meets("::", "127.0.0.1", 0));
}

PLX_TEST(a_connector_finds_no_listener_at_another_address)
{
	assert_false(meets("127.0.0.1", "127.0.0.2", 0));
	assert_false(meets("0.0.0.0", "::1", 0));
	assert_false(meets("127.0.0.1", "0.0.0.0", 0));
	assert_false(meets("127.0.0.1", "127.0.0.1", 7));
}

/* Local ------------------------------------------------------------------------------------ */

PLX_TEST(addresses_of_this_host_are_local)
{
	assert_true(is_local("127.0.0.1"));
	assert_true(is_local("127.3.2.1"));
	assert_true(is_local("0.0.0.0"));
	assert_true(is_local("::ffff:127.0.0.1"));
}

PLX_TEST(ipv6_addresses_of_this_host_are_local)
{
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd < 0)
		skip();
	close(fd);
	assert_true(is_local("::"));
	assert_int_equal(is_local("::1"), if_nametoindex("lo") != 0);
}

PLX_TEST(addresses_of_other_hosts_are_foreign)
{
	struct sockaddr_storage other = {.ss_family = AF_UNIX};

	assert_false(is_local("192.0.2.1"));
	assert_false(is_local("::ffff:192.0.2.1"));
	assert_false(is_local("2001:db8::1"));
	assert_false(prov_address_is_local(&shm_prov, (struct sockaddr *)&other));
}

PLX_TEST(multicast_and_broadcast_addresses_are_foreign)
{
	assert_false(is_local("224.0.0.1"));
	assert_false(is_local("255.255.255.255"));
	assert_false(is_local("ff0e::1"));
}

/* Finding a port --------------------------------------------------------------------------- */

/* Whatever port it had before, and whatever uses that. */
PLX_TEST(prov_address_find_port_finds_a_free_port)
{
	struct sockaddr_storage mine = address("127.0.0.1", 0), found;
	socklen_t bytes = sizeof(mine);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&mine, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&mine, &bytes), 0);
	found = mine;
	assert_int_equal(prov_address_find_port(&found), 0);
	assert_int_not_equal(address_port((struct sockaddr *)&found), 0);
	assert_int_not_equal(address_port((struct sockaddr *)&found),
			     address_port((struct sockaddr *)&mine));
	address_set_port((struct sockaddr *)&found, address_port((struct sockaddr *)&mine));
	assert_memory_equal(&found, &mine, sizeof(mine));
	close(fd);
}

PLX_TEST(prov_address_find_port_finds_none_at_a_foreign_address)
{
	struct sockaddr_storage other = address("192.0.2.1", 7000);

	assert_int_equal(prov_address_find_port(&other), -FI_EADDRNOTAVAIL);
	assert_int_equal(address_port((struct sockaddr *)&other), 7000);
}

PLX_TEST_MAIN()
