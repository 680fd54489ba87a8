/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of netio-throughput. */
#ifndef NETIO_THROUGHPUT_H
#define NETIO_THROUGHPUT_H

#include "app.h"
#include "bench.h"

#define THROUGHPUT_SIZES_MAX 32

enum throughput_mode { MODE_BUFFERED, MODE_UNBUFFERED, MODE_REFERENCE, MODE_PING };

/** The parsed command line. */
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

/** Connect the socket of the chosen mode; throughput_socket.c. Return: 0; else plx_error(). */
int throughput_connect(struct netio_eventloop *evloop);

/** Send a counted message or a request. Return: enum netio_status, or another -errno. */
int throughput_send(const void *data, size_t len);
int throughput_ask(netio_tag_t tag, const void *data, size_t len);

/** Callbacks from the socket; throughput.c. */
void throughput_established(void);
void throughput_refused(const char *why);
void throughput_closed(const char *why);
void throughput_available(void);
void throughput_answered(const struct netio_msg *msg);

struct throughput_row {
	uint64_t size_bytes;
	uint64_t messages, bytes; /**< as counted by the receiver */
	uint64_t elapsed_ns;      /**< between its two counts */
	const struct plx_hist *rtt_ns;
};

/** Print a row, and keep it for throughput_write. */
void throughput_print(const struct throughput_row *row);

/** Create the output file, before anything is measured. Return: 0; -errno. */
int throughput_open(void);

/** Write the rows to the output file, if any. Return: 0; -EIO. */
int throughput_write(void);

#endif
