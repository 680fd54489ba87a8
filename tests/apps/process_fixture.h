/* SPDX-License-Identifier: BSD-3-Clause */
/* Several processes in one test: started from one line of text, each on a CPU of its own, and gone
 * when the test is, also when it failed in the middle. */
#ifndef APPS_FIXTURE_H
#define APPS_FIXTURE_H

#include "plx_test.h"
#include "process.h"

/** A generous limit for what takes milliseconds on a quiet host. */
#define LIMIT_MS 20000

/** Where a server and its client run: the first two CPUs allowed, or twice the only one. */
extern unsigned server_cpu, client_cpu;

/** tcp, libfabric's own provider for it, and shm; ended by
 * NULL. */
extern const char *const providers[4];

bool is_tcp(const char *provider);

/** What plx-echo says of a link over that provider. */
const char *connected_over(const char *provider);

#define FOREACH_PROVIDER(p) for (const char *const *p = providers; *p; p++)

/** For PLX_TEST_MAIN_WITH: finds CPUs and providers; in the end the program fails where its
 * tests left something in /dev/shm. */
int group_set_up(void **state);
int group_tear_down(void **state);

/** For each test: ends what launch started. */
int end_all(void **state);

#define PROCESS_TEST(name) PLX_TEST_WITH(name, NULL, end_all)

/** Whether PLX_TEST_SOAK asks for slow tests too. */
bool is_soak(void);

/** Start a program: words divided by single blanks, the first a path below the build folder, or an
 * absolute one. The process is end_all's. */
struct process *launch(const char *format, ...) PLX_PRINTF(1, 2);

/** Fail unless it ends in time with one of the statuses that stand in the decimal bits of `allowed`
 * (1 << status); shows its output. Returns the status. */
int expect_end(struct process *process, unsigned allowed);

/** Fail unless it ends with that status. */
void expect_status(struct process *process, int status);

/** Fail unless text comes on standard output (or error) in time; shows what there is. */
void expect_out(struct process *process, const char *text);
void expect_err(struct process *process, const char *text);

/** A process that listens; address is what a client connects to. */
struct server {
	struct process *process;
	char address[64];
};

/** Start a program that prints "listening on ADDRESS" on the server's CPU. Unless it has
 * --heartbeat, its links survive 20 s of silence: on a busy host no process runs every 500 ms. */
struct server serve(const char *program, const char *provider, const char *options);

/** plx-echo with its defaults. */
struct server serve_echo(const char *provider);

/** SIGTERM, which must end it with status 0. */
void end_server(struct server *server);

/** plx-ping on the client's CPU, connecting to the server. */
struct process *launch_ping(const struct server *server, const char *provider, const char *format,
			    ...) PLX_PRINTF(3, 4);

/** The same, to its end: all messages must come back unchanged. A status of 3 (the figures are
 * not what they claim to be) is nothing against the messages, and busy hosts cause it. */
struct process *ping(const struct server *server, const char *provider, const char *format, ...)
	PLX_PRINTF(3, 4);

/** Fail unless plx-ping says in the first line of its figures how many round trips it made, of how
 * many bytes. */
void expect_round_trips(struct process *client, unsigned count, const char *size);

/** The plx-ping.json of an --out directory, which must be there; until the next call. */
const char *read_results(const char *dir);

/** Fail unless text is in it; shows what there is. */
void expect_in_results(const char *dir, const char *text);

/** Remove the three files of a result, which must be there, and the directory. */
void remove_results(const char *dir);

uint64_t now_ms(void);
void nap_ms(unsigned ms);

#endif
