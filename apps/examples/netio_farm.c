/* SPDX-License-Identifier: BSD-3-Clause */
/* A farm, as of event builders: jobs go to workers, each to the one that has least to do. Who is
 * faster gets more, and what one that dies had not done is done by another one.
 *
 *     netio_farm work PORT MICROSECONDS  takes that long for each job, and tells its number
 *     netio_farm give COUNT PORT...      ends when that many jobs are done, by workers of this host
 *
 * Try it: netio_farm work 7001 100 >/dev/null &
 *         netio_farm work 7002 400 >/dev/null &
 *         netio_farm give 10000 7001 7002 */
#include "netio/netio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX    4 /* that a worker may have: few, so that the others are not left without */
#define WORKERS_MAX 64
#define JOB_BYTES   256

static struct netio_context ctx;

/* Working: a job is kept until it is done, and takes its place until then. ----------------------
 */

static struct {
	struct netio_timer timer;
	struct netio_recv_socket *from; /* NULL: nobody gives jobs */
	struct netio_msg jobs[JOBS_MAX];
	unsigned first, count;
	unsigned long long job_us;
} work;

static uint64_t number_of(const struct netio_msg *job)
{
	uint64_t number = 0;

	if (job->len >= sizeof(number))
		memcpy(&number, job->data, sizeof(number));
	return number;
}

static void drop_first(void)
{
	netio_msg_release(&work.jobs[work.first]);
	work.first = (work.first + 1) % JOBS_MAX;
	if (--work.count == 0)
		netio_timer_stop(&work.timer);
}

/* First the answer, then the room for another job. */
static void on_job_done(void *data)
{
	uint64_t number = number_of(&work.jobs[work.first]);

	if (netio_reply(work.from, &number, sizeof(number)) == NETIO_STATUS_AGAIN)
		return; /* a job later */
	printf("%llu\n", (unsigned long long)number);
	fflush(stdout);
	drop_first();
}

static void on_job(struct netio_recv_socket *from, const struct netio_msg *job)
{
	if (from != work.from || work.count == JOBS_MAX)
		return;
	netio_msg_keep(job);
	work.jobs[(work.first + work.count) % JOBS_MAX] = *job;
	if (work.count++ == 0)
		netio_timer_start_us(&work.timer, work.job_us);
}

static void on_giver(struct netio_recv_socket *from)
{
	if (work.from)
		netio_recv_socket_close(from); /* one at a time */
	else
		work.from = from;
}

/* Others do what is left. */
static void on_giver_gone(struct netio_recv_socket *from, enum plx_link_reason reason,
			  const char *why)
{
	if (from != work.from)
		return;
	while (work.count)
		drop_first();
	work.from = NULL;
}

static int do_work(unsigned port)
{
	struct netio_listen_attr attr = {.buffer_bytes = 4096, .buffer_count = JOBS_MAX};
	static struct netio_listen_socket socket;

	if (netio_timer_init(&ctx.evloop, &work.timer) != 0 ||
	    netio_listen_socket_init(&ctx.evloop, &socket, &attr) != 0)
		return 1;
	work.timer.cb = on_job_done;
	socket.cb_connection_established = on_giver;
	socket.cb_connection_closed = on_giver_gone;
	socket.cb_msg_received = on_job;
	if (netio_listen(&socket, "127.0.0.1", port) != 0)
		return 1;
	fprintf(stderr, "listening on %u\n", netio_listen_socket_port(&socket));
	netio_run(&ctx.evloop);
	netio_drain(&ctx.evloop, PLX_NS_PER_S);
	return 0;
}

/* Giving: as long as somebody has room. A job is done when its answer is here. ------------------
 */

static struct {
	struct netio_push_socket socket;
	uint64_t next, count, done, twice;
	uint64_t by[WORKERS_MAX]; /* so many jobs of each worker */
	bool *is_done;
} give;

static void give_jobs(struct netio_push_socket *socket)
{
	uint8_t job[JOB_BYTES] = {0};

	for (; give.next < give.count; give.next++) {
		memcpy(job, &give.next, sizeof(give.next));
		if (netio_push(socket, job, sizeof(job)) != NETIO_STATUS_OK)
			return; /* AGAIN: this is called again */
	}
}

static void on_worker(struct netio_push_receiver *worker)
{
	fprintf(stderr, "%s connected\n", worker->address);
	give_jobs(worker->push_socket);
}

static void on_worker_gone(struct netio_push_receiver *worker, enum plx_link_reason reason,
			   const char *why)
{
	struct netio_push_receiver_stats stats;

	netio_push_receiver_stats(worker, &stats);
	fprintf(stderr, "%s gone: %s; %llu jobs go to others\n", worker->address, why,
		(unsigned long long)stats.taken_away);
}

static void on_answer(struct netio_push_receiver *worker, const struct netio_msg *answer)
{
	uint64_t number = number_of(answer);

	if (number >= give.count)
		return;
	give.by[worker->id - 1]++;
	if (give.is_done[number]) {
		give.twice++;
		return;
	}
	give.is_done[number] = true;
	if (++give.done == give.count)
		netio_terminate(&ctx.evloop);
}

static int give_all(char *const *ports, unsigned port_count)
{
	if (netio_push_socket_init(&ctx.evloop, &give.socket, NULL) != 0)
		return 1;
	give.socket.cb_connection_established = on_worker;
	give.socket.cb_connection_closed = on_worker_gone;
	give.socket.cb_buffers_available = give_jobs;
	give.socket.cb_msg_received = on_answer;
	for (unsigned i = 0; i < port_count; i++)
		if (netio_push_connect(&give.socket, "127.0.0.1",
				       (unsigned)strtoul(ports[i], NULL, 10)) != 0)
			return 1;
	netio_run(&ctx.evloop);
	for (unsigned i = 0; i < port_count; i++)
		printf("worker %s: %llu jobs\n", ports[i], (unsigned long long)give.by[i]);
	printf("%llu of %llu jobs done, %llu of them twice\n", (unsigned long long)give.done,
	       (unsigned long long)give.count, (unsigned long long)give.twice);
	return give.done < give.count;
}

int main(int argc, char **argv)
{
	bool works = argc == 4 && strcmp(argv[1], "work") == 0;
	bool gives = argc >= 4 && argc <= 3 + WORKERS_MAX && strcmp(argv[1], "give") == 0;
	int status;

	if (!works && !gives) {
		fprintf(stderr, "usage: netio_farm work PORT MICROSECONDS\n"
				"       netio_farm give COUNT PORT...\n");
		return 2;
	}
	if (netio_init(&ctx) != 0)
		return 1;
	if (works) {
		work.job_us = strtoull(argv[3], NULL, 10);
		status = do_work((unsigned)strtoul(argv[2], NULL, 10));
	} else {
		give.count = strtoull(argv[2], NULL, 10);
		give.is_done = calloc(give.count + 1, sizeof(*give.is_done));
		status = give.is_done ? give_all(argv + 3, (unsigned)argc - 3) : 1;
	}
	status |= netio_fini(&ctx) != 0;
	free(give.is_done);
	return status;
}
