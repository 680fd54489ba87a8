/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that two processes share: the layout of segments and bells, and the order in which
 * they are written and read. doc/design/shm.md gives the reasons.
 *
 * A segment is one direction of a connection. The receiver creates it on its NUMA node in a sealed
 * memfd and passes it to the sender. It is a page of control words and a ring of records:
 *
 *     record: header word, [8 bytes of CQ data,] payload; starts at a multiple of RECORD_UNIT
 *     word:   length of what follows | kind << 32 | flags << 40; 0: not written yet
 *
 * The sender writes a record, clears the word after it, and publishes it by its word. So the
 * receiver polls one word, and a small message moves as few cache lines as possible. A record does
 * not wrap: if it does not fit before the end, a RECORD_SKIP fills the rest. The bytes of a part
 * start at the next RECORD_UNIT after its word, because whole lines copy faster.
 *
 * Each side reads a word that the other can write only once, and checks it before use. */
#ifndef SHM_SEGMENT_H
#define SHM_SEGMENT_H

#include "plx_base.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

#define SEGMENT_CONTROL_BYTES  4096
#define SEGMENT_RING_BYTES_MIN (UINT32_C(64) << 10)
#define SEGMENT_RING_BYTES_MAX (UINT32_C(64) << 20)

#define RECORD_UNIT            64
#define RECORD_WORD_BYTES      8
#define RECORD_DATA_BYTES      8 /* CQ data, if RECORD_HAS_DATA */

enum record_kind {
	RECORD_MESSAGE = 1, /* a whole message */
	RECORD_SKIP = 2,    /* nothing follows up to the end of the ring */
	RECORD_READ = 3,    /* u64 bytes of its start, at most RECORD_START_MAX, these bytes, and
			     * the place of the rest in the sender's memory: 1 to 4 record_piece */
	RECORD_FIRST = 4,   /* first part of a message in several records: u64 total, bytes */
	RECORD_NEXT = 5,    /* a further part: bytes; the total identifies the last */
};

enum record_flag {
	RECORD_HAS_DATA = 1 << 0, /* CQ data precedes the payload */
	RECORD_ACK = 1 << 1,      /* the sender waits for head to pass it: publish head at once */
};

struct record_piece {
	uint64_t address, length;
};
#define RECORD_START_MAX 64

/* How a side wants to be called when there is work for it: any combination of these bits. */
enum shm_call {
	CALL_NONE = 0,      /* it polls */
	CALL_BELL = 1 << 0, /* set the bit in its bell: it does not poll this ring */
	CALL_WAKE = 1 << 1, /* send a byte on the socket: it may be asleep */
};

/* Each block has one writer, and two lines, since processors fetch lines in pairs. */
struct segment_control {
	/* Receiver. */
	alignas(2 * PLX_CACHE_LINE) _Atomic uint32_t call; /* when a record is published */
	_Atomic uint32_t can_read; /* it can read the sender's memory: RECORD_READ is allowed */
	/* Receiver: bytes read, free-running; a multiple of RECORD_UNIT. Published after an eighth
	 * of the ring; at once for RECORD_ACK, and after each part of a message. */
	alignas(2 * PLX_CACHE_LINE) _Atomic uint64_t head;
	/* Sender: how it wants to be called when head moves: CALL_WAKE or nothing. */
	alignas(2 * PLX_CACHE_LINE) _Atomic uint32_t space_call;
};

static_assert(sizeof(struct segment_control) <= SEGMENT_CONTROL_BYTES, "control words are a page");

/* A bell belongs to a completion queue. It has a bit per connection, which says that the connection
 * may have work. All peers of the queue share it, so it is only a hint. A peer that clears bits of
 * others delays them until the next sweep (progress.c); one that sets them causes a bounded number
 * of useless checks per poll. */
#define BELL_BITS  4096 /* connections beyond that share bits */
#define BELL_BYTES 4096

struct bell {
	/* Bit i: words[i] is not 0. Set after the word, cleared before it. */
	alignas(2 * PLX_CACHE_LINE) _Atomic uint64_t summary;
	alignas(2 * PLX_CACHE_LINE) _Atomic uint64_t words[BELL_BITS / 64];
};

static_assert(sizeof(struct bell) <= BELL_BYTES, "a bell is a page");

/* A mapped memfd. */
struct segment {
	struct segment_control *control;
	uint8_t *ring;
	uint32_t ring_bytes; /* a power of two */
};

#endif
