/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-ping: main.c parses, serve.c answers, self.c starts a server. What is measured: messages.c
 * and calls.c, as loads of the engine (lib/app/load.h); client.c has the link of the first. */
#ifndef PING_H
#define PING_H

#include "load.h"

#define PING_COPY_MAX 1024 /* longer messages are sent by reference */
#define PING_WINDOW   6    /* receive buffers of a round-trip link, at most */

/* One-way messages per turn, at most: enough to make the rest of a turn cheap, and few enough that
 * new credit is read before the old runs out. */
#define PING_BURST_MAX     64
#define PING_ADDRESS_BYTES 64 /* of the server of --self */

/** The parsed command line. */
struct ping_conf {
	const char *listen, *connect;
	bool self; /**< start a server for this run, and connect to it */
	uint64_t size_bytes;
	struct plx_measure run;
	uint64_t warmup; /**< messages before the measured ones, with warmup_given */
	bool warmup_given;
	uint64_t rx_buf_bytes; /**< 0: chosen so that a message of size_bytes is one frame */
	bool verify;
	bool one_way;     /**< send without waiting for answers */
	uint64_t burst;   /**< with one_way: messages per turn, at most */
	bool sink;        /**< with listen: drop messages */
	unsigned spread;  /**< enum plx_spread, with listen */
	uint64_t rx_bufs; /**< with sink: receive buffers of a link; 0: by size */
	bool explain;     /**< explain the result */
};

extern const struct plx_app ping_app;

/** The measuring side of a link. */
struct ping_client {
	struct plx_load load; /* the first member */
	const struct ping_conf *conf;
	struct plx_link *link;
	struct plx_pool *pool; /* for messages too long to copy */
	struct plx_buf
		*message; /* one way: sent repeatedly by reference; NULL: payload is copied */
	uint8_t *payload;
	int64_t trip_tsc;      /* smoothed, of the last answers */
	uint64_t again_before; /* one way: refused in the warm-up */
	bool is_open;
};

/** Set the callbacks of the load, and those of the link that are not client.c's. */
void ping_set_load(struct ping_client *client, struct plx_link_events *events);

/** One way: the link has closed. */
void ping_one_way_closed(struct ping_client *client, enum plx_link_reason reason, uint64_t now_tsc);

/** Measure messages of a link, or calls of the self-test service, until count, duration or a
 * signal, and report. Thread: the main lcore. Return: the exit status. */
int ping_measure(const struct ping_conf *conf);
int ping_measure_calls(const struct ping_conf *conf);

/** plx_load_init, with the warm-up that was asked for. */
int ping_load_init(struct plx_load *load, const struct ping_conf *conf, uint64_t in_flight_max);

/** Turn the loop until no callback of the run can follow. */
void ping_settle(void);

/** Fill a payload: every byte depends on the message number and its position. */
void ping_fill(uint8_t *out, uint64_t size, uint64_t seq);

/** Explain the result, if there is one. */
void ping_explain(const struct plx_load *load);

/** Listen, and answer or drop messages until a signal. Prints its errors. Thread: main. Return: the
 * exit status. */
int ping_serve(const struct ping_conf *conf);

/** Start plx-ping --listen as a second process, on another CPU if possible. It ends with this
 * process. Thread: the main lcore. Return: 0, its address in `address`; -errno with a text. */
int ping_self_start(const struct ping_conf *conf, char address[PING_ADDRESS_BYTES]);

/** End the second process, if any: in at most 0.3 s, also if it is stopped. */
void ping_self_stop(void);

/** Size and number of receive buffers: one holds a message in one frame. */
uint32_t ping_rx_buf_bytes(const struct ping_conf *conf);
uint32_t ping_rx_buf_count(const struct ping_conf *conf);

#endif
