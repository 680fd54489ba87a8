/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the raw baselines: the command line, bounded waits, and the record of round trips or of
 * a stream. A round-trip baseline stamps immediately before its send call and first thing after it
 * has seen the answer, as plx-ping does, so the path between the stamps is compared. A stream
 * baseline stops its clock when the receiver has confirmed that it got everything. */
#ifndef RAW_COMMON_H
#define RAW_COMMON_H

#include "app.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>

#define RAW_SIZE_MAX    ((uint64_t)64 << 20)
#define RAW_PEER_NS     (5 * PLX_NS_PER_S) /* silence of a connected peer before the program ends */
#define RAW_CONNECT_NS  (10 * PLX_NS_PER_S) /* time for a client to reach its server */
#define RAW_SPINS_CHECK 4096                /* spins between two clock reads */
#define RAW_POSTED_MAX  512                 /* receives posted at a time */
#define RAW_FLOW_LOOK   16                  /* messages of a stream between two clock reads */

struct raw_options {
	const char *name;
	const char *provider;
	const char *idle;
	const char *address;        /* as given */
	char host[PLX_ADDRESS_MAX]; /* without brackets */
	char port[16];
	const char *out;
	uint64_t size;
	uint64_t duration_ns; /* 0: count decides */
	uint64_t count;
	uint64_t warmup;
	uint64_t wait_ns; /* time for a client to connect */
	uint64_t cpu;     /* RAW_CPU_ANY: not pinned */
	uint64_t window;  /* stream: sends in flight; 0: by size */
	uint64_t posted;  /* stream: receives posted ahead; 0: by size */
	bool listen;
	bool cq_cannot_sleep; /* libfabric's FI_WAIT_NONE: faster for one link on its tcp 1.17 */
	bool copy;            /* messages are copied for sending */
	bool one_way;         /* of a program with both: a stream, not round trips */
	bool sleeps;          /* waits in epoll_wait instead of spinning */
};

#define RAW_CPU_ANY UINT64_MAX

/* The measured part of a run. */
struct raw_run {
	struct plx_hist hist;
	uint64_t warmup_left;
	uint64_t count_left;   /* remaining measured trips */
	uint64_t duration_tsc; /* 0: count_left decides */
	uint64_t first_tsc;    /* stamp before the first measured send */
	uint64_t last_tsc;
};

/* The measured part of a stream. */
struct raw_flow {
	uint64_t count; /* messages that the receiver got */
	uint64_t elapsed_tsc;
	uint64_t again;        /* sends that found no room */
	uint64_t duration_tsc; /* 0: the options' count decides */
};

/* Sent by a client after messages of a stream, and returned. Its size distinguishes it from
 * messages. */
struct raw_mark {
	uint64_t count; /* messages since the last mark; in the answer: received */
	uint64_t unused;
};

#define RAW_MARK_END UINT64_MAX /* the last mark */

static inline size_t raw_mark_bytes(uint64_t size)
{
	return size == sizeof(uint64_t) ? sizeof(struct raw_mark) : sizeof(uint64_t);
}

/* A baseline: of round trips (ping), streams (stream) or both (--one-way). message: what it sends,
 * of the requested size, with the common pattern. All return 0, or -errno with the text in
 * plx_error(). */
struct raw_program {
	const char *provider;
	const char *idle;            /* NULL: as --idle says */
	const char *choices;         /* the options of some programs that it has */
	const struct raw_kind *kind; /* of libfabric's endpoints: see raw_fi.h */
	uint64_t fixed_size;         /* the only size; 0: any */
	bool address_is_a_name;      /* otherwise HOST:PORT */
	int (*serve)(const struct raw_options *options);
	int (*ping)(const struct raw_options *options, uint8_t *message, struct raw_run *run);
	int (*stream)(const struct raw_options *options, struct raw_flow *flow);
};

/* This program's baseline. raw_main.c parses, pins, runs serve, ping or stream, prints and writes
 * the result. */
extern const struct raw_program raw_program;

/* Whether it measures a stream. */
static inline bool raw_streams(const struct raw_options *options)
{
	return raw_program.stream && (options->one_way || !raw_program.ping);
}

/* End cleanly on SIGINT and SIGTERM. libfabric and its providers install handlers, so call this
 * after the endpoint is created. */
void raw_catch_signals(void);

extern atomic_bool raw_stop;

/* A page-aligned, touched buffer: zeroed for receiving, or with the messages' pattern. NULL, with
 * an error text: out of memory. */
uint8_t *raw_buffer(size_t size);
uint8_t *raw_message(size_t size);

