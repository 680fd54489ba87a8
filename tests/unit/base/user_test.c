/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ids belong to one user, and the creator of a UNIX socket. */
#include "base_internal.h"
#include "foreign_socket.h"

static const char *file_of(const char *text)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/plx-user-%d", (int)getpid());
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return path;
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

	for (unsigned i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		const char *path = file_of(cases[i].map);

		if (plx_id_is_known(cases[i].id, "/proc/sys/kernel/overflowuid", path) !=
		    cases[i].known)
			fail_msg("case %u", i);
		unlink(path);
	}
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
	assert_int_equal(plx_unix_owner(&name, length - 1, &user), -ESRCH);

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
