/* SPDX-License-Identifier: BSD-3-Clause */
/* What two processes share, and nothing else does: the layout of a segment and of a bell, and the
 * order in which they are written and read. doc/design/shm.md says why it is so.
 *
 * A segment is one direction of a connection. The receiver makes it, on its own NUMA node, in a
 * sealed memfd, and gives it to the sender. It is a page of control words and a ring of records:
 *
 *     record: header word, [8 bytes of CQ data,] payload; begins at a multiple of RECORD_UNIT
 *     word:   length of what follows | kind << 32 | flags << 40; 0: not written yet
 *
 * The sender writes a record, clears the word behind it, and publishes it by its own word; so the
 * receiver looks at one word, and a small message moves as few cache lines as it can. A record does
 * not wrap: where it does not fit before the end, a RECORD_SKIP fills the rest. The bytes of a part
 * begin at a RECORD_UNIT of their own, behind its word: whole lines are copied quicker.
 *
 * Who reads a word that the other side may write reads it once, and checks it before use. */
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
#define RECORD_DATA_BYTES      8 /* CQ data, where RECORD_HAS_DATA */

enum record_kind {
	RECORD_MESSAGE = 1, /* a whole message */
	RECORD_SKIP = 2,    /* nothing up to the end of the ring */
	RECORD_READ = 3,    /* where in the sender's memory it is: struct record_piece, at most 4 */
	RECORD_FIRST = 4,   /* the first part of one that needs several records: u64 total, bytes */
	RECORD_NEXT = 5,    /* a further part: bytes; the total tells which is the last */
};

enum record_flag {
	RECORD_HAS_DATA = 1 << 0, /* CQ data stands before the payload */
	RECORD_ACK = 1 << 1,      /* the sender waits for the head to pass it: say so at once */
};

struct record_piece {
	uint64_t address, length;
};

/* How a side wants to be called when there is something for it: none of these, one, or both. */
enum shm_call {
	CALL_NONE = 0,      /* it looks by itself */
	CALL_BELL = 1 << 0, /* set the bit in its bell: it does not look */
	CALL_WAKE = 1 << 1, /* send a byte on the socket: it may be asleep */
};

/* Each block has one writer; two lines each, as the processor fetches lines in pairs. */
struct segment_control {
	/* Receiver. */
	alignas(2 * PLX_CACHE_LINE) _Atomic uint32_t call; /* when a record was published */
	_Atomic uint32_t can_read; /* it can read the sender's memory: RECORD_READ is understood */
	/* Receiver: how far it has come, in bytes, free-running; a multiple of RECORD_UNIT. Told
	 * after an eighth of the ring; at once for RECORD_ACK, and after each part of a message. */
	alignas(2 * PLX_CACHE_LINE) _Atomic uint64_t head;
	/* Sender: how it wants to be called when head moved: CALL_WAKE, or not. */
	alignas(2 * PLX_CACHE_LINE) _Atomic uint32_t space_call;
};

static_assert(sizeof(struct segment_control) <= SEGMENT_CONTROL_BYTES, "control words are a page");

/* A bell belongs to a completion queue: a bit for each of its connections, which says that there
 * may be something to be found. All peers of that queue share it, so it is a hint and no more: a
 * peer that clears bits of others delays them until the next sweep (progress.c), and one that sets
 * them makes the queue look in vain, a bounded number of times a poll. */
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