/* Check that the received message equals the sent one; `what` is for the text. Return: 0;
 * -EBADMSG. */
int raw_check_message(const uint8_t *sent, const uint8_t *received, size_t size, const char *what);

/* Write a trip's number into a message, and check it in the answer, both outside of the stamps.
 * Otherwise an answer to an earlier message would arrive at once and look fast. In messages below 8
 * bytes the number is the first byte. */
static inline void raw_number(uint8_t *message, size_t size, uint64_t number)
{
	if (plx_likely(size >= sizeof(number)))
		memcpy(message, &number, sizeof(number));
	else
		message[0] = (uint8_t)number;
}

/* Return: 0; -EBADMSG. */
static inline int raw_check_number(const uint8_t *received, size_t size, uint64_t number)
{
	uint64_t got = received[0];

	if (plx_likely(size >= sizeof(got)))
		memcpy(&got, received, sizeof(got));
	else
		number = (uint8_t)number;
	return plx_likely(got == number)
		     ? 0
		     : plx_fail(EBADMSG, "the answer to message %llu is that to %llu",
				(unsigned long long)number, (unsigned long long)got);
}

/* A wait with a limit. */
struct raw_wait {
	uint32_t spins;
	uint64_t deadline_ns;
};

/* The slow path of raw_wait_over. */
int raw_wait_check(struct raw_wait *wait, uint64_t limit_ns, const char *what);

/* Call after every empty poll. Return: 0 continue; -ETIMEDOUT or -EINTR, with a text naming
 * `what`. */
static inline int raw_wait_over(struct raw_wait *wait, uint64_t limit_ns, const char *what)
{
	if (plx_likely(++wait->spins % RAW_SPINS_CHECK))
		return 0;
	return raw_wait_check(wait, limit_ns, what);
}

/* Accept one client within the limit. Return: the socket; -errno with a text. */
int raw_accept(const struct raw_options *options, int listener);

/* An epoll with only that descriptor, in *epoll_out. Return: 0; -errno with a text naming
 * `what`. */
int raw_open_epoll(int fd, uint32_t events, const char *what, int *epoll_out);

/* Sleep until that epoll reports an event (in *event) or a signal comes. Return: 0;
 * -errno. */
int raw_sleep(int epoll, struct epoll_event *event);

/* Messages of a stream due before the next clock read; 0: done. */
static inline uint64_t raw_flow_due(const struct raw_options *options, const struct raw_flow *flow,
				    uint64_t begin_tsc, uint64_t count)
{
	if (flow->duration_tsc)
		return plx_tsc() - begin_tsc < flow->duration_tsc ? RAW_FLOW_LOOK : 0;
	uint64_t left = options->count - count;
	return left < RAW_FLOW_LOOK ? left : RAW_FLOW_LOOK;
}

/* How a baseline sends `count` messages of a stream, and waits until the server has all of them.
 * Return: 0; -errno. */
typedef int raw_flow_step(void *side, uint64_t count);

/* Send and count the warm-up, then what is measured. Return: 0; -errno. */
static inline int raw_flow_send(const struct raw_options *options, struct raw_flow *flow,
				raw_flow_step *send, raw_flow_step *settle, void *side)
{
	uint64_t count = 0, due;
	int rc = send(side, options->warmup);

	rc = rc ? rc : settle(side, options->warmup);
	flow->again = 0;
	uint64_t begin = plx_tsc();
	while (!rc && (due = raw_flow_due(options, flow, begin, count)) > 0) {
		rc = send(side, due);
		count += due;
	}
	rc = rc ? rc : settle(side, count);
	flow->count = count;
	flow->elapsed_tsc = plx_tsc() - begin;
	return rc;
}

/* Record one round trip. Returns whether another is due. */
static inline bool raw_run_add(struct raw_run *run, uint64_t sent_tsc, uint64_t seen_tsc)
{
	/* Relaxed: a separate flag, set by a signal to this thread. */
	if (plx_unlikely(atomic_load_explicit(&raw_stop, memory_order_relaxed)))
		return false;
	if (plx_unlikely(run->warmup_left)) {
		run->warmup_left--;
		return true;
	}
	if (plx_unlikely(!run->first_tsc))
		run->first_tsc = sent_tsc;
	run->last_tsc = seen_tsc;
	plx_hist_record(&run->hist, plx_tsc_to_ns(seen_tsc - sent_tsc));
	if (run->duration_tsc)
		return seen_tsc - run->first_tsc < run->duration_tsc;
	return --run->count_left > 0;
}

#endif
