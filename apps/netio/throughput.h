/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of netio-throughput share. */
#ifndef NETIO_THROUGHPUT_H
#define NETIO_THROUGHPUT_H

#include "bench.h"
#include "plx_app.h"

#define THROUGHPUT_SIZES_MAX 32

enum throughput_mode { MODE_BUFFERED, MODE_UNBUFFERED, MODE_REFERENCE, MODE_PING };

/** What the command line asked for. */
struct throughput_conf {
	const char *connect;
	const char *sizes_text, *json_path;
	uint64_t sizes[THROUGHPUT_SIZES_MAX];
	unsigned size_count;
	unsigned mode; /**< enum throughput_mode */
	uint64_t duration_ns;
	uint64_t page_bytes, page_count;
};

extern struct throughput_conf throughput_conf;
extern const struct plx_app throughput_app;

/** The socket that the mode asks for; throughput_socket.c. Return: 0; else plx_error(). */
int throughput_connect(struct netio_eventloop *evloop);

/** A message that counts; a question. Return: enum netio_status, or another -errno. */
int throughput_send(const void *data, size_t len);
int throughput_ask(netio_tag_t tag, const void *data, size_t len);

/** What it tells; throughput.c. */
void throughput_established(void);
void throughput_refused(const char *why);
void throughput_closed(const char *why);
void throughput_available(void);
void throughput_answered(const struct netio_msg *msg);

struct throughput_row {
	uint64_t size_bytes;
	uint64_t messages, bytes; /**< that the receiver counted */
	uint64_t elapsed_ns;      /**< between its two counts */
	const struct plx_hist *rtt_ns;
};

/** Print a row, and keep it for throughput_write. */
void throughput_print(const struct throughput_row *row);

/** Make the file that was asked for, before anything is measured. Return: 0; -errno. */
int throughput_open(void);

/** Write the rows that there are to the file that was asked for, if one was. Return: 0; -EIO. */
int throughput_write(void);

#endif
