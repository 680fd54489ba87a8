/* SPDX-License-Identifier: BSD-3-Clause */
/* Claims of CPUs: making them, and listing those of all processes. */
#include "count.h"
#include "folder.h"
#include "foreign_socket.h"
#include "own_network.h"

#include "topo_priv.h"

#include <fcntl.h>

/* CPU ids far beyond this host's, so that no running poller interferes. */
#define CPU (PLX_CPU_MAX - 7)

PLX_TEST(a_claim_excludes_others_until_it_is_closed)
{
	struct plx_cpu_holder holder;
	int first = -1, second = -1, other = -1, before = count_descriptors();

	assert_fails(plx_cpu_claim(PLX_CPU_MAX, &first, NULL), -EINVAL,
		     "CPU 4096 is out of range; CPU ids are 0 to 4095");
	assert_int_equal(plx_cpu_claim(CPU, &first, &holder), 0);
	assert_true(fcntl(first, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(plx_cpu_claim(CPU, &second, &holder), -EBUSY);
	assert_int_equal(second, -1);
	assert_int_equal(holder.pid, getpid());
	assert_error_has("CPU 4089: a poller of process");
	assert_error_has("has claimed it; take another CPU");
	assert_fails(plx_cpu_claim(CPU, &second, NULL), -EBUSY,
		     "CPU 4089: another poller has claimed it");
	assert_int_equal(plx_cpu_claim(CPU + 1, &other, NULL), 0);
	close(first);
	assert_int_equal(plx_cpu_claim(CPU, &second, NULL), 0);
	close(second);
	close(other);
	assert_int_equal(count_descriptors(), before);
}

static bool claim_it(const void *arg)
{
	int claim;

	return plx_cpu_claim(CPU, &claim, NULL) == 0;
}

PLX_TEST(a_claim_ends_with_its_process_even_if_killed)
{
	struct plx_cpu_holder holder;
	pid_t child = stay_in_child(claim_it, NULL);
	int claim;

	assert_int_equal(plx_cpu_claim(CPU, &claim, &holder), -EBUSY);
	assert_int_equal(holder.pid, child);
	end_child(child);
	assert_int_equal(plx_cpu_claim(CPU, &claim, &holder), 0);
	close(claim);
}

/* The name of the index-th claim of CPU. Return: its length. */
static size_t claim_name(unsigned index, struct sockaddr_un *name)
{
	char text[64];

	snprintf(text, sizeof(text), index ? "pollux/cpu/%u.%u" : "pollux/cpu/%u", CPU, index);
	return foreign_name(text, name);
}

/* Bind the name by hand, with this backlog; -1: do not listen. */
static int bind_name(int backlog)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t length = claim_name(0, &name);

	assert_int_equal(bind(fd, (struct sockaddr *)&name, (socklen_t)length), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

PLX_TEST(a_holder_that_does_not_listen_or_accept_has_the_claim)
{
	struct plx_cpu_holder holder;
	int claim;

	for (int backlog = -1; backlog <= 0; backlog++) {
		int bound = bind_name(backlog);

		for (int i = 0; i < 4; i++)
			assert_int_equal(plx_cpu_claim(CPU, &claim, &holder), -EBUSY);
		assert_int_equal(holder.pid, 0);
		assert_error_has("a poller of an unknown process has claimed it");
		close(bound);
	}
}

static struct foreign claim_as_other_user(unsigned index, bool listens)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	size_t length = claim_name(index, &name);

	return foreign_bind(&name, length, SOCK_STREAM, listens);
}

PLX_TEST(another_user_cannot_block_a_cpu)
{
	struct plx_cpu_holder holder;
	struct foreign other;
	int claim, second;

	if (geteuid() != 0)
		skip(); /* to be another user */
	for (int listens = 0; listens < 2; listens++) {
		other = claim_as_other_user(0, listens);
		assert_int_equal(plx_cpu_claim(CPU, &claim, &holder), 0);
		assert_true(holder.other_user);
		assert_int_equal(holder.pid, listens ? other.pid : 0);
		assert_int_equal(plx_cpu_claim(CPU, &second, &holder), -EBUSY);
		assert_false(holder.other_user);
		assert_int_equal(holder.pid, getpid());
		foreign_end(&other);
		/* Its name is free, but the claim still holds. */
		assert_int_equal(plx_cpu_claim(CPU, &second, &holder), -EBUSY);
		assert_int_equal(holder.pid, getpid());
		close(claim);
		assert_int_equal(plx_cpu_claim(CPU, &claim, &holder), 0);
		assert_false(holder.other_user);
		close(claim);
	}
}

PLX_TEST(a_user_that_holds_all_names_is_reported)
{
	struct plx_cpu_holder holder;
	struct foreign others[4];
	int claim;

	if (geteuid() != 0)
		skip();
	for (unsigned i = 0; i < 4; i++)
		others[i] = claim_as_other_user(i, true);
	assert_fails(plx_cpu_claim(CPU, &claim, &holder), -EACCES, "other users hold all 4 names");
	assert_true(holder.other_user);
	for (unsigned i = 0; i < 4; i++)
		foreign_end(&others[i]);
}

/* The list --------------------------------------------------------------------------------- */

static char root[FOLDER_BYTES];
static struct plx_cpu_claimed claims[8];

PLX_FIXTURE(make_root, 0, folder_make(root))
PLX_FIXTURE(remove_root, folder_remove(root))

#define TEST(name) PLX_TEST_WITH(name, make_root, remove_root)

#define HEAD       "Num       RefCount Protocol Flags    Type St Inode Path\n"

static unsigned list(unsigned max)
{
	return plx_cpu_claims(root, claims, max);
}

TEST(claims_are_names_of_sockets_that_listen)
{
	assert_int_equal(list(8), 0);
	folder_put(root, "/proc/net/unix",
		   HEAD
		   "0000000000000001: 00000003 00000000 00000000 0001 03  1056\n"
		   "0000000000000002: 00000002 00000000 00010000 0001 01 222 @pollux/cpu/11\n"
		   "0000000000000003: 00000002 00000000 00010000 0001 01 333 @pollux/cpu/3.2\n"
		   "0000000000000004: 00000002 00000000 00000000 0001 03 444 @pollux/cpu/4\n"
		   "0000000000000005: 00000002 00000000 00010000 0001 01 555 @pollux/cpu/x\n"
		   "0000000000000006: 00000002 00000000 00010000 0001 01 666 /run/pollux/cpu/7\n"
		   "0000000000000007: 00000002 00000000 00010000 0001 01 777 @pollux/cpu/4096\n");
	assert_int_equal(list(8), 2);
	assert_int_equal(claims[0].cpu, 3);
	assert_int_equal(claims[0].inode, 333);
	assert_false(claims[0].elsewhere);
	assert_int_equal(claims[1].cpu, 11);
	assert_int_equal(list(1), 1);
}

TEST(the_search_starts_at_the_lowest_cpu_or_where_the_network_namespace_says)
{
	struct plx_cpuset cpus = {0};
	char path[256];
	struct stat network;

	assert_int_equal(plx_cpu_first(root, &cpus), PLX_CPU_MAX);
	for (unsigned cpu = 3; cpu < 512; cpu++)
		plx_cpuset_add(&cpus, cpu);
	assert_false(plx_cpu_claims_hidden(root));
	assert_int_equal(plx_cpu_first(root, &cpus), 3);
	folder_put(root, "/proc/self/ns/pid", "");
	assert_true(plx_cpu_claims_hidden(root));
	assert_int_equal(plx_cpu_first(root, &cpus), 3); /* no number to hash */
	folder_put(root, "/proc/self/ns/net", "");
	snprintf(path, sizeof(path), "%s/proc/self/ns/net", root);
	assert_int_equal(stat(path, &network), 0);
	assert_int_equal(plx_cpu_first(root, &cpus), topo_spread(&cpus, network.st_ino));
}

/* A container takes five or six numbers, one for each of its namespaces. */
PLX_TEST(containers_that_start_one_after_another_spread_over_the_cpus)
{
	struct plx_cpuset cpus = {0};
	unsigned found[12] = {0};

	for (unsigned cpu = 4; cpu < 12; cpu++)
		plx_cpuset_add(&cpus, cpu);
	for (unsigned step = 1; step <= 8; step++) {
		memset(found, 0, sizeof(found));
		for (unsigned i = 0; i < 80; i++)
			found[topo_spread(&cpus, 4026532176u + i * step)]++;
		for (unsigned cpu = 4; cpu < 12; cpu++)
			if (found[cpu] < 2 || found[cpu] > 20)
				fail_msg("step %u: %u of 80 on CPU %u", step, found[cpu], cpu);
	}
}

PLX_TEST_MAIN_WITH(own_network, NULL)
