/* SPDX-License-Identifier: BSD-3-Clause */
/* What a provider does with a receive context that endpoints share, and with buffers for many
 * messages: each trial has sides of its own, two connections, and prints a line or more. */
#include "multi_recv.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS       2
#define SMALL       64
#define RECEIVE     4096
#define CHUNK       (64 << 10)
#define LARGE       (8 << 20) /* more than the sockets take in */
#define CHUNK_LARGE (LARGE + (24 << 10))
#define QUIET_NS    (50 * PLX_NS_PER_MS)
#define SEEN_MAX    4096

/* Messages of peer n are filled with the byte 'A' + n. */
struct trial {
	struct side from, to;
	struct connection clients[PEERS], servers[PEERS];
	struct fi_context contexts[8];
	unsigned posted;
	uint8_t *memory[8];
	uint8_t *large;
};

/* What the receiver's queue gave. */
struct seen {
	unsigned count;
	unsigned released; /* with FI_MULTI_RECV; the last of them is */
	unsigned last_released;
	unsigned errors;
	int error; /* the first one */
	char who[SEEN_MAX];
	fi_addr_t source; /* of the last one */
	void *context;
};

/* Hints ------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	uint64_t caps;
	size_t contexts;
} asked[] = {
	{"FI_MSG", 0, 0},
	{"FI_MULTI_RECV", FI_MULTI_RECV, 0},
	{"FI_SHARED_CONTEXT", 0, FI_SHARED_CONTEXT},
	{"FI_SHARED_CONTEXT and FI_MULTI_RECV", FI_MULTI_RECV, FI_SHARED_CONTEXT},
	{"FI_SHARED_CONTEXT and FI_SOURCE", FI_SOURCE, FI_SHARED_CONTEXT},
};

static void try_hints(const struct plx_fabric_driver *driver, const char *provider)
{
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct fi_info *hints = side_hints(driver, provider), *info = NULL;

		hints->caps |= asked[i].caps;
		hints->ep_attr->rx_ctx_cnt = asked[i].contexts;

		int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);

		printf("offers %s: %s\n", asked[i].name, rc ? fi_strerror(-rc) : "yes");
		fi_freeinfo(hints);
		if (info)
			fi_freeinfo(info);
	}
}

/* A trial ---------------------------------------------------------------------------------- */

static int open_trial(struct trial *t, const struct plx_fabric_driver *driver, const char *provider,
		      bool shared, uint64_t caps)
{
	*t = (struct trial){0};

	int rc = side_open(&t->from, driver, provider, false, 0);

	if (!rc)
		rc = side_open(&t->to, driver, provider, shared, caps);
	for (int i = 0; i < PEERS && !rc; i++)
		rc = side_connect(&t->from, &t->clients[i], &t->to, &t->servers[i]);
	t->large = calloc(1, LARGE);
	return rc;
}

static void close_trial(struct trial *t)
{
	for (int i = 0; i < PEERS; i++) {
		connection_close(&t->clients[i]);
		connection_close(&t->servers[i]);
	}
	side_close(&t->from);
	side_close(&t->to);
	for (unsigned i = 0; i < t->posted; i++)
		free(t->memory[i]);
	free(t->large);
}

static void send_some(struct trial *t, int peer, unsigned count, size_t size)
{
	memset(t->large, 'A' + peer, size);
	for (unsigned i = 0; i < count; i++) {
		ssize_t rc = size <= SMALL
				   ? fi_inject(t->clients[peer].ep, t->large, size, 0)
				   : fi_send(t->clients[peer].ep, t->large, size, NULL, 0, NULL);

		if (rc)
			printf("  a send failed: %s\n", fi_strerror((int)-rc));
	}
}

static void post(struct trial *t, struct fid_ep *to, size_t bytes, uint64_t flags)
{
	unsigned which = t->posted++;
	struct iovec iov = {.iov_base = t->memory[which] = calloc(1, bytes), .iov_len = bytes};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &t->contexts[which]};
	ssize_t rc = fi_recvmsg(to, &msg, flags | FI_COMPLETION);

	if (rc)
		printf("  a receive was not posted: %s\n", fi_strerror((int)-rc));
}

