/* SPDX-License-Identifier: BSD-3-Clause */
/* What links cost: memory, descriptors, system calls, time to start. */
#include "fixture.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory and descriptors ------------------------------------------------------------------- */

/* Of server memory, for each link: ten buffers of 4 KiB, and the provider's own. With shm that is
 * the first pages of two rings, which both sides count, and room for what may be posted, all of it
 * touched where malloc fills what it gives (MALLOC_PERTURB_). */
#define TCP_LINK_KIB_MAX 100
#define SHM_LINK_KIB_MAX 180
#define FIXED_KIB_MAX    2048 /* pools grow in steps */

static long resident_kib(const struct process *process)
{
	char path[64];
	long total, resident = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)process->pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &total, &resident), 2);
	fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Sanitizers keep memory of their own for each piece, and what was freed. */
static void limit_memory(long grown_kib, long limit_kib)
{
	if (!PLX_SANITIZED)
		assert_in_range(grown_kib, 0, limit_kib + FIXED_KIB_MAX);
}

static unsigned count_descriptors(const struct process *process)
{
	char path[64];
	unsigned count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)process->pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static struct process *open_links(const struct server *server, const char *provider, unsigned count)
{
	struct process *client = launch("tests/apps/many_links -l 0@%u --huge none --provider %s "
					"-- --connect %s --links %u",
					client_cpu, provider, server->address, count);
	char text[64];

	snprintf(text, sizeof(text), "echoed %u\n", count);
	expect_out(client, text);
	return client;
}

static void close_links(struct process *client, unsigned count)
{
	char text[64];

	process_signal(client, SIGTERM);
	snprintf(text, sizeof(text), "closed %u of %u, lost 0\n", count, count);
	expect_out(client, text);
	expect_status(client, 0);
}

static void many_links_cost_little_and_give_it_back(void **state)
{
	unsigned count = is_soak() ? 1000 : 200;

	FOREACH_PROVIDER(provider)
	{
		struct server server = serve_echo(*provider);
		unsigned descriptors;
		long before_kib, grown_kib;
		struct process *client;

		ping(&server, *provider, "--count 20 --warmup 0 --verify"); /* all is opened once */
		expect_out(server.process, " gone: closed");
		nap_ms(100);
		descriptors = count_descriptors(server.process);
		before_kib = resident_kib(server.process);
		client = open_links(&server, *provider, count);
		grown_kib = resident_kib(server.process) - before_kib;
		print_message("%s: %u idle links: %ld KiB, %.1f KiB a link, %u descriptors\n",
			      *provider, count, grown_kib, (double)grown_kib / count,
			      count_descriptors(server.process) - descriptors);
		limit_memory(grown_kib, (long)count * (is_tcp(*provider) ? TCP_LINK_KIB_MAX
									 : SHM_LINK_KIB_MAX));
		ping(&server, *provider, "--count 50 --warmup 5 --verify");
		close_links(client, count);
		/* It says a line for each link: read on, or a full pipe stops it. */
		for (int i = 0; i < 50 && count_descriptors(server.process) > descriptors; i++)
			process_wait(server.process, 100);
		assert_in_range(count_descriptors(server.process), 0, descriptors);

		/* Once more: what the first ones left is used again. */
		client = open_links(&server, *provider, count);
		print_message("%s: the same again: %ld KiB\n", *provider,
			      resident_kib(server.process) - before_kib);
		limit_memory(resident_kib(server.process) - before_kib, grown_kib + grown_kib / 10);
		close_links(client, count);
		end_server(&server);
		end_all(NULL);
	}
}

/* Every stage that a process told of shows the descriptors that it was given. */
static void expect_same_descriptors(struct process *process, const char *const *stages)
{
	char given[512], expected[600];

	expect_out(process, "given:");
	assert_int_equal(sscanf(process_out(process), "given:%511[^\n]", given), 1);
	assert_int_equal(strncmp(given, " 0 1 2", 6), 0);
	for (; *stages; stages++) {
		snprintf(expected, sizeof(expected), "%s:%s\n", *stages, given);
		expect_out(process, expected);
	}
}

static void fork_and_exec_inherit_nothing(void **state)
{
	FOREACH_PROVIDER(provider)
	{
		struct server server = serve("tests/apps/inherit", *provider,
					     "--listen 127.0.0.1:0");
		struct process *client = launch("tests/apps/inherit -l 0@%u --huge none "
						"--provider %s -- --connect %s",
						client_cpu, *provider, server.address);
		static const char *const at_client[] = {"started", "connecting", "open", "closed",
							NULL};
		static const char *const at_server[] = {"started", "listening", "open", "closed",
							NULL};

		expect_status(client, 0);
		expect_status(server.process, 0);
		expect_same_descriptors(client, at_client);
		expect_same_descriptors(server.process, at_server);
	}
}

