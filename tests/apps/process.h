/* SPDX-License-Identifier: BSD-3-Clause */
/* Real processes in tests: started with pipes on their output, waited for with a limit, and gone
 * when the test is, however that ends. */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What came out of one pipe so far; text always ends in NUL. */
struct process_output {
	int fd; /* -1 once it ended */
	char *text;
	size_t len;
	size_t read; /* up to here process_line has returned lines */
};

struct process {
	pid_t pid;
	int pidfd;
	int status; /* as process_wait returns it; valid once reaped */
	bool reaped;
	struct process_output out;
	struct process_output err;
};

/** Start argv[0] (a path; argv ends in NULL) with empty input. It is killed when the calling thread
 * ends. Free with process_free. Return: 0; -errno. A program that cannot be run exits with 127. */
int process_start(struct process *process, char *const argv[]);

/** The next line of its standard output, without the newline; waits for it up to limit_ms.
 * Valid until the next call. Return: NULL when no whole line came in time, or before its end. */
const char *process_line(struct process *process, int limit_ms);

/** Wait up to limit_ms for text to be in its standard output (or error), wherever. */
bool process_out_has(struct process *process, const char *text, int limit_ms);
bool process_err_has(struct process *process, const char *text, int limit_ms);

/** Return: 0; -ESRCH it has ended. */
int process_signal(struct process *process, int signal);

/** Wait up to limit_ms for its end, reading its output meanwhile.
 * Return: its exit status; 128 + the signal that ended it; -ETIMEDOUT. */
int process_wait(struct process *process, int limit_ms);

/** All its output so far; complete after process_wait returned a status. */
const char *process_out(const struct process *process);
const char *process_err(const struct process *process);

/** Kill it if it still runs, reap it, and free all. Accepts a zeroed or freed one. */
void process_free(struct process *process);

/** Start, wait and collect: process_start and process_wait. On a time-out it is killed. */
int process_run(struct process *process, char *const argv[], int limit_ms);

/** The path of a built program, "$PLX_BUILD_ROOT/name", in out. Returns out. */
const char *process_path(const char *name, char *out, size_t size);

#endif
