/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-ping --self: starts plx-ping --listen as a second process, the server of this run. */
#include "ping.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS   20000 /* to start listening */
#define STOP_MS    300   /* to end after SIGTERM */
#define LOOK_MS    100   /* how often to look for a signal meanwhile */
#define PATH_BYTES 4096

static pid_t server;
static int server_output = -1; /* open as long as the server may write to it */

/* All CPUs that this process may use; the calling thread is bound to its lcore's. */
static void allowed_cpus(cpu_set_t *set)
{
	const struct plx_cpuset *allowed = plx_topo_allowed(plx_eal_topo());

	CPU_ZERO(set);
	PLX_CPUSET_FOREACH (cpu, allowed)
		if (cpu < CPU_SETSIZE)
			CPU_SET(cpu, set);
}

/* In the child, where only system calls are safe. */
static _Noreturn void become_server(const char *path, char *const argv[], const cpu_set_t *cpus,
				    pid_t parent, int output)
{
	static const char failed[] = "plx-ping: --self: cannot start this program again\n";
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGTERM, SIG_DFL); /* ends the server, and may be ignored here */
	setpgid(0, 0);            /* Ctrl-C ends the client, which ends the server */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	sched_setaffinity(0, sizeof(*cpus), cpus);
	dup2(output, STDOUT_FILENO);
	execv(path, argv);
	execv("/proc/self/exe", argv); /* if the file was replaced; names the process "exe" */
	(void)!write(STDERR_FILENO, failed, sizeof(failed) - 1);
	_exit(1);
}

/* The server prints its line at once. Return: 0, its address in `address`; -EIO; -EINTR. */
static int read_address(int fd, char address[PING_ADDRESS_BYTES])
{
	uint64_t end_ns = plx_now_ns() + START_MS * PLX_NS_PER_MS;
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	char line[256] = "";
	ssize_t got = 0;

	while (!ready.revents && !plx_stopping() && plx_now_ns() < end_ns)
		poll(&ready, 1, LOOK_MS);
	if (ready.revents)
		got = read(fd, line, sizeof(line) - 1);
	if (got > 0 && sscanf(line, "listening on %63[^\n]", address) == 1)
		return 0;
	if (plx_stopping())
		return plx_fail(EINTR, "%s came before the server of --self had started",
				plx_measure_signal());
	if (got > 0)
		return plx_fail(EIO, "--self: the server printed no address, but \"%.*s\"",
				(int)strcspn(line, "\n"), line);
	if (ready.revents)
		return plx_fail(EIO, "--self: the server ended before it was ready; its own output "
				     "has the reason");
	return plx_fail(EIO, "--self: the server did not start within %d s", START_MS / 1000);
}

int ping_self_start(const struct ping_conf *conf, char address[PING_ADDRESS_BYTES])
{
	char policy[PLX_MEASURE_IDLE_BYTES], size[32], path[PATH_BYTES] = "";
	char *argv[] = {"plx-ping", "--huge", "none",     "--log-level", "error",
			"--idle",   policy,   "--listen", "127.0.0.1:0", "--size",
			size,       NULL,     NULL};
	cpu_set_t cpus;
	pid_t parent = getpid();
	int ends[2], rc;

	plx_measure_idle(policy);
	snprintf(size, sizeof(size), "%" PRIu64, conf->size_bytes);
	if (conf->one_way)
		argv[PLX_ARRAY_LEN(argv) - 2] = "--sink";
	allowed_cpus(&cpus);
	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return plx_fail(errno, "--self: /proc/self/exe: %s", strerror(errno));
	if (pipe2(ends, O_CLOEXEC) != 0)
		return plx_fail(errno, "--self: pipe: %s", strerror(errno));
	server = fork();
	if (server == 0)
		become_server(path, argv, &cpus, parent, ends[1]);
	rc = server < 0 ? plx_fail(errno, "--self: fork: %s", strerror(errno)) : 0;
	close(ends[1]);
	if (rc == 0)
		rc = read_address(ends[0], address);
	server_output = ends[0];
	if (rc)
		ping_self_stop();
	return rc;
}

/* A stopped server does not notice SIGTERM. */
static void end_server(void)
{
	uint64_t end_ns = plx_now_ns() + STOP_MS * PLX_NS_PER_MS;
	pid_t ended;

	kill(server, SIGTERM);
	while ((ended = waitpid(server, NULL, WNOHANG)) == 0 && plx_now_ns() < end_ns)
		usleep(1000);
	if (ended == 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
}

void ping_self_stop(void)
{
	if (server > 0)
		end_server();
	server = 0;
	if (server_output >= 0)
		close(server_output);
	server_output = -1;
}
