/* SPDX-License-Identifier: BSD-3-Clause */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES 4096

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* In the child, where only async-signal-safe calls are allowed. */
static void run_child(char *const argv[], pid_t parent, int out, int err)
{
	int in = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* the parent ended before prctl */
		_exit(127);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	signal(SIGINT, SIG_DFL); /* a shell ignores it for background jobs */
	execv(argv[0], argv);
	_exit(127);
}

static int open_pipe(struct process_output *output, int *write_end_out)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*write_end_out = ends[1];
	output->fd = ends[0];
	output->text = calloc(1, 1);
	return output->text ? 0 : -ENOMEM;
}

int process_start(struct process *process, char *const argv[])
{
	pid_t parent = getpid();
	int out = -1, err = -1;
	int rc;

	*process = (struct process){.pidfd = -1, .out.fd = -1, .err.fd = -1};
	rc = open_pipe(&process->out, &out);
	rc = rc ? rc : open_pipe(&process->err, &err);
	if (rc == 0) {
		process->pid = fork();
		if (process->pid == 0)
			run_child(argv, parent, out, err);
		rc = process->pid < 0 ? -errno : 0;
	}
	if (out >= 0)
		close(out);
	if (err >= 0)
		close(err);
	if (rc == 0) {
		process->pidfd = pidfd_open(process->pid, 0);
		rc = process->pidfd < 0 ? -errno : 0;
	}
	if (rc)
		process_free(process);
	return rc;
}

static void end_output(struct process_output *output)
{
	if (output->fd >= 0)
		close(output->fd);
	output->fd = -1;
}

/* Read what is available, without waiting. */
static void drain(struct process_output *output)
{
	while (output->fd >= 0) {
		char *more = realloc(output->text, output->len + READ_BYTES + 1);
		ssize_t n;

		if (!more) {
			end_output(output);
			return;
		}
		output->text = more;
		n = read(output->fd, more + output->len, READ_BYTES);
		if (n > 0) {
			output->len += (size_t)n;
			more[output->len] = '\0';
		} else if (n == 0 || errno != EINTR) {
			if (n == 0 || errno != EAGAIN)
				end_output(output);
			return;
		}
	}
}

/* Wait for output, or (with_end) the end of the process, and read the output. Return: false at
 * end_ms, or if there is nothing left to wait for. */
static bool wait_some(struct process *process, bool with_end, uint64_t end_ms)
{
	struct pollfd fds[3] = {
		{.fd = process->out.fd, .events = POLLIN},
		{.fd = process->err.fd, .events = POLLIN},
		{.fd = with_end ? process->pidfd : -1, .events = POLLIN},
	};
	int64_t left_ms = (int64_t)(end_ms - now_ms());

	if (left_ms <= 0 || (fds[0].fd < 0 && fds[1].fd < 0 && fds[2].fd < 0))
		return false;
	poll(fds, 3, (int)left_ms);
	drain(&process->out);
	drain(&process->err);
	return true;
}

const char *process_line(struct process *process, int limit_ms)
{
	struct process_output *out = &process->out;
	uint64_t end_ms = now_ms() + (unsigned)limit_ms;
	bool more = true;

	for (;;) {
		char *end = out->len ? memchr(out->text + out->read, '\n', out->len - out->read)
				     : NULL;
		static char line[READ_BYTES];

		if (end) {
			snprintf(line, sizeof(line), "%.*s",
				 (int)(end - out->text - (long)out->read), out->text + out->read);
			out->read = (size_t)(end - out->text) + 1;
			return line;
		}
		if (!more || out->fd < 0)
			return NULL;
		more = wait_some(process, false, end_ms);
	}
}

static bool output_has(struct process *process, struct process_output *output, const char *text,
		       int limit_ms)
{
	uint64_t end_ms = now_ms() + (unsigned)limit_ms;

	while (!strstr(output->text, text))
		if (output->fd < 0 || !wait_some(process, false, end_ms))
			return strstr(output->text, text) != NULL;
	return true;
}

bool process_out_has(struct process *process, const char *text, int limit_ms)
{
	return output_has(process, &process->out, text, limit_ms);
}

bool process_err_has(struct process *process, const char *text, int limit_ms)
{
	return output_has(process, &process->err, text, limit_ms);
}

const char *process_out(const struct process *process)
{
	return process->out.text ? process->out.text : "";
}

const char *process_err(const struct process *process)
{
	return process->err.text ? process->err.text : "";
}

int process_signal(struct process *process, int signal)
{
	if (process->pid <= 0 || process->reaped)
		return -ESRCH;
	return kill(process->pid, signal) ? -errno : 0;
}

static bool reap(struct process *process, int flags)
{
	int status;

	if (waitpid(process->pid, &status, flags) != process->pid)
		return false;
	process->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	process->reaped = true;
	return true;
}

int process_wait(struct process *process, int limit_ms)
{
	uint64_t end_ms = now_ms() + (unsigned)limit_ms;

	if (process->pid <= 0)
		return -ESRCH;
	while (!process->reaped && !reap(process, WNOHANG))
		if (!wait_some(process, true, end_ms))
			return -ETIMEDOUT;
	/* A grandchild may hold the pipes open: read what is available, do not wait for their end.
	 */
	drain(&process->out);
	drain(&process->err);
	return process->status;
}

void process_free(struct process *process)
{
	if (process->pid > 0 && !process->reaped) {
		kill(process->pid, SIGKILL);
		reap(process, 0);
	}
	if (process->pid > 0 && process->pidfd >= 0)
		close(process->pidfd);
	if (process->out.text)
		end_output(&process->out);
	if (process->err.text)
		end_output(&process->err);
	free(process->out.text);
	free(process->err.text);
	*process = (struct process){0};
}

const char *process_path(const char *name, char *out, size_t size)
{
	const char *root = getenv("PLX_BUILD_ROOT");

	snprintf(out, size, "%s/%s", root ? root : ".", name);
	return out;
}
