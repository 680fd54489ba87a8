/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls per message, counted by strace. */
#include "process_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

#define CALLS_MAX   64
#define FEW         1000
#define MANY        10000
#define OTHERS_MORE 20   /* calls caused by time, not by messages */
#define SLEEPS_MORE 1000 /* libinfinipath, loaded by libfabric, sleeps to calibrate the clock */
#define CLOCKS_MORE 500
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
static void read_row(const char *row, struct calls *calls)
{
	struct call *call = &calls->call[calls->count];
	const char *name = strrchr(row, ' ');

	if (calls->count < CALLS_MAX && name && sscanf(row, "%*f %*f %*d %ld", &call->count) == 1 &&
	    sscanf(name, "%31s", call->name) == 1 && strcmp(call->name, "total") != 0)
		calls->count++;
}

static void trace(const char *provider, unsigned messages, struct calls *calls)
{
	char row[256];
	/* A sleeping server would need wake-ups whenever strace delays it. */
	struct server server = serve("apps/plx-echo --idle poll", provider, "--listen 127.0.0.1:0");
	int fd = memfd_create("strace", MFD_CLOEXEC);
	struct process *client;
	FILE *file;

	assert_true(fd >= 0);
	client = launch(
		"/usr/bin/strace -f -c -o /proc/%d/fd/%d %s/apps/plx-ping -l 0@%u --huge none "
		"--idle poll --provider %s -- --connect %s --warmup 0 --count %u",
		(int)getpid(), fd, getenv("PLX_BUILD_ROOT"), client_cpu, provider, server.address,
		messages);
	expect_figures(client);
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
	/* A polling lcore checks its CPU share ten times a second. */
	if (strcmp(name, "clock_gettime") == 0)
		return CLOCKS_MORE;
	return strcmp(name, "clock_nanosleep") == 0 ? SLEEPS_MORE : OTHERS_MORE;
}

static bool is_among(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

/* Calls that libfabric's provider makes for a message or an empty poll. shm makes none per message;
 * once in many turns it checks for connections and lost peers. */
static bool is_the_providers(const char *provider, const char *name)
{
	static const char *const look[] = {"epoll_wait", "epoll_pwait", "epoll_pwait2", NULL};
	static const char *const common[] = {"sendto",  "sendmsg", "recvfrom",
					     "recvmsg", "poll",    NULL};

	if (is_among(name, look))
		return true;
	if (!is_tcp(provider))
		return false;
	return is_among(name, common);
}

static bool has_strace(void)
{
	struct process *strace = launch("/usr/bin/strace -o /dev/null /bin/true");
	bool works = process_wait(strace, LIMIT_MS) == 0;

	end_all(NULL);
	return works;
}

static long looks(const struct calls *calls)
{
	return count_of(calls, "epoll_wait") + count_of(calls, "epoll_pwait2");
}

/* shm checks for connections once in many messages. But on a busy host one side polls while the
 * other has no CPU, so the minimum of some runs counts. */
static void trace_many(const char *provider, struct calls *calls)
{
	bool is_certain = is_tcp(provider) || client_cpu == server_cpu;

	trace(provider, MANY, calls);
	for (int tries = 1; tries < 3 && !is_certain && looks(calls) >= MANY; tries++)
		trace(provider, MANY, calls);
	assert_true(is_certain || (looks(calls) >= 1 && looks(calls) < MANY));
}

PROVIDER_TEST(messages_cause_no_system_calls_of_pollux)
{
	static const char *const memory[] = {"brk", "mmap", "munmap"};
	static struct calls few, many;
	long memory_more = 0;
	unsigned wrong = 0;

	if (PLX_SANITIZED || !has_strace()) {
		print_message("skipped: strace is missing, or may not trace here\n");
		skip();
	}
	trace(provider, FEW, &few);
	trace_many(provider, &many);
	assert_true((count_of(&many, "sendto") + count_of(&many, "sendmsg") >= MANY) ==
		    is_tcp(provider));
	for (unsigned i = 0; i < many.count; i++) {
		const struct call *call = &many.call[i];
		long more = call->count - count_of(&few, call->name);

		if (more > more_allowed(call->name))
			print_message("%s: %s: %.2f a message\n", provider, call->name,
				      (double)more / (MANY - FEW));
		wrong += more > more_allowed(call->name) && !is_the_providers(provider, call->name);
	}
	for (size_t i = 0; i < PLX_ARRAY_LEN(memory); i++)
		memory_more += count_of(&many, memory[i]) - count_of(&few, memory[i]);
	assert_int_equal(wrong, 0);
	assert_in_range(labs(memory_more), 0, MEMORY_MORE);
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
