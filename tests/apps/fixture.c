/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define PROCESSES_MAX 64
#define WORDS_MAX     40
#define LINE_BYTES    1024
#define SHM_NAMES_MAX 64

static struct process processes[PROCESSES_MAX];
static unsigned process_count;

unsigned server_cpu, client_cpu;
const char *providers[4];

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void nap_ms(unsigned ms)
{
	struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&ts, NULL);
}

bool is_soak(void)
{
	const char *soak = getenv("PLX_TEST_SOAK");

	return soak && strcmp(soak, "1") == 0;
}

/* Processes -------------------------------------------------------------------------------- */

static struct process *launch_line(char *line)
{
	char *argv[WORDS_MAX + 1] = {NULL}, path[LINE_BYTES], *rest;
	struct process *process = &processes[process_count];
	unsigned count = 0;

	assert_true(process_count < PROCESSES_MAX);
	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(count < WORDS_MAX);
		argv[count++] = word;
	}
	if (argv[0][0] != '/')
		argv[0] = (char *)process_path(argv[0], path, sizeof(path));
	assert_int_equal(process_start(process, argv), 0);
	process_count++;
	return process;
}

static struct process *launch_with(const char *start, const char *format, va_list args)
{
	char line[LINE_BYTES];
	int used = snprintf(line, sizeof(line), "%s ", start);

	used += vsnprintf(line + used, sizeof(line) - (size_t)used, format, args);
	assert_true(used < LINE_BYTES);
	return launch_line(line);
}

struct process *launch(const char *format, ...)
{
	struct process *process;
	va_list args;

	va_start(args, format);
	process = launch_with("", format, args);
	va_end(args);
	return process;
}

int end_all(void **state)
{
	while (process_count)
		process_free(&processes[--process_count]);
	return 0;
}

static void show_and_fail(struct process *process, const char *what)
{
	fail_msg("%s\n--- its output:\n%s--- its errors:\n%s---", what, process_out(process),
		 process_err(process));
}

int expect_end(struct process *process, unsigned allowed)
{
	int status = process_wait(process, LIMIT_MS);
	char what[64];

	if (status >= 0 && status < 32 && allowed & (1u << status))
		return status;
	if (status < 0)
		snprintf(what, sizeof(what), "it did not end in time");
	else
		snprintf(what, sizeof(what), "it ended with status %d", status);
	show_and_fail(process, what);
	return status;
}

void expect_status(struct process *process, int status)
{
	expect_end(process, 1u << status);
}

void expect_out(struct process *process, const char *text)
{
	char what[256];

	snprintf(what, sizeof(what), "'%s' is not in its output", text);
	if (!process_out_has(process, text, LIMIT_MS))
		show_and_fail(process, what);
}

void expect_err(struct process *process, const char *text)
{
	char what[256];

	snprintf(what, sizeof(what), "'%s' is not in its errors", text);
	if (!process_err_has(process, text, LIMIT_MS))
		show_and_fail(process, what);
}

/* Servers and clients ---------------------------------------------------------------------- */

bool is_tcp(const char *provider)
{
	return strcmp(provider, "shm") != 0;
}

const char *connected_over(const char *provider)
{
	return is_tcp(provider) ? " connected over tcp (libfabric "
				: " connected over shm (libfabric plx_shm)";
}

struct server serve(const char *program, const char *provider, const char *options)
{
	static const char start[] = "listening on ";
	struct server server;
	const char *line;

	server.process = launch("%s -l 0@%u --huge none --provider %s -- %s", program, server_cpu,
				provider, options);
	do
		line = process_line(server.process, LIMIT_MS);
	while (line && strncmp(line, start, strlen(start)) != 0);
	if (!line)
		show_and_fail(server.process, "it does not listen");
	else
		snprintf(server.address, sizeof(server.address), "%s", line + strlen(start));
	return server;
}

struct server serve_echo(const char *provider)
{
	return serve("apps/plx-echo", provider, "--listen 127.0.0.1:0");
}

void end_server(struct server *server)
{
	process_signal(server->process, SIGTERM);
	expect_status(server->process, 0);
}

static struct process *launch_ping_args(const struct server *server, const char *provider,
					const char *format, va_list args)
{
	char start[256];

	snprintf(start, sizeof(start),
		 "apps/plx-ping -l 0@%u --huge none --provider %s -- --connect %s", client_cpu,
		 provider, server->address);
	return launch_with(start, format, args);
}

struct process *launch_ping(const struct server *server, const char *provider, const char *format,
			    ...)
{
	struct process *process;
	va_list args;

	va_start(args, format);
	process = launch_ping_args(server, provider, format, args);
	va_end(args);
	return process;
}

struct process *ping(const struct server *server, const char *provider, const char *format, ...)
{
	struct process *process;
	va_list args;

	va_start(args, format);
	process = launch_ping_args(server, provider, format, args);
	va_end(args);
	if (expect_end(process, 1u << 0 | 1u << 3) == 3)
		expect_err(process, "mean x count is ");
	return process;
}

/* The group -------------------------------------------------------------------------------- */

static char shm_before[SHM_NAMES_MAX][256];
static unsigned shm_before_count;

static bool was_in_shm(const char *name)
{
	for (unsigned i = 0; i < shm_before_count; i++)
		if (strcmp(shm_before[i], name) == 0)
			return true;
	return false;
}

/* Names in /dev/shm that were not there before; the first of them in out. */
static unsigned count_new_in_shm(bool remember, char *out, size_t size)
{
	DIR *dir = opendir("/dev/shm");
	unsigned count = 0;

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (was_in_shm(entry->d_name))
			continue;
		if (count++ == 0)
			snprintf(out, size, "%s", entry->d_name);
		if (remember && shm_before_count < SHM_NAMES_MAX)
			snprintf(shm_before[shm_before_count++], sizeof(shm_before[0]), "%s",
				 entry->d_name);
	}
	if (dir)
		closedir(dir);
	return count;
}

static void find_cpus(void)
{
	cpu_set_t allowed;
	unsigned count = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		client_cpu = cpu;
		if (count++ == 0)
			server_cpu = cpu;
	}
}

static void find_providers(void)
{
	struct process *version = launch("apps/plx-echo --version");
	unsigned major = 0, minor = 0, count = 0;
	const char *fabric;

	expect_status(version, 0);
	fabric = strstr(process_out(version), "libfabric ");
	assert_non_null(fabric);
	assert_int_equal(sscanf(fabric, "libfabric %u.%u", &major, &minor), 2);
	if (major == 1 && minor < 18)
		providers[count++] = "net"; /* it is fi:tcp from 1.18 on */
	providers[count++] = "fi:tcp";
	providers[count] = "shm";
}

int group_set_up(void **state)
{
	struct rlimit files;
	char name[256];

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	count_new_in_shm(true, name, sizeof(name));
	find_cpus();
	find_providers();
	return end_all(state);
}

int group_tear_down(void **state)
{
	char name[256] = "";

	/* What others have there comes and goes. */
	for (int i = 0; i < 20 && count_new_in_shm(false, name, sizeof(name)); i++)
		nap_ms(100);
	if (!count_new_in_shm(false, name, sizeof(name)))
		return 0;
	fprintf(stderr, "/dev/shm/%s was left behind\n", name);
	return -1;
}
