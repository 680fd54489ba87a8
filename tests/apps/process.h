/* SPDX-License-Identifier: BSD-3-Clause */
/* Real processes in tests: started with pipes on their output, awaited with a limit, and ended with
 * the test, however it ends. */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The output of one pipe so far; text is NUL-terminated. */
struct process_output {
	int fd; /* -1 at its end */
	char *text;
	size_t len;
	size_t read; /* process_line has returned everything before this */
};

struct process {
	pid_t pid;
	int pidfd;
	int status; /* as process_wait returns it; valid once reaped */
	bool reaped;
	struct process_output out;
	struct process_output err;
};

/** Start argv[0] (a path; argv is NULL-terminated) with empty input. It is killed when the calling
 * thread ends. Free with process_free. Return: 0; -errno. A program that cannot be run exits with
 * 127. */
int process_start(struct process *process, char *const argv[]);

/** The next line of its standard output, without the newline; waits up to limit_ms. Valid until the
 * next call. Return: NULL if no complete line came in time or before the end. */
const char *process_line(struct process *process, int limit_ms);

/** Wait up to limit_ms for text to appear in its standard output (or error). */
bool process_out_has(struct process *process, const char *text, int limit_ms);
bool process_err_has(struct process *process, const char *text, int limit_ms);

/** Return: 0; -ESRCH it has ended. */
int process_signal(struct process *process, int signal);

/** Wait up to limit_ms for its end, reading its output meanwhile.
 * Return: its exit status; 128 + the signal that ended it; -ETIMEDOUT. */
int process_wait(struct process *process, int limit_ms);

/** All output so far; complete after process_wait returned a status. */
const char *process_out(const struct process *process);
const char *process_err(const struct process *process);

/** Kill it if it still runs, reap it, and free everything. Accepts a zeroed or freed one. */
void process_free(struct process *process);

/** The path of a built program, "$PLX_BUILD_ROOT/name", in out. Returns out. */
const char *process_path(const char *name, char *out, size_t size);

/** A clock that never goes back. */
uint64_t now_ms(void);

#endif
