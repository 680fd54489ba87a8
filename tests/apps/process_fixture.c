/* SPDX-License-Identifier: BSD-3-Clause */
#include "process_fixture.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 64
#define WORDS_MAX     40
#define LINE_BYTES    1024
#define RESULT_BYTES  65536

static struct process processes[PROCESSES_MAX];
static unsigned process_count;

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

static void expect_text(struct process *process,
			bool (*has)(struct process *process, const char *text, int limit_ms),
			const char *where, const char *format, va_list args)
{
	char text[256], what[320];

	vsnprintf(text, sizeof(text), format, args);
	snprintf(what, sizeof(what), "'%s' is not in its %s", text, where);
	if (!has(process, text, LIMIT_MS))
		show_and_fail(process, what);
}

void expect_failure(struct process *process, int status, const char *format, ...)
{
	va_list args;

	expect_status(process, status);
	va_start(args, format);
	expect_text(process, process_err_has, "errors", format, args);
	va_end(args);
}

void expect_out(struct process *process, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	expect_text(process, process_out_has, "output", format, args);
	va_end(args);
}

void expect_err(struct process *process, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	expect_text(process, process_err_has, "errors", format, args);
	va_end(args);
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
	if (expect_figures(process) == 3)
		expect_err(process, "mean x count is ");
	return process;
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