/* Start ------------------------------------------------------------------------------------ */

#define STARTS        5
#define START_MS_GOAL 120 /* beyond the first fi_getinfo, on a quiet host */
#define START_MS_MAX  200.0

static double ms_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, STARTS, sizeof(values[0]), compare_doubles);
	return values[STARTS / 2];
}

/* A fresh process' first fi_getinfo, which looks for all providers, whichever is asked for; shm has
 * libfabric do the same, to read its parameters and to log. And what it takes to get there: the
 * libraries that libfabric pulls in do a lot before main (Debian's libinfinipath sleeps 200 ms to
 * learn the clock's rate).
 */
static double getinfo_ms(double *load_ms_out)
{
	double from_ms = ms_now(), took_ms;
	struct process *process = launch("tests/apps/first_getinfo tcp");
	const char *line = process_line(process, LIMIT_MS);
	double to_ms = ms_now();

	assert_non_null(line);
	took_ms = atof(line) / 1000;
	*load_ms_out = to_ms - from_ms - took_ms;
	expect_status(process, 0);
	return took_ms;
}

/* From fork to the server's word that the client's HELLO was good: the first message leaves then.
 * Both ends of the interval are taken here, so it is too long rather than too short. */
static double start_ms(const struct server *server, const char *provider)
{
	double from_ms = ms_now(), to_ms;
	struct process *client = launch_ping(server, provider, "--count 1 --warmup 0");
	const char *line = process_line(server->process, LIMIT_MS);

	to_ms = ms_now();
	assert_non_null(strstr(line ? line : "", " connected over "));
	expect_end(client, 1u << 0 | 1u << 3);
	line = process_line(server->process, LIMIT_MS);
	assert_non_null(strstr(line ? line : "", " gone: closed"));
	return to_ms - from_ms;
}

/* The least of the runs is held against the limit, as whatever else the host does only adds. Where
 * it does so much that fi_getinfo (some 80 ms) takes longer than the limit, that is the limit. */
static void first_message_leaves_soon_after_exec(void **state)
{
	if (PLX_SANITIZED)
		skip();
	FOREACH_PROVIDER(provider)
	{
		struct server server = serve_echo(*provider);
		double ours[STARTS], fabric[STARTS], load[STARTS];

		for (int i = 0; i < STARTS; i++) {
			fabric[i] = getinfo_ms(&load[i]);
			ours[i] = start_ms(&server, *provider) - fabric[i] - load[i];
		}
		print_message("%s: medians of %d: %.0f ms to load libfabric, %.0f ms for the first "
			      "fi_getinfo, %.0f ms more to the first message (goal: %d)\n",
			      *provider, STARTS, median(load), median(fabric), median(ours),
			      START_MS_GOAL);
		assert_true(ours[0] < (fabric[0] > START_MS_MAX ? fabric[0] : START_MS_MAX));
		end_server(&server);
	}
}

/* System calls ----------------------------------------------------------------------------- */

#define CALLS_MAX   64
#define FEW         1000
#define MANY        10000
#define OTHERS_MORE 20   /* calls that time, not messages, may cause */
#define SLEEPS_MORE 1000 /* libinfinipath, loaded by libfabric, sleeps until it knows the clock */
#define MEMORY_MORE 2

struct call {
	char name[32];
	long count;
};

struct calls {
	struct call call[CALLS_MAX];
	unsigned count;
};

static long count_of(const struct calls *calls, const char *name)
{
	for (unsigned i = 0; i < calls->count; i++)
		if (strcmp(calls->call[i].name, name) == 0)
			return calls->call[i].count;
	return 0;
}

/* A row of strace -c: "% time, seconds, usecs/call, calls, [errors,] syscall". */
static void read_row(char *row, struct calls *calls)
{
	char *words[8], *rest;
	unsigned count = 0;
	long n;

	for (char *word = strtok_r(row, " \n", &rest); word && count < PLX_ARRAY_LEN(words);
	     word = strtok_r(NULL, " \n", &rest))
		words[count++] = word;
	if (count < 5 || (n = atol(words[3])) == 0 || calls->count == CALLS_MAX)
		return;
	if (strcmp(words[count - 1], "total") == 0)
		return;
	snprintf(calls->call[calls->count].name, sizeof(calls->call[0].name), "%s",
		 words[count - 1]);
	calls->call[calls->count++].count = n;
}

