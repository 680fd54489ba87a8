/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of a listener's socket, and which listeners and connectors find each other by them. */
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

PLX_TEST(the_names_of_an_address_precede_those_of_its_wildcards)
{
	static const struct {
		const char *address;
		const char
			*link; /* the interface of a link-local one, "" one that does not exist */
		const char *names[3];
	} rows[] = {
		{"127.0.0.1",
		 NULL,
		 {"plx_shm:127.0.0.1:7000", "plx_shm:0.0.0.0:7000", "plx_shm:[::]:7000"}},
		{"2001:db8::1", NULL, {"plx_shm:[2001:db8::1]:7000", "plx_shm:[::]:7000"}},
		{"0.0.0.0", NULL, {"plx_shm:0.0.0.0:7000", "plx_shm:[::]:7000"}},
		{"::", NULL, {"plx_shm:[::]:7000"}},
		{"::ffff:10.1.2.3",
		 NULL,
		 {"plx_shm:10.1.2.3:7000", "plx_shm:0.0.0.0:7000", "plx_shm:[::]:7000"}},
		{"fe80::1", "lo", {"plx_shm:[fe80::1%lo]:7000", "plx_shm:[::]:7000"}},
		{"fe80::1", "", {"plx_shm:[fe80::1%999999]:7000", "plx_shm:[::]:7000"}},
	};
	struct sockaddr other = {.sa_family = AF_UNIX};
	struct plx_unix_name names[3];

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct sockaddr_storage it = address(rows[i].address, 7000);
		int count = 0;

		if (rows[i].link)
			((struct sockaddr_in6 *)&it)->sin6_scope_id =
				*rows[i].link ? if_nametoindex(rows[i].link) : 999999;
		for (; count < 3 && rows[i].names[count]; count++)
			;
		assert_int_equal(shm_address_names((struct sockaddr *)&it, names), count);
		for (int j = 0; j < count; j++) {
			assert_int_equal(names[j].address.sun_family, AF_UNIX);
			assert_int_equal(names[j].address.sun_path[0], '\0');
			assert_string_equal(names[j].address.sun_path + 1, rows[i].names[j]);
			assert_int_equal(names[j].length, offsetof(struct sockaddr_un, sun_path) +
								  1 + strlen(rows[i].names[j]));
		}
	}
	assert_int_equal(shm_address_names(&other, names), 0);
}

PLX_TEST_MAIN()