/* Who sent it is told by what it is filled with: where the entry says, or in the receive's own
 * buffer, where a provider does not say. */
static void take_entry(struct trial *t, struct seen *seen, const struct fi_cq_data_entry *entry)
{
	struct fi_context *context = entry->op_context;
	const char *bytes = entry->buf ? entry->buf : t->memory[context - t->contexts];

	if (seen->count < SEEN_MAX - 1)
		seen->who[seen->count] = *bytes;
	seen->count++;
	seen->context = context;
	if (entry->flags & FI_MULTI_RECV) {
		seen->released++;
		seen->last_released = seen->count;
	}
}

/* One look at the queue. Returns whether something was there. */
static bool look(struct trial *t, struct seen *seen)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error = {0};
	fi_addr_t source = FI_ADDR_UNSPEC;
	ssize_t n = fi_cq_readfrom(t->to.fids.cq, &entry, 1, &source);

	if (n > 0) {
		seen->source = source;
		take_entry(t, seen, &entry);
	} else if (n == -FI_EAVAIL && fi_cq_readerr(t->to.fids.cq, &error, 0) > 0) {
		seen->errors++;
		seen->error = seen->error ? seen->error : error.err;
	}
	return n != -FI_EAGAIN;
}

/* Look until nothing has come for a while. */
static struct seen look_all(struct trial *t)
{
	struct seen seen = {0};
	uint64_t quiet_ns = plx_now_ns() + QUIET_NS;

	while (plx_now_ns() < quiet_ns) {
		side_turn(&t->from);
		if (look(t, &seen))
			quiet_ns = plx_now_ns() + QUIET_NS;
		else
			side_turn(&t->to);
	}
	return seen;
}

static void print_seen(const char *what, const struct seen *seen)
{
	printf("  %s: %u came (%.12s%s)", what, seen->count, seen->who,
	       seen->count > 12 ? "..." : "");
	if (seen->errors)
		printf(", %u failed: %s", seen->errors, fi_strerror(seen->error));
	printf("\n");
}

static void look_and_print(struct trial *t, const char *what)
{
	struct seen seen = look_all(t);

	print_seen(what, &seen);
}

/* Trials ----------------------------------------------------------------------------------- */

static void whose(struct trial *t)
{
	for (int peer = 0; peer < PEERS; peer++) {
		post(t, t->to.srx, RECEIVE, 0);
		send_some(t, peer, 1, SMALL);

		struct seen seen = look_all(t);

		print_seen("a message to the context", &seen);
		printf("  its op_context is the receive's: %s; its source: ",
		       seen.context == &t->contexts[peer] ? "yes" : "no");
		if (seen.source == FI_ADDR_UNSPEC)
			printf("not written\n");
		else
			printf("%llu\n", (unsigned long long)seen.source);
	}
}

static void empty_queue(struct trial *t)
{
	post(t, t->servers[1].ep, RECEIVE, 0);
	send_some(t, 0, 3, SMALL);
	send_some(t, 1, 1, SMALL);
	look_and_print(t, "3 of A without a receive, 1 of B with one");
	connection_close(&t->clients[0]);
	look_and_print(t, "A's end closes");
	printf("  the end of A is seen: %s\n", t->servers[0].ended ? "yes" : "no");
}

static void empty_context(struct trial *t)
{
	post(t, t->to.srx, RECEIVE, 0);
	send_some(t, 0, 3, SMALL);
	send_some(t, 1, 3, SMALL);
	look_and_print(t, "1 receive, 3 of A and 3 of B");
	post(t, t->to.srx, RECEIVE, 0);
	look_and_print(t, "one receive more");
	post(t, t->to.srx, RECEIVE, 0);
	look_and_print(t, "one receive more");
	connection_close(&t->clients[1]);
	look_and_print(t, "B's end closes");
	printf("  the end of B is seen: %s\n", t->servers[1].ended ? "yes" : "no");
}

