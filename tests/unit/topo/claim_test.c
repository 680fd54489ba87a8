/* SPDX-License-Identifier: BSD-3-Clause */
#include "count.h"
#include "foreign_socket.h"
#include "own_network.h"

#include "plx_topo.h"

#include <fcntl.h>

/* CPU ids far beyond this host's, so that no running poller interferes. */
#define CPU (PLX_CPU_MAX - 7)

PLX_TEST(a_claim_excludes_others_until_it_is_closed)
{
	struct plx_cpu_holder holder;
	int first = -1, second = -1, other = -1;

	assert_int_equal(plx_cpu_claim(CPU, &first, &holder), 0);
	assert_int_equal(plx_cpu_claim(CPU, &second, &holder), -EBUSY);
	assert_int_equal(second, -1);
	assert_int_equal(holder.pid, getpid());
	assert_error_has("CPU 4089: a poller of process");
	assert_error_has("has claimed it; take another CPU");
	assert_int_equal(plx_cpu_claim(CPU + 1, &other, NULL), 0);
	close(first);
	assert_int_equal(plx_cpu_claim(CPU, &second, NULL), 0);
	close(second);
	close(other);
}

/* "11" must not block "1": names are compared whole. */
PLX_TEST(a_claim_does_not_cover_a_cpu_whose_number_begins_alike)
{
	int one, ten;

	assert_int_equal(plx_cpu_claim(409, &one, NULL), 0);
	assert_int_equal(plx_cpu_claim(4090, &ten, NULL), 0);
	close(one);
	close(ten);
}

PLX_TEST(the_output_for_the_holder_may_be_null)
{
	int first, second;

	assert_int_equal(plx_cpu_claim(CPU, &first, NULL), 0);
	assert_fails(plx_cpu_claim(CPU, &second, NULL), -EBUSY,
		     "CPU 4089: another poller has claimed it");
	close(first);
}

/* A child that claims, reports, and waits to be killed. */
static pid_t start_holder(void)
{
	int told[2], claim;
	char byte = 0;

	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (plx_cpu_claim(CPU, &claim, NULL) || write(told[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	return pid;
}

PLX_TEST(a_claim_ends_with_its_process_even_if_killed)
{
	struct plx_cpu_holder holder;
	pid_t child = start_holder();
	int claim;

	assert_int_equal(plx_cpu_claim(CPU, &claim, &holder), -EBUSY);
	assert_int_equal(holder.pid, child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(plx_cpu_claim(CPU, &claim, &holder), 0);
	close(claim);
}

PLX_TEST(a_claim_is_not_inherited_by_exec)
{
	int claim;

	assert_int_equal(plx_cpu_claim(CPU, &claim, NULL), 0);
	assert_true(fcntl(claim, F_GETFD) & FD_CLOEXEC);
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

PLX_TEST(a_holder_that_does_not_listen_yet_has_the_claim)
{
	int bound = bind_name(-1), claim;
	struct plx_cpu_holder holder;

	assert_int_equal(plx_cpu_claim(CPU, &claim, &holder), -EBUSY);
	assert_int_equal(holder.pid, 0);
	assert_error_has("a poller of an unknown process has claimed it");
	close(bound);
}

PLX_TEST(a_full_backlog_does_not_block)
{
	int bound = bind_name(0), claim;
	struct plx_cpu_holder holder;

	for (int i = 0; i < 4; i++)
		assert_int_equal(plx_cpu_claim(CPU, &claim, &holder), -EBUSY);
	assert_int_equal(holder.pid, 0);
	close(bound);
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

PLX_TEST(claims_leak_no_descriptor)
{
	int before = count_descriptors(), claim, second;
	struct plx_cpu_holder holder;

	assert_int_equal(plx_cpu_claim(CPU, &claim, &holder), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(plx_cpu_claim(CPU, &second, &holder), -EBUSY);
	close(claim);
	assert_int_equal(count_descriptors(), before);
}

PLX_TEST(an_invalid_cpu_is_refused)
{
	int claim;

	assert_fails(plx_cpu_claim(PLX_CPU_MAX, &claim, NULL), -EINVAL,
		     "CPU 4096 is out of range; CPU ids are 0 to 4095");
}

PLX_TEST_MAIN_WITH(own_network, NULL)
