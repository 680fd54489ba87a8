/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and descriptors that links use and release. */
#include "count.h"
#include "process_fixture.h"

#include <signal.h>

/* Server memory per link: ten buffers of 4 KiB, and the provider's. With shm that is the first
 * pages of two rings, counted for both sides, and room for posted operations, all of it touched if
 * malloc fills its memory (MALLOC_PERTURB_). */
#define TCP_LINK_KIB_MAX 100
#define SHM_LINK_KIB_MAX 180
#define FIXED_KIB_MAX    2048 /* pools grow in steps */

static long resident_kib(const struct process *process)
{
	return (long)proc_number(process, "status", "VmRSS:", 10);
}

/* Sanitizers keep memory for each allocation, and freed memory. */
static void limit_memory(long grown_kib, long limit_kib)
{
	if (!PLX_SANITIZED)
		assert_in_range(grown_kib, 0, limit_kib + FIXED_KIB_MAX);
}

static unsigned descriptors_of(const struct process *process)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)process->pid);
	return (unsigned)count_entries(path);
}

static struct process *open_links(const struct server *server, const char *provider, unsigned count)
{
	struct process *client = launch("tests/apps/many_links -l 0@%u --huge none --provider %s "
					"-- --connect %s --links %u",
					client_cpu, provider, server->address, count);

	expect_out(client, "echoed %u\n", count);
	return client;
}

static void close_links(struct process *client, unsigned count)
{
	process_signal(client, SIGTERM);
	expect_out(client, "closed %u of %u, lost 0\n", count, count);
	expect_status(client, 0);
}

PROVIDER_TEST(many_links_cost_little_and_return_their_memory)
{
	unsigned count = is_soak() ? 1000 : 200;
	struct server server = serve_echo(provider);
	unsigned descriptors;
	long before_kib, grown_kib;
	struct process *client;

	ping(&server, provider, "--count 20 --warmup 0 --verify"); /* all is opened now */
	expect_out(server.process, " gone: closed");
	nap_ms(100);
	descriptors = descriptors_of(server.process);
	before_kib = resident_kib(server.process);
	client = open_links(&server, provider, count);
	grown_kib = resident_kib(server.process) - before_kib;
	print_message("%s: %u idle links: %ld KiB, %.1f KiB a link, %u descriptors\n", provider,
		      count, grown_kib, (double)grown_kib / count,
		      descriptors_of(server.process) - descriptors);
	limit_memory(grown_kib,
		     (long)count * (is_tcp(provider) ? TCP_LINK_KIB_MAX : SHM_LINK_KIB_MAX));
	ping(&server, provider, "--count 50 --warmup 5 --verify");
	close_links(client, count);
	/* It prints a line per link: read on, because a full pipe stops it. */
	for (int i = 0; i < 50 && descriptors_of(server.process) > descriptors; i++)
		process_wait(server.process, 100);
	assert_in_range(descriptors_of(server.process), 0, descriptors);

	/* Once more: memory of the first links is reused. */
	client = open_links(&server, provider, count);
	print_message("%s: the same again: %ld KiB\n", provider,
		      resident_kib(server.process) - before_kib);
	limit_memory(resident_kib(server.process) - before_kib, grown_kib + grown_kib / 10);
	close_links(client, count);
	end_server(&server);
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
