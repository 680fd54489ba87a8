/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes blocks of 1 MiB without a copy. A block is used again when all subscribers have it.
 * The source waits while no block is free or a subscriber has no room.
 * Run it:  netio_publish_ref 12345 100      and netio_subscribe 0 0 127.0.0.1 12345 */
#include "netio/netio.h"
#include <stdio.h>

#define BLOCK_BYTES (1u << 20)
#define BLOCKS      4

struct source {
	struct netio_context ctx;
	struct netio_unbuffered_publish_socket socket;
	char *memory;
	uint64_t unused[BLOCKS]; /* offsets in memory of blocks that are not being sent */
	unsigned unused_count;
	uint64_t current; /* the block that is being published */
	bool is_again;    /* a subscriber had no room for it */
	uint64_t next, count;
};

static void publish_blocks(struct source *source)
{
	while (source->is_again || (source->next < source->count && source->unused_count > 0)) {
		if (!source->is_again) {
			source->current = source->unused[--source->unused_count];
			snprintf(source->memory + source->current, BLOCK_BYTES, "block %llu",
				 (unsigned long long)source->next);
		}
		struct iovec iov = {source->memory + source->current, BLOCK_BYTES};
		int rc = netio_unbuffered_publishv(&source->socket, 0, &iov, 1, &source->current,
						   source->is_again ? NETIO_REENTRY : 0, NULL);

		source->is_again = rc == NETIO_STATUS_AGAIN || rc == NETIO_STATUS_PARTIAL;
		if (source->is_again)
			return; /* on_available follows */
		source->next++;
		if (rc != NETIO_STATUS_OK) /* no subscriber: on_published does not follow */
			source->unused[source->unused_count++] = source->current;
	}
	if (source->next == source->count && source->unused_count == BLOCKS)
		netio_terminate(&source->ctx.evloop);
}

static void on_available(struct netio_unbuffered_publish_socket *socket)
{
	publish_blocks(socket->data);
}

/* The block may be used again. key: what publishing was given. */
static void on_published(struct netio_unbuffered_publish_socket *socket, uint64_t key, int status)
{
	struct source *source = socket->data;

	source->unused[source->unused_count++] = key;
	publish_blocks(source);
}

static void on_subscribed(struct netio_subscriber *subscriber,
			  const struct netio_subscription *what)
{
	on_available(subscriber->socket);
}

int main(int argc, char **argv)
{
	static struct source source;
	uint64_t port;
	int rc;

	if (argc != 3 || plx_parse_uint("PORT", argv[1], 0, 65535, &port) != 0 ||
	    plx_parse_uint("COUNT", argv[2], 1, 0, &source.count) != 0) {
		fprintf(stderr, "usage: netio_publish_ref PORT COUNT\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (netio_init(&source.ctx) != 0 ||
	    netio_unbuffered_publish_socket_init(&source.ctx.evloop, &source.socket, NULL) != 0)
		return 1; /* NetIO logs what fails to standard error */
	source.socket.data = &source;
	source.socket.cb_subscribed = on_subscribed;
	source.socket.cb_buffers_available = on_available;
	source.socket.cb_msg_published = on_published;
	source.memory = plx_mem_alloc(BLOCKS * BLOCK_BYTES, 0, PLX_NODE_ANY, NULL);
	if (!source.memory) {
		fprintf(stderr, "netio_publish_ref: %s\n", plx_error());
		return 1;
	}
	for (; source.unused_count < BLOCKS; source.unused_count++)
		source.unused[source.unused_count] = source.unused_count * BLOCK_BYTES;
	if (netio_unbuffered_publish_listen(&source.socket, "127.0.0.1", (unsigned)port) != 0)
		return 1;
	printf("listening on 127.0.0.1:%u\n", netio_unbuffered_publish_socket_port(&source.socket));
	rc = netio_run(&source.ctx.evloop);
	return netio_fini(&source.ctx) != 0 || rc != 0 || source.next < source.count;
}
