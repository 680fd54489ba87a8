/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of netio-cat. Messages arrive on standard input (cat_input.c), and
 * cat_publish.c, cat_send.c or cat_push.c sends them; or cat_receive.c receives
 * them and cat_output.c writes them to standard output. Everything runs on one lcore, and nothing
 * blocks. */
#ifndef NETIO_CAT_H
#define NETIO_CAT_H

#include "app.h"
#include "netio/netio.h"

#define CAT_MESSAGE_MAX (16u << 20) /* a line; the default limit of NetIO's sockets */

enum cat_mode { CAT_PUBLISH, CAT_SUBSCRIBE, CAT_SEND, CAT_PUSH, CAT_RECV };
enum cat_encoding { CAT_TEXT, CAT_HEX, CAT_RAW };

/* cat_options.c: the command line ------------------------------------------------------------- */

struct cat_address {
	char host[PLX_ADDRESS_MAX];
	unsigned port;
};

struct cat_conf {
	unsigned mode;                                  /* enum cat_mode */
	struct cat_address addresses[PLX_APP_LIST_MAX]; /* subscribe, push: several */
	unsigned address_count;
	unsigned encoding; /* enum cat_encoding */
	struct netio_subscription tags[PLX_APP_LIST_MAX];
	unsigned tag_count;
	bool at_most_once;
	bool unbuffered, at_once, show_tag, show_time, show_publisher, stats;
	uint64_t block_bytes;
	uint64_t rate;  /* messages a second; 0: unlimited */
	uint64_t count; /* messages; 0: all */
	uint64_t subscribers;
	unsigned policy; /* enum netio_policy */
	uint64_t backlog_bytes;
};

extern struct cat_conf cat_conf;
extern const struct plx_app cat_app;

/* The tag of all messages sent; 0 if not given. */
static inline netio_tag_t cat_tag(void)
{
	return cat_conf.tags[0].tag;
}

/* cat.c: the run ------------------------------------------------------------------------------- */

extern struct netio_context cat_ctx;

/* Print one line on standard error, if it can be written. */
void cat_tell(const char *format, ...) PLX_PRINTF(1, 2);

/* Report that a peer has connected, or is silent, or is heard again. choice: NULL: omitted. */
void cat_tell_connected(const char *address, const char *program, pid_t pid, const char *provider,
			const char *choice);
void cat_tell_suspect(const char *peer, bool suspect);

/* As cat_tell, for failures; makes the exit status 1. */
void cat_fail(const char *format, ...) PLX_PRINTF(1, 2);

/* Everything is done: leave the loop, then close the connections without loss. */
void cat_end(void);

/* cat_input.c: from standard input to a socket ------------------------------------------------- */

struct cat_sender {
	/* again: the same message as before, which found no room. Return: enum netio_status, or
	 * another error. */
	int (*send)(const void *data, size_t len, bool again);
	void (*flush)(void); /* NULL: nothing waits in pages */
	/* The input has ended: send what is left, then call cat_end. */
	void (*finish)(void);
};

/* Return: 0; an error. */
int cat_input_start(const struct cat_sender *sender);

/* Start sending: now, and whenever there is room again. */
void cat_input_go(void);

/* Stop reading. Reports what became of the messages read. */
void cat_input_stop(void);

/* cat_split.c: splitting a byte stream into messages ------------------------------------------- */

enum cat_split {
	CAT_SPLIT_MESSAGE,
	CAT_SPLIT_MORE, /* needs more of the stream */
	CAT_SPLIT_END,
	CAT_SPLIT_BAD, /* plx_error() has the error and the line */
};

/* Where to read more bytes into when there is no message. Return: NULL: out of memory. */
void *cat_split_room(size_t *room_out);

/* That many bytes were read; 0: end of the stream. */
void cat_split_took(size_t len);

/* The next message, valid until cat_split_room. */
enum cat_split cat_split_next(const uint8_t **data_out, size_t *len_out);

void cat_split_fini(void);

/* Messages kept until a socket releases them --------------------------------------- */

/* Send a copy of a message, or `again` the newest one. Return: as send; -ENOMEM. */
int cat_copy_send(const void *data, size_t len, bool again,
		  int (*send)(const struct iovec *iov, uint64_t key, bool again));
/* status: from the socket; 0: the socket never had it. */
void cat_copy_done(uint64_t key, int status);
unsigned cat_copy_count(void);

/* The sockets of the modes --------------------------------------------------------------------- */

/* Each takes what the loop needs. Return: 0; an error, which is logged. */
int cat_publish_start(struct netio_eventloop *evloop);
int cat_send_start(struct netio_eventloop *evloop);
int cat_push_start(struct netio_eventloop *evloop);
int cat_subscribe_start(struct netio_eventloop *evloop);
int cat_recv_start(struct netio_eventloop *evloop);

/* At the end of publish: tell which messages were lost. */
void cat_publish_report(void);

/* cat_output.c: from a socket to standard output ----------------------------------------------- */

/* Return: 0; an error. */
int cat_output_start(void);

/* publisher: printed before the message, and remains; NULL: none. */
void cat_output_message(const struct netio_msg *msg, const char *publisher);

/* After the loop: write what is left, while the reader takes it. */
void cat_output_finish(void);

/* --stats: rates of the messages received (cat.c) ---------------------------------------------- */

/* Return: 0; an error. */
int cat_stats_start(struct netio_eventloop *evloop);

void cat_stats_message(size_t len);

/* missed: 0 if the number is unknown. */
void cat_stats_gap(uint64_t missed);

#endif
