/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker: takes jobs, each of which takes MICROSECONDS, and answers with the job's number.
 * Run it:  netio_pull 7001 100      until SIGINT; see netio_push, which gives the jobs */
#include "netio/netio.h"
#include <stdio.h>
#include <string.h>

#define JOBS_MAX 4 /* few, so that jobs do not wait here while another worker is free */

struct worker {
	struct netio_context ctx;
	struct netio_listen_socket socket;
	struct netio_recv_socket *giver; /* NULL: none */
	struct netio_timer timer;
	uint64_t job_us;
	struct netio_msg jobs[JOBS_MAX];
	unsigned count;
};

static void drop_first(struct worker *worker)
{
	netio_msg_release(&worker->jobs[0]); /* room for the next job */
	memmove(worker->jobs, worker->jobs + 1, --worker->count * sizeof(worker->jobs[0]));
	if (worker->count == 0)
		netio_timer_stop(&worker->timer);
}

static void on_job_done(void *data)
{
	struct worker *worker = data;
	const uint64_t *number = worker->jobs[0].data; /* aligned to 8 bytes */

	if (netio_reply(worker->giver, number, sizeof(*number)) == NETIO_STATUS_AGAIN)
		return; /* the timer calls again */
	printf("%llu\n", (unsigned long long)*number);
	drop_first(worker);
}

/* A kept job occupies a receive buffer until its release, so at most JOBS_MAX arrive. */
static void on_job(struct netio_recv_socket *from, const struct netio_msg *job)
{
	struct worker *worker = from->listen_socket->data;

	if (from != worker->giver || worker->count == JOBS_MAX || job->len < sizeof(uint64_t))
		return;
	netio_msg_keep(job);
	worker->jobs[worker->count] = *job;
	if (worker->count++ == 0)
		netio_timer_start_us(&worker->timer, worker->job_us);
}

static void on_giver(struct netio_recv_socket *from)
{
	struct worker *worker = from->listen_socket->data;

	if (worker->giver)
		netio_recv_socket_close(from); /* one giver at a time */
	else
		worker->giver = from;
}

static void on_gone(struct netio_recv_socket *from, enum plx_link_reason reason, const char *why)
{
	struct worker *worker = from->listen_socket->data;

	while (from == worker->giver && worker->count > 0) /* other workers get the rest */
		drop_first(worker);
	if (from == worker->giver)
		worker->giver = NULL;
}

int main(int argc, char **argv)
{
	const struct netio_listen_attr attr = {.buffer_bytes = 4096, .buffer_count = JOBS_MAX};
	static struct worker worker;
	uint64_t port;
	int rc;

	if (argc != 3 || plx_parse_uint("PORT", argv[1], 0, 65535, &port) != 0 ||
	    plx_parse_uint("MICROSECONDS", argv[2], 1, 0, &worker.job_us) != 0) {
		fprintf(stderr, "usage: netio_pull PORT MICROSECONDS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (netio_init(&worker.ctx) != 0 ||
	    netio_timer_init(&worker.ctx.evloop, &worker.timer) != 0 ||
	    netio_listen_socket_init(&worker.ctx.evloop, &worker.socket, &attr) != 0 ||
	    netio_listen(&worker.socket, "127.0.0.1", (unsigned)port) != 0)
		return 1; /* NetIO logs what fails to standard error */
	worker.timer.cb = on_job_done;
	worker.timer.data = worker.socket.data = &worker;
	worker.socket.cb_connection_established = on_giver;
	worker.socket.cb_connection_closed = on_gone;
	worker.socket.cb_msg_received = on_job;
	fprintf(stderr, "listening on 127.0.0.1:%u\n", netio_listen_socket_port(&worker.socket));
	plx_stop_on_signals();
	rc = netio_run(&worker.ctx.evloop);
	netio_timer_stop(&worker.timer);
	return netio_fini(&worker.ctx) != 0 || rc != 0;
}
