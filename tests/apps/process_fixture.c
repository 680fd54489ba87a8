/* SPDX-License-Identifier: BSD-3-Clause */
#include "process_fixture.h"

#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 64
#define WORDS_MAX     40
#define LINE_BYTES    1024
#define RESULT_BYTES  65536

unsigned server_cpu, client_cpu;
const char *const providers[3] = {"tcp", "shm"};

static struct process processes[PROCESSES_MAX];
static unsigned process_count;

bool is_tcp(const char *provider)
{
	return strcmp(provider, "shm") != 0;
}

const char *connected_over(const char *provider)
{
	return is_tcp(provider) ? " connected over tcp (libfabric plx_tcp)"
				: " connected over shm (libfabric plx_shm)";
}

int group_set_up(void **state)
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
	return end_all(state);
}

void nap_ms(unsigned ms)
{
	struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&ts, NULL);
}

unsigned long long proc_number(const struct process *process, const char *file, const char *key,
			       int base)
{
	char path[64], line[256];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)process->pid, file);
	FILE *proc = fopen(path, "re");
	assert_non_null(proc);
	while (!found && fgets(line, sizeof(line), proc))
		found = strncmp(line, key, strlen(key)) == 0;
	fclose(proc);
	assert_true(found);
	return strtoull(line + strlen(key), NULL, base);
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

int expect_figures(struct process *process)
{
	return expect_end(process, 1u << 0 | 1u << 3);
}

void expect_text(struct process *process, process_has *has, const char *format, ...)
{
	char text[256], what[320];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(what, sizeof(what), "'%s' is not in its %s", text,
		 has == process_out_has ? "output" : "errors");
	if (!has(process, text, LIMIT_MS))
		show_and_fail(process, what);
}

void expect_line(struct process *process, const char *part)
{
	const char *line = process_line(process, LIMIT_MS);

	if (!line || !strstr(line, part))
		fail_msg("'%s' is not in the line '%s'", part, line ? line : "");
}

/* Servers and clients ---------------------------------------------------------------------- */

struct server serve(const char *program, const char *provider, const char *options, ...)
{
	static const char listening[] = "listening on ";
	const char *patience = strstr(program, "--heartbeat") ? "" : "--heartbeat 1s:20s ";
	struct server server;
	const char *line;
	char start[256];
	va_list args;

	snprintf(start, sizeof(start), "%s %s-l 0@%u --huge none --provider %s --", program,
		 patience, server_cpu, provider);
	va_start(args, options);
	server.process = launch_with(start, options, args);
	va_end(args);
	do
		line = process_line(server.process, LIMIT_MS);
	while (line && strncmp(line, listening, strlen(listening)) != 0);
	if (!line)
		show_and_fail(server.process, "it does not listen");
	else
		snprintf(server.address, sizeof(server.address), "%s", line + strlen(listening));
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

struct process *launch_ping(const struct server *server, const char *provider, const char *format,
			    ...)
{
	struct process *process;
	char start[256];
	va_list args;

	snprintf(start, sizeof(start),
		 "apps/plx-ping -l 0@%u --huge none --provider %s -- --connect %s", client_cpu,
		 provider, server->address);
	va_start(args, format);
	process = launch_with(start, format, args);
	va_end(args);
	return process;
}

struct process *expect_ping(struct process *client)
{
	if (expect_figures(client) == 3)
		expect_err(client, "mean x count is ");
	return client;
}

/* Results ---------------------------------------------------------------------------------- */

void expect_round_trips(struct process *client, unsigned count, const char *size)
{
	expect_out(client, "plx-ping: %u full round trips of %s B in ", count, size);
}

char results[FOLDER_BYTES];

int make_results(void **state)
{
	folder_make(results);
	return 0;
}

int end_all_and_remove_results(void **state)
{
	end_all(state);
	return folder_remove(results);
}

const char *read_results(void)
{
	static char content[RESULT_BYTES];
	char path[64];

	snprintf(path, sizeof(path), "%s/plx-ping.json", results);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	content[fread(content, 1, sizeof(content) - 1, file)] = '\0';
	fclose(file);
	return content;
}

void expect_in_results(const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!strstr(read_results(), text))
		fail_msg("'%s' is not in plx-ping.json:\n%s", text, read_results());
}

void remove_results(void)
{
	static const char *const suffixes[] = {"json", "hgrm", "csv"};
	char path[64];

	for (size_t i = 0; i < PLX_ARRAY_LEN(suffixes); i++) {
		snprintf(path, sizeof(path), "%s/plx-ping.%s", results, suffixes[i]);
		assert_int_equal(unlink(path), 0);
	}
}
