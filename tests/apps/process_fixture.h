/* SPDX-License-Identifier: BSD-3-Clause */
/* Several processes in one test: started from a line of text, each on a separate CPU, and ended
 * with the test, even if it fails in the middle. */
#ifndef APPS_FIXTURE_H
#define APPS_FIXTURE_H

#include "plx_test.h"
#include "process.h"

/** A generous limit for what takes milliseconds on a quiet host. */
#define LIMIT_MS 20000

/** Where a server and its client run: the first two allowed CPUs, or the only one for both. */
extern unsigned server_cpu, client_cpu;

/** tcp, libfabric's provider for it, and shm; NULL-terminated. */
extern const char *const providers[4];

bool is_tcp(const char *provider);

/** plx-echo's text about a link over that provider. */
const char *connected_over(const char *provider);

#define FOREACH_PROVIDER(p) for (const char *const *p = providers; *p; p++)

/** For PLX_TEST_MAIN_WITH: finds CPUs and providers; at the end the program fails if its tests left
 * something in /dev/shm. */
int group_set_up(void **state);
int group_tear_down(void **state);

/** After each test: ends everything that launch started. */
int end_all(void **state);

#define PROCESS_TEST(name) PLX_TEST_WITH(name, NULL, end_all)

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

/** Fail unless text appears on standard output (or error) in time; shows the output. */
void expect_out(struct process *process, const char *text);
void expect_err(struct process *process, const char *text);

/** A listening process; clients connect to address. */
struct server {
	struct process *process;
	char address[64];
};

/** Start a program that prints "listening on ADDRESS", on the server's CPU. Without --heartbeat,
 * its links survive 20 s of silence: on a busy host no process runs every 500 ms. */
struct server serve(const char *program, const char *provider, const char *options);

/** plx-echo with its defaults. */
struct server serve_echo(const char *provider);

/** Send SIGTERM, which must end it with status 0. */
void end_server(struct server *server);

/** plx-ping on the client's CPU, connected to the server. */
struct process *launch_ping(const struct server *server, const char *provider, const char *format,
			    ...) PLX_PRINTF(3, 4);

/** The same, to its end: all messages must return unchanged. A status of 3 (the figures are not
 * what they claim to be) is accepted, because busy hosts cause it. */
struct process *ping(const struct server *server, const char *provider, const char *format, ...)
	PLX_PRINTF(3, 4);

/** Fail unless the first line of plx-ping's figures has that number of round trips of that size. */
void expect_round_trips(struct process *client, unsigned count, const char *size);

/** The plx-ping.json of an --out directory, which must exist; valid until the next call. */
const char *read_results(const char *dir);

/** Fail unless it contains text; shows the file. */
void expect_in_results(const char *dir, const char *text);

/** Remove the three files of a result, which must exist, and the directory. */
void remove_results(const char *dir);

uint64_t now_ms(void);
void nap_ms(unsigned ms);

#endif
