/* SPDX-License-Identifier: BSD-3-Clause */
/* A listener of one provider, in another process, holds its port against the other provider. */
#include "base_internal.h"
#include "foreign_socket.h"
#include "in_child.h"
#include "pair.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

/* Listening ------------------------------------------------------------------------------------ */

struct listening {
	struct side party;
	struct fid_pep *pep;
};

/* Return: as fi_listen. */
static int listen_with(const struct prov *prov, const char *host, const char *port,
		       struct listening *listening)
{
	const struct prov *before = tested;

	tested = prov;
	side_open(&listening->party, side_info(host, port, FI_SOURCE));
	tested = before;
	listening->pep = side_pep(&listening->party);
	return fi_listen(listening->pep);
}

static void stop(struct listening *listening)
{
	assert_int_equal(fi_close(&listening->pep->fid), 0);
	side_close(&listening->party);
}

static void write_port(struct listening *listening, char *out)
{
	struct sockaddr_storage name = name_of(&listening->pep->fid);

	sprintf(out, "%u", address_port((struct sockaddr *)&name));
}

static const struct prov *other_provider(void)
{
	return tested == &shm_kind ? &tcp_kind : &shm_kind;
}

/* Another process that listens with the provider under test. */
struct holder {
	pid_t pid;
	char port[8];
};

static struct holder hold(const char *host, const char *port)
{
	struct holder holder = {0};
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	holder.pid = fork();
	assert_true(holder.pid >= 0);
	if (holder.pid == 0) {
		struct listening listening;

		assert_int_equal(listen_with(tested, host, port, &listening), 0);
		write_port(&listening, holder.port);
		if (write(fds[1], holder.port, sizeof(holder.port)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], holder.port, sizeof(holder.port)), sizeof(holder.port));
	close(fds[0]);
	return holder;
}

static void release(struct holder *holder)
{
	kill(holder->pid, SIGKILL);
	assert_int_equal(waitpid(holder->pid, NULL, 0), holder->pid);
}

/* Tests ---------------------------------------------------------------------------------------- */

static void expect(const char *held, const char *wanted, bool is_refused)
{
	struct holder holder = hold(held, NULL);
	struct listening listening;
	char why[128];

	assert_int_equal(listen_with(other_provider(), wanted, holder.port, &listening),
			 is_refused ? -FI_EADDRINUSE : 0);
	sprintf(why,
		strchr(held, ':') ? "process %d (unit_prov_port) listens at [%s]:%s %s; give "
				  : "process %d (unit_prov_port) listens at %s:%s %s; give ",
		(int)holder.pid, held, holder.port,
		tested->same_host ? "over shared memory (plx_shm)" : "on TCP");
	if (is_refused)
		assert_non_null(strstr(prov_pep_why(listening.pep), why));
	else
		assert_null(prov_pep_why(listening.pep));
	release(&holder);
	if (is_refused) /* nothing is left of the refusal */
		assert_int_equal(fi_listen(listening.pep), 0);
	stop(&listening);
}

PLX_TEST(a_port_is_held_for_the_other_provider)
{
	static const struct {
		const char *held, *wanted;
		bool is_refused;
	} rows[] = {
		{"127.0.0.1", "127.0.0.1", true},
		{"0.0.0.0", "127.0.0.1", true},
		{"127.0.0.1", "0.0.0.0", true},
		{"127.0.0.2", "127.0.0.1", false},
		{"::1", "::1", true},
		{"::", "127.0.0.1", true},
		{"127.0.0.1", "::", true},
		{"::1", "127.0.0.1", false},
		{"0.0.0.0", "::1", false},
	};
	size_t count = tested_has_ipv6() ? PLX_ARRAY_LEN(rows) : 4;

	for (size_t i = 0; i < count; i++)
		expect(rows[i].held, rows[i].wanted, rows[i].is_refused);
}

PLX_TEST(a_listener_of_another_user_holds_no_port_by_its_name)
{
	struct listening listening, before;
	struct plx_unix_name name;
	struct foreign other;
	char port[8];

	if (geteuid() != 0 || tested != &shm_kind)
		skip();
	assert_int_equal(listen_with(&tcp_kind, "127.0.0.1", NULL, &before), 0);
	write_port(&before, port);
	stop(&before);
	name = plx_unix_name(PROV_SHM_NAME ":127.0.0.1:%s", port);
	other = foreign_bind(&name.address, name.length, SOCK_SEQPACKET, true);
	assert_int_equal(listen_with(&tcp_kind, "127.0.0.1", port, &listening), 0);
	stop(&listening);
	foreign_end(&other);
}

/* In a network namespace whose ports are 40000 and 40001. Return: whether there is one. */
static bool has_two_ports(void)
{
	FILE *file;

	if (unshare(CLONE_NEWNET) != 0)
		return false;
	file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "we");
	if (!file)
		return false;
	fputs("40000 40001", file);
	return fclose(file) == 0;
}

/* The kernel chooses a port that is free on TCP. */
static void listen_at_free_ports(void)
{
	struct listening listening;
	struct holder holder;
	char port[8];

	if (!has_two_ports())
		return;
	holder = hold("0.0.0.0", NULL);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(listen_with(other_provider(), "0.0.0.0", NULL, &listening), 0);
		write_port(&listening, port);
		assert_string_not_equal(port, holder.port);
		stop(&listening);
	}
	release(&holder);
}

static void listen_without_a_free_port(void)
{
	struct holder first, second;
	struct listening listening;
	char port[8];

	if (!has_two_ports())
		return;
	first = hold("0.0.0.0", "40000");
	second = hold("0.0.0.0", "40001");
	assert_int_equal(listen_with(other_provider(), "0.0.0.0", NULL, &listening),
			 -FI_EADDRINUSE);
	write_port(&listening, port);
	assert_string_equal(port, "0");
	release(&second);
	assert_int_equal(fi_listen(listening.pep), 0);
	write_port(&listening, port);
	assert_string_equal(port, "40001");
	stop(&listening);
	release(&first);
}

PLX_TEST(a_listener_without_a_port_finds_one_that_is_free_for_both_or_may_try_again)
{
	if (geteuid() != 0)
		skip();
	assert_passes(listen_at_free_ports);
	assert_passes(listen_without_a_free_port);
}

TESTED_MAIN()
