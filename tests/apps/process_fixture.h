/* SPDX-License-Identifier: BSD-3-Clause */
/* Several processes in one test: started from a line of text, each on a separate CPU, and ended
 * with the test, even if it fails in the middle. */
#ifndef APPS_FIXTURE_H
#define APPS_FIXTURE_H

#include "folder.h"
#include "process.h"

/** A generous limit for what takes milliseconds on a quiet host. */
#define LIMIT_MS 20000

/** Where a server and its client run: the first two allowed CPUs, or the only one for both. */
extern unsigned server_cpu, client_cpu;

/** tcp and shm; NULL-terminated. */
extern const char *const providers[3];

bool is_tcp(const char *provider);

/** plx-echo's text about a link over that provider. */
const char *connected_over(const char *provider);

/** For PLX_TEST_MAIN_WITH: finds the CPUs. */
int group_set_up(void **state);

/** After each test: ends everything that launch started. */
int end_all(void **state);

#define PROCESS_TEST(name) PLX_TEST_WITH(name, NULL, end_all)

/** A test whose body runs over each provider, `provider`. */
#define PROVIDER_TEST(name) PROVIDER_TEST_WITH(name, NULL, end_all)
#define PROVIDER_TEST_WITH(name, setup, teardown)                       \
	static void name##_over(const char *provider);                  \
	PLX_TEST_WITH(name, setup, teardown)                            \
	{                                                               \
		for (const char *const *one = providers; *one; one++) { \
			name##_over(*one);                              \
			end_all(NULL);                                  \
		}                                                       \
	}                                                               \
	static void name##_over(const char *provider)

/** Whether PLX_TEST_SOAK requests slow tests too. */
bool is_soak(void);

/** Start a program: words separated by single blanks, the first a path below the build folder or an
 * absolute one. end_all ends the process. */
struct process *launch(const char *format, ...) PLX_PRINTF(1, 2);

/** Fail unless it ends in time with a status whose bit is set in `allowed` (1 << status); shows its
 * output. Returns the status. */
int expect_end(struct process *process, unsigned allowed);

/** Fail unless it ends with that status. */
void expect_status(struct process *process, int status);

/** Fail unless it ends with 0 or 3: its figures are not what they claim to be, which busy hosts
 * cause. Returns the status. */
int expect_figures(struct process *process);

/** Fail unless the text appears in time; shows the output. has: process_out_has or process_err_has,
 * on standard output or error. */
typedef bool process_has(struct process *process, const char *text, int limit_ms);
void expect_text(struct process *process, process_has *has, const char *format, ...)
	PLX_PRINTF(3, 4);
#define expect_out(process, ...) expect_text(process, process_out_has, __VA_ARGS__)
#define expect_err(process, ...) expect_text(process, process_err_has, __VA_ARGS__)

/** Fail unless it ends with that status, and the text on standard error. */
#define expect_failure(it, status, ...)          \
	do {                                     \
		struct process *ended_ = (it);   \
                                                 \
		expect_status(ended_, status);   \
		expect_err(ended_, __VA_ARGS__); \
	} while (0)

/** Fail unless that is the next line on standard output. */
void expect_line(struct process *process, const char *part);

/** A listening process; clients connect to address. */
struct server {
	struct process *process;
	char address[64];
};

/** Start a program that prints "listening on ADDRESS", on the server's CPU. Without --heartbeat,
 * its links survive 20 s of silence: on a busy host no process runs every 500 ms. */
struct server serve(const char *program, const char *provider, const char *options, ...)
	PLX_PRINTF(3, 4);

/** plx-echo with its defaults. */
struct server serve_echo(const char *provider);

/** Send SIGTERM, which must end it with status 0. */
void end_server(struct server *server);

/** plx-ping on the client's CPU, connected to the server. */
struct process *launch_ping(const struct server *server, const char *provider, const char *format,
			    ...) PLX_PRINTF(3, 4);

/** The same, to its end, as expect_figures: all messages must return unchanged. */
struct process *expect_ping(struct process *client);
#define ping(server, provider, ...) expect_ping(launch_ping(server, provider, __VA_ARGS__))

/** Fail unless the first line of plx-ping's figures has that number of round trips of that size. */
void expect_round_trips(struct process *client, unsigned count, const char *size);

/** The folder for plx-ping --out in a RESULTS_TEST. */
extern char results[FOLDER_BYTES];

int make_results(void **state);
int end_all_and_remove_results(void **state);

#define RESULTS_TEST(name) PLX_TEST_WITH(name, make_results, end_all_and_remove_results)
#define RESULTS_PROVIDER_TEST(name) \
	PROVIDER_TEST_WITH(name, make_results, end_all_and_remove_results)

/** plx-ping.json, which must exist; valid until the next call. */
const char *read_results(void);

/** Fail unless it contains the text; shows the file. */
void expect_in_results(const char *format, ...) PLX_PRINTF(1, 2);

/** Remove the three files of a result, which must exist. */
void remove_results(void);

/** The number, of that base, after `key` at the beginning of a line of /proc/PID/file; fails if no
 * line begins so. */
unsigned long long proc_number(const struct process *process, const char *file, const char *key,
			       int base);

void nap_ms(unsigned ms);

#endif
