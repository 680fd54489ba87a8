/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives each job to the worker with the most room. If a worker dies, others get its jobs. A job is
 * done when its answer arrives.
 * Run it:  netio_push 10000 7001 7002      with netio_pull at these two ports */
#include "netio/netio.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct giver {
	struct netio_context ctx;
	struct netio_push_socket socket;
	uint64_t next, count, done, twice;
	bool *is_done;
};

/* Called when a worker connects, and after AGAIN when a worker has room again. */
static void push_jobs(struct netio_push_socket *socket)
{
	struct giver *giver = socket->data;

	while (giver->next < giver->count &&
	       netio_push(socket, &giver->next, sizeof(giver->next)) == NETIO_STATUS_OK)
		giver->next++;
}

static void on_worker(struct netio_push_receiver *worker)
{
	fprintf(stderr, "%s connected\n", worker->address);
	push_jobs(worker->push_socket);
}

static void on_worker_gone(struct netio_push_receiver *worker, enum plx_link_reason reason,
			   const char *why)
{
	struct netio_push_receiver_stats stats;

	netio_push_receiver_stats_read(worker, &stats);
	fprintf(stderr, "worker %s gone: %s; %llu jobs go to others\n", worker->address,
		plx_link_reason_name(reason), (unsigned long long)stats.taken_away);
}

/* A job may be done twice, if its first worker died, or seemed to, before the answer arrived. */
static void on_answer(struct netio_push_receiver *worker, const struct netio_msg *answer)
{
	struct giver *giver = worker->push_socket->data;
	uint64_t number = giver->count;

	if (answer->len == sizeof(number))
		memcpy(&number, answer->data, sizeof(number));
	if (number >= giver->count)
		return;
	giver->twice += giver->is_done[number];
	giver->done += !giver->is_done[number];
	giver->is_done[number] = true;
	if (giver->done == giver->count)
		netio_terminate(&giver->ctx.evloop);
}

static int usage(void)
{
	fprintf(stderr, "usage: netio_push COUNT PORT...\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct giver giver;
	uint64_t port;
	int rc;

	if (argc < 3 || plx_parse_uint("COUNT", argv[1], 1, UINT32_MAX, &giver.count) != 0)
		return usage();
	giver.is_done = calloc(giver.count, sizeof(*giver.is_done));
	if (!giver.is_done || netio_init(&giver.ctx) != 0 ||
	    netio_push_socket_init(&giver.ctx.evloop, &giver.socket, NULL) != 0)
		return 1; /* NetIO logs what fails to standard error */
	giver.socket.data = &giver;
	giver.socket.cb_connection_established = on_worker;
	giver.socket.cb_connection_closed = on_worker_gone;
	giver.socket.cb_buffers_available = push_jobs;
	giver.socket.cb_msg_received = on_answer;
	for (int i = 2; i < argc; i++) {
		if (plx_parse_uint("PORT", argv[i], 1, 65535, &port) != 0)
			return usage();
		if (netio_push_connect(&giver.socket, "127.0.0.1", (unsigned)port) != 0)
			return 1;
	}
	rc = netio_run(&giver.ctx.evloop);
	printf("%llu of %llu jobs done, %llu of them twice\n", (unsigned long long)giver.done,
	       (unsigned long long)giver.count, (unsigned long long)giver.twice);
	if (netio_fini(&giver.ctx) != 0)
		rc = -1;
	free(giver.is_done);
	return rc != 0 || giver.done < giver.count;
}
