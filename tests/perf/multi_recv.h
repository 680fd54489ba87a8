/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways to receive with libfabric alone: buffers that are posted on an endpoint, or on a receive
 * context that endpoints share, for one message each or for many. */
#ifndef MULTI_RECV_H
#define MULTI_RECV_H

#include "plx_base.h"
#include "plx_fabric_driver.h"

/* One end of connections: its domain and queues, as links have them, and what it listens on. */
struct side {
	const struct plx_fabric_driver *driver;
	const char *provider; /* libfabric's name */
	bool shared;          /* endpoints receive from srx */
	struct plx_fabric_fids fids;
	struct fi_info *info;
	struct fid_pep *pep;
	struct fid_ep *srx;
	struct connection *accepts; /* the next one that comes */
};

struct connection {
	struct fid_ep *ep;
	bool connected;
	bool ended;
};

/* Hints as lib/fabric makes them, to be changed further. */
struct fi_info *side_hints(const struct plx_fabric_driver *driver, const char *provider);

/* Open all but connections, on loopback. caps: beside FI_MSG. All return 0, or -errno with a text
 * in plx_error(). */
int side_open(struct side *side, const struct plx_fabric_driver *driver, const char *provider,
	      bool shared, uint64_t caps);
void side_close(struct side *side);

/* Make a connection of both; in `to` it is what it accepts. */
int side_connect(struct side *from, struct connection *client, struct side *to,
		 struct connection *server);
void connection_close(struct connection *connection);

/* Let the provider work, and take what happened to connections. */
int side_turn(struct side *side);

/* A failure of libfabric's as ours. */
int fabric_failed(ssize_t rc, const char *what);

/* Ways ------------------------------------------------------------------------------------- */

#define RECEIVER_POSTED_MAX 256
#define RECEIVER_SIZE_MIN   24  /* of messages */
#define RECEIVER_SIZE_MAX   128 /* what net and tcp inject */

struct receiver;

/* One way to receive. */
struct receive_way {
	const char *name;
	bool shared;        /* on a context that endpoints share */
	unsigned posted;    /* receives */
	size_t chunk_bytes; /* of a buffer for many messages; 0: for one each */
	int (*take)(struct receiver *receiver, const struct fi_cq_data_entry *entry);
};

struct slot {
	struct fi_context context; /* first: a completion's op_context is its slot */
	struct plx_buf *buf;       /* for one message; or */
	uint8_t *chunk;            /* for many */
};

/* A connection over which one end floods the other, in one way. */
struct receiver {
	const struct receive_way *way;
	struct side sides[2]; /* of who sends, and of who receives */
	struct connection ends[2];
	struct slot slots[RECEIVER_POSTED_MAX];
	struct plx_buf *view; /* of one message in a chunk */
	size_t size;          /* of each message */
	uint64_t sent;
	uint64_t received;
	uint64_t empty; /* looks that found nothing */
	unsigned signals_out;
};

extern const struct receive_way receive_ways[];
extern const size_t receive_way_count;

/* Connect, post, and make some messages. Return also: -ENODATA the provider has no such way. */
int receiver_open(struct receiver *r, const struct receive_way *way,
		  const struct plx_fabric_driver *driver, const char *provider, size_t size);
void receiver_close(struct receiver *r);

/* Send, and wait until libfabric has sent them. */
int flood_send(struct receiver *r, uint64_t count);

/* Look until so many messages have come in all. This is what is measured: callgrind finds it by its
 * name. */
int flood_receive(struct receiver *r, uint64_t until);

/* Send in bursts, and receive each one then; adds the time that receiving took. */
int flood_drain(struct receiver *r, uint64_t count, uint64_t burst, uint64_t *took_tsc);

/* Trials ----------------------------------------------------------------------------------- */

/* Try what a provider does with a receive context, and print it. */
int receive_trials(const struct plx_fabric_driver *driver, const char *provider);

#endif