static void empty_context_of_chunks(struct trial *t)
{
	send_some(t, 0, 3, SMALL);
	send_some(t, 1, 3, SMALL);
	look_and_print(t, "nothing is posted, 3 of A and 3 of B");
	post(t, t->to.srx, CHUNK, FI_MULTI_RECV);
	look_and_print(t, "a buffer for 1 024 of them");
	send_some(t, 1, 1, SMALL);
	look_and_print(t, "one more of B");
	post(t, t->to.srx, CHUNK, FI_MULTI_RECV);
	look_and_print(t, "another buffer");
}

static void one_chunk(struct trial *t)
{
	size_t least = 64;
	int rc = fi_setopt(&t->to.srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			   sizeof(least));
	int rc_ep = fi_setopt(&t->servers[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			      &least, sizeof(least));

	printf("  FI_OPT_MIN_MULTI_RECV of the context: %s; of an endpoint: %s\n",
	       rc ? fi_strerror(-rc) : "taken", rc_ep ? fi_strerror(-rc_ep) : "taken");
	post(t, t->to.srx, CHUNK, FI_MULTI_RECV);
	send_some(t, 0, CHUNK / SMALL, SMALL);

	struct seen seen = look_all(t);

	print_seen("64 KiB in messages of 64 B, a buffer of 64 KiB", &seen);
	printf("  released by message %u: %d bytes of it were not used\n", seen.last_released,
	       seen.released ? CHUNK - (int)seen.last_released * SMALL : 0);
}

static void longer_than_left(struct trial *t)
{
	post(t, t->to.srx, CHUNK, FI_MULTI_RECV);
	post(t, t->to.srx, CHUNK, FI_MULTI_RECV);
	send_some(t, 0, 1, 40 << 10);
	send_some(t, 0, 1, 30 << 10);
	look_and_print(t, "two buffers of 64 KiB, a message of 40 KiB and one of 30");
	printf("  the connection has ended: %s\n", t->servers[0].ended ? "yes" : "no");
}

/* A's message is on its way into the buffer when B's take the rest of it. */
static void released_early(struct trial *t)
{
	struct seen seen = {0};

	post(t, t->to.srx, CHUNK_LARGE, FI_MULTI_RECV);
	send_some(t, 0, 1, LARGE);
	look(t, &seen);
	memset(t->large, 'A', LARGE);
	for (int i = 0; i < 200; i++) {
		uint8_t small[SMALL];

		memset(small, 'B', sizeof(small));
		fi_inject(t->clients[1].ep, small, sizeof(small), 0);
		look(t, &seen);
	}
	print_seen("200 of B while 8 MiB of A come into the same buffer", &seen);
	printf("  released: %s; A's has come then: %s\n", seen.released ? "yes" : "no",
	       memchr(seen.who, 'A', sizeof(seen.who)) ? "yes" : "no");

	uint8_t before = t->memory[0][LARGE - 1];

	look_and_print(t, "what comes behind that");
	printf("  the last byte of A's was %s, and is %s\n", before ? "there" : "not there",
	       t->memory[0][LARGE - 1] ? "there" : "not there");
}

static const struct {
	const char *name;
	bool shared;
	uint64_t caps;
	void (*run)(struct trial *t);
} trials[] = {
	{"receives of each endpoint's own, none posted", false, 0, empty_queue},
	{"whose a message is", true, 0, whose},
	{"whose a message is, with FI_SOURCE", true, FI_SOURCE, whose},
	{"a context runs empty", true, 0, empty_context},
	{"a buffer for many messages", true, FI_MULTI_RECV, one_chunk},
	{"a message longer than what is left", true, FI_MULTI_RECV, longer_than_left},
	{"a context of such buffers runs empty", true, FI_MULTI_RECV, empty_context_of_chunks},
	{"a buffer is released", true, FI_MULTI_RECV, released_early},
};

int receive_trials(const struct plx_fabric_driver *driver, const char *provider)
{
	static struct trial trial;

	try_hints(driver, provider);
	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		printf("%s\n", trials[i].name);

		int rc = open_trial(&trial, driver, provider, trials[i].shared, trials[i].caps);

		if (rc == 0)
			trials[i].run(&trial);
		else
			printf("  not offered: %s\n", plx_error());
		close_trial(&trial);
	}
	return 0;
}