static void trace(const char *provider, unsigned messages, struct calls *calls)
{
	char row[256];
	struct server server = serve_echo(provider);
	int fd = memfd_create("strace", MFD_CLOEXEC);
	struct process *client;
	FILE *file;

	assert_true(fd >= 0);
	client = launch(
		"/usr/bin/strace -f -c -o /proc/%d/fd/%d %s/apps/plx-ping -l 0@%u --huge none "
		"--provider %s -- --connect %s --warmup 0 --count %u",
		(int)getpid(), fd, getenv("PLX_BUILD_ROOT"), client_cpu, provider, server.address,
		messages);
	expect_end(client, 1u << 0 | 1u << 3);
	expect_out(client, " full round trips of 64 B in ");
	end_server(&server);
	file = fdopen(fd, "r");
	calls->count = 0;
	while (fgets(row, sizeof(row), file))
		read_row(row, calls);
	fclose(file);
	assert_true(count_of(calls, "execve") == 1);
}

static long more_allowed(const char *name)
{
	return strcmp(name, "clock_nanosleep") == 0 ? SLEEPS_MORE : OTHERS_MORE;
}

static bool is_among(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

/* What libfabric's provider does for a message, or for a look whether there is one. With shm
 * nothing is done for a message; once in many turns there is a look for who connects, or is gone.
 */
static bool is_the_providers(const char *provider, const char *name)
{
	static const char *const look[] = {"epoll_wait", "epoll_pwait", NULL};
	static const char *const common[] = {"sendto",  "sendmsg", "recvfrom",
					     "recvmsg", "poll",    NULL};

	if (is_among(name, look))
		return true;
	if (!is_tcp(provider))
		return false;
	if (is_among(name, common))
		return true;
	/* tcp wakes itself through a pipe of its own. */
	return strcmp(provider, "fi:tcp") == 0 &&
	       (strcmp(name, "read") == 0 || strcmp(name, "write") == 0);
}

static bool has_strace(void)
{
	struct process *strace = launch("/usr/bin/strace -o /dev/null /bin/true");
	bool works = process_wait(strace, LIMIT_MS) == 0;

	end_all(NULL);
	return works;
}

static void messages_cause_no_system_calls_of_ours(void **state)
{
	static const char *const memory[] = {"brk", "mmap", "munmap"};

	if (PLX_SANITIZED || !has_strace()) {
		print_message("skipped: strace is missing, or may not trace here\n");
		skip();
	}
	FOREACH_PROVIDER(provider)
	{
		static struct calls few, many;
		long memory_few = 0, memory_many = 0;
		unsigned wrong = 0;

		trace(*provider, FEW, &few);
		trace(*provider, MANY, &many);
		assert_true((count_of(&many, "sendto") + count_of(&many, "sendmsg") >= MANY) ==
			    is_tcp(*provider));
		for (unsigned i = 0; i < many.count; i++) {
			const struct call *call = &many.call[i];
			long more = call->count - count_of(&few, call->name);

			if (more > more_allowed(call->name))
				print_message("%s: %s: %.2f a message\n", *provider, call->name,
					      (double)more / (MANY - FEW));
			wrong += more > more_allowed(call->name) &&
				 !is_the_providers(*provider, call->name);
		}
		for (size_t i = 0; i < PLX_ARRAY_LEN(memory); i++) {
			memory_few += count_of(&few, memory[i]);
			memory_many += count_of(&many, memory[i]);
		}
		assert_int_equal(wrong, 0);
		assert_in_range(labs(memory_many - memory_few), 0, MEMORY_MORE);
		end_all(NULL);
	}
}

/* On a busy host one end polls while the other has no CPU: the least of the runs counts. */
static void shm_looks_for_connections_once_in_many_messages(void **state)
{
	static struct calls calls;
	long looks = MANY;

	if (PLX_SANITIZED || client_cpu == server_cpu || !has_strace()) {
		print_message("skipped: strace is missing, or may not trace here, or one CPU\n");
		skip();
	}
	for (int tries = 0; tries < 3 && looks >= MANY; tries++) {
		trace("shm", MANY, &calls);
		looks = count_of(&calls, "epoll_wait") + count_of(&calls, "epoll_pwait");
	}
	assert_in_range(looks, 1, MANY - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		process_test(many_links_cost_little_and_give_it_back),
		process_test(fork_and_exec_inherit_nothing),
		process_test(first_message_leaves_soon_after_exec),
		process_test(messages_cause_no_system_calls_of_ours),
		process_test(shm_looks_for_connections_once_in_many_messages),
	};

	return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
