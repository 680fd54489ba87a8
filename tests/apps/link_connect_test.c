/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that cannot connect or listen report why, with their status. */
#include "process_fixture.h"

PROVIDER_TEST(a_busy_port_is_reported)
{
	struct server server = serve_echo(provider);
	struct process *second = launch("apps/plx-echo -l 0@%u --huge none --provider %s "
					"-- --listen %s",
					client_cpu, provider, server.address);

	expect_failure(second, 1, "plx-echo: listen on %s: the port is in use; give ",
		       server.address);
	end_server(&server);
}

/* Otherwise clients of one address would reach either server. */
PROCESS_TEST(a_server_over_one_transport_holds_its_port_on_the_other)
{
	struct server server = serve_echo("shm");
	struct process *second = launch("apps/plx-echo -l 0@%u --huge none -- --listen %s",
					client_cpu, server.address);

	expect_failure(second, 1,
		       "plx-echo: listen on %s: process %d (plx-echo) listens at %s over shared "
		       "memory (plx_shm); give",
		       server.address, (int)server.process->pid, server.address);
	end_server(&server);
}

/* Status 2: the command line is wrong. */
PROCESS_TEST(wrong_addresses_and_options_are_reported)
{
	static const struct {
		const char *words;
		int status;
		const char *text;
	} rows[] = {
		{"apps/plx-ping --connect 127.0.0.1:1", 1, "127.0.0.1:1 refused the connection"},
		{"apps/plx-ping --connect no.such.host.invalid:7", 1, "no.such.host.invalid:7"},
		{"apps/plx-echo --listen 192.0.2.7:0", 1,
		 "listen on 192.0.2.7:0: that address is not this host's"},
		{"apps/plx-ping --connect 127.0.0.1:99999", 2,
		 "--connect 127.0.0.1:99999: bad port; give HOST:PORT"},
		{"apps/plx-echo --listen 7000", 2,
		 "--listen 7000: the host is missing; give HOST:PORT"},
		{"apps/plx-echo --listen tcp://127.0.0.1:7000", 2,
		 "it needs no scheme; give HOST:PORT"},
		{"apps/plx-echo", 2, "--listen ADDR is missing"},
		{"apps/plx-ping", 2, "give one of --listen ADDR, --connect ADDR and --self"},
		{"apps/plx-ping --listen *:0 --connect a:1", 2, "give one of --listen ADDR, "},
		{"apps/plx-ping --connect a:1 --count 1 --duration 1", 2, "exclude each other"},
		{"apps/plx-ping --connect a:1 --arrival poisson", 2, "give --rate R too"},
		{"apps/plx-ping --connect a:1 --size 17M", 2, "--size 17M"},
		{"apps/plx-ping --listen 127.0.0.1:0 --rx-buf 255", 2, "--rx-buf 255"},
		{"apps/plx-echo --tcp sendbytes=1 -- --listen 127.0.0.1:0", 2,
		 "--tcp sendbytes=1: 'sendbytes=1' is no setting; give KEY=VALUE,... with keys "},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct process *process = launch("%s", rows[i].words);

		expect_failure(process, rows[i].status, "%s", rows[i].text);
		assert_string_equal(process_out(process), "");
	}
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
