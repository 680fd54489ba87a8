/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes images from the camera's memory without a copy. A buffer is reused when all watchers
 * have its image; without a free buffer, or without room, the camera waits.
 *
 * Try it:  netio_images serve 12345 1000 2         1000 images, when two watch
 *          netio_images watch 12345                in other terminals */
#include "netio/netio.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG_IMAGE   1
#define IMAGE_BYTES (1u << 20)
#define BUFFERS     4

static struct netio_context ctx;

/* Publishing ---------------------------------------------------------------------------------- */

static struct netio_unbuffered_publish_socket publisher;
static uint8_t *buffers[BUFFERS];
static uint64_t unused[BUFFERS]; /* buffers that are not being sent */
static unsigned unused_count;
static uint64_t current; /* the buffer of the image to publish */
static bool has_image;   /* it is valid */
static bool is_again;    /* and a watcher had no room for it */
static bool is_blocked;  /* and no room has been reported yet */
static uint64_t taken, to_take;
static uint64_t watchers, to_wait_for;

/* The camera: an image that starts with its number. */
static bool take_image(void)
{
	if (unused_count == 0)
		return false;
	current = unused[--unused_count];
	memset(buffers[current], (int)taken, IMAGE_BYTES);
	memcpy(buffers[current], &taken, sizeof(taken));
	taken++;
	return true;
}

static void publish_images(void)
{
	while (!is_blocked && (has_image || (taken < to_take && take_image()))) {
		struct iovec iov = {buffers[current], IMAGE_BYTES};
		uint64_t key = current; /* returned when the buffer may be reused */
		int rc = netio_unbuffered_publishv(&publisher, TAG_IMAGE, &iov, 1, &key,
						   is_again ? NETIO_REENTRY : 0, NULL);

		is_again = is_blocked = rc == NETIO_STATUS_AGAIN || rc == NETIO_STATUS_PARTIAL;
		has_image = is_again;
		if (rc != NETIO_STATUS_OK && !is_again)
			unused[unused_count++] = current; /* no watcher: the image is lost */
	}
	if (taken == to_take && unused_count == BUFFERS)
		netio_terminate(&ctx.evloop);
}

static void on_available(struct netio_unbuffered_publish_socket *socket)
{
	is_blocked = false;
	publish_images();
}

static void on_published(struct netio_unbuffered_publish_socket *socket, uint64_t key, int status)
{
	unused[unused_count++] = key;
	publish_images();
}

static void on_watched(struct netio_subscriber *who, const struct netio_subscription *what)
{
	printf("%s watches\n", who->peer);
	if (++watchers >= to_wait_for)
		publish_images();
}

static int serve(unsigned port, uint64_t count, uint64_t watcher_count)
{
	to_take = count;
	to_wait_for = watcher_count;
	for (; unused_count < BUFFERS; unused_count++) {
		buffers[unused_count] = plx_mem_alloc(IMAGE_BYTES, 0, PLX_NODE_ANY, NULL);
		unused[unused_count] = unused_count;
		if (!buffers[unused_count])
			return 1;
	}
	if (netio_unbuffered_publish_socket_init(&ctx.evloop, &publisher, NULL) != 0)
		return 1;
	publisher.cb_subscribed = on_watched;
	publisher.cb_buffers_available = on_available;
	publisher.cb_msg_published = on_published;
	if (netio_unbuffered_publish_listen(&publisher, "127.0.0.1", port) != 0)
		return 1;
	printf("listening on 127.0.0.1:%u\n", netio_unbuffered_publish_socket_port(&publisher));
	netio_run(&ctx.evloop);
	return netio_drain(&ctx.evloop, 5 * PLX_NS_PER_S) != 0;
}

/* Watching ------------------------------------------------------------------------------------ */

static uint64_t images, wrong, next;

static void on_image(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	uint64_t number = 0;

	if (msg->len >= sizeof(number))
		memcpy(&number, msg->data, sizeof(number));
	wrong += msg->len != IMAGE_BYTES || (images > 0 && number != next) ||
		 ((const uint8_t *)msg->data)[msg->len - 1] != (uint8_t)number;
	next = number + 1;
	images++;
}

static void on_closed(struct netio_publisher *service, enum plx_link_reason reason, const char *why)
{
	netio_terminate(&ctx.evloop);
}

static int watch(unsigned port)
{
	struct netio_subscribe_attr attr = {.buffer_bytes = IMAGE_BYTES + 16, .buffer_count = 4};
	struct netio_subscribe_socket socket;

	if (netio_subscribe_socket_init(&ctx.evloop, &socket, &attr) != 0)
		return 1;
	socket.cb_connection_closed = on_closed;
	socket.cb_msg_received = on_image;
	if (netio_subscribe(&socket, "127.0.0.1", port, TAG_IMAGE) != 0)
		return 1;
	netio_run(&ctx.evloop);
	netio_subscribe_socket_fini(&socket);
	printf("%" PRIu64 " images, the last one %" PRIu64 ", %" PRIu64 " wrong\n", images,
	       images ? next - 1 : 0, wrong);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	bool is_serve = argc == 5 && strcmp(argv[1], "serve") == 0;
	int rc;

	if (!is_serve && (argc != 3 || strcmp(argv[1], "watch") != 0)) {
		fprintf(stderr, "usage: netio_images serve PORT COUNT WATCHERS\n"
				"       netio_images watch PORT\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (netio_init(&ctx) != 0)
		return 1;
	rc = is_serve ? serve((unsigned)strtoul(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
			      strtoull(argv[4], NULL, 10))
		      : watch((unsigned)strtoul(argv[2], NULL, 10));
	return netio_fini(&ctx) != 0 || rc ? 1 : 0;
}
