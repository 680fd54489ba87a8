/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing records into a segment and reading them. Hot path; each end is private to one thread.
 * Memory order:
 *
 *     W1 -> W2   record and the cleared word after it, before its word; the word, before the record
 *     H1 -> H2   the record was copied out, before its place is written again
 *
 * Publishing and asking to be called are four steps on two words; the argument is that of a lane
 * (lib/lcore/messages/lane.c). C2 to C4 are sequentially consistent, and so is the fence between C1
 * and C2; one fence is enough for many records:
 *
 *     sender                             receiver
 *     C1 store the record's word (W1)    C3 store how it wants to be called
 *     C2 load how the receiver wants     C4 check the record's word once more (W2)
 *        to be called
 *
 * The same holds for head (H1) and space_call with the sides swapped: E1 to E4. */
#ifndef SHM_RING_H
#define SHM_RING_H

#include "segment.h"

#include <string.h>

/* Bytes past the tail that are cleared at once, after a record of up to CLEAR_RECORD_MAX bytes. */
#define CLEAR_AHEAD      1024
#define CLEAR_RECORD_MAX 128
/* Longest record whose successor's lines are fetched early: 4096 bytes and headers. memcpy fetches
 * the lines of longer ones as fast. */
#define FETCH_RECORD_MAX 4160

/* The sender's end. */
struct ring_writer {
	struct segment segment;
	uint64_t tail;    /* bytes written, free-running */
	uint64_t head;    /* last value read, checked */
	uint64_t cleared; /* words from the tail up to here are 0 */
	bool broken;      /* head was invalid: the peer wrote garbage */
};

/* The receiver's end. */
struct ring_reader {
	struct segment segment;
	uint64_t head;      /* bytes read, free-running */
	uint64_t head_told; /* as published to the sender */
};

/* A record as read. */
struct record {
	uint8_t kind, flags;
	uint32_t length;        /* of the payload */
	uint64_t data;          /* CQ data; 0 if none */
	const uint8_t *payload; /* in shared memory: read each byte once */
	uint32_t bytes;         /* its size in the ring */
};

/* Ring bytes of a record with that payload. */
static inline uint32_t record_bytes(uint64_t length, uint8_t flags)
{
	uint64_t bytes = RECORD_WORD_BYTES + (flags & RECORD_HAS_DATA ? RECORD_DATA_BYTES : 0) +
			 length;

	return (uint32_t)((bytes + RECORD_UNIT - 1) & ~(uint64_t)(RECORD_UNIT - 1));
}

/* Bytes of a part's payload that precede its message bytes: see segment.h. */
static inline uint32_t ring_part_header(uint8_t flags)
{
	return RECORD_UNIT - RECORD_WORD_BYTES - (flags & RECORD_HAS_DATA ? RECORD_DATA_BYTES : 0);
}

/* The largest payload of one record, which may take a quarter of the ring. Then it fits into an
 * empty ring wherever it begins, even before the receiver publishes the last eighth. */
static inline uint32_t ring_payload_max(const struct segment *segment)
{
	return segment->ring_bytes / 4 - RECORD_WORD_BYTES - RECORD_DATA_BYTES;
}

static inline _Atomic uint64_t *ring_word(const struct segment *segment, uint64_t position)
{
	return (_Atomic uint64_t *)(segment->ring + (position & (segment->ring_bytes - 1)));
}

/* Writing ---------------------------------------------------------------------------------- */

/* Load how far the receiver has read. */
void ring_refresh(struct ring_writer *writer);

/* Fill the rest of the ring, which is too short for the next record. */
void ring_skip(struct ring_writer *writer, uint32_t left);

/* Reserve a record of that many bytes at the tail. NULL: no room now. */
static inline uint8_t *ring_claim(struct ring_writer *writer, uint32_t bytes)
{
	const struct segment *segment = &writer->segment;
	uint32_t offset = (uint32_t)writer->tail & (segment->ring_bytes - 1);
	uint32_t left = segment->ring_bytes - offset;
	/* The word after the record is written too. */
	uint64_t need = (bytes <= left ? bytes : left + bytes) + RECORD_UNIT;

	if (plx_unlikely(writer->tail + need > writer->head + segment->ring_bytes)) {
		ring_refresh(writer);
		if (writer->tail + need > writer->head + segment->ring_bytes)
			return NULL;
	}
	if (plx_unlikely(bytes > left)) {
		ring_skip(writer, left);
		offset = 0;
	}
	return segment->ring + offset;
}

/* The start of a claimed record's payload. */
static inline uint8_t *ring_payload(uint8_t *record, uint8_t flags, uint64_t data)
{
	record += RECORD_WORD_BYTES;
	if (flags & RECORD_HAS_DATA) {
		memcpy(record, &data, sizeof(data));
		record += RECORD_DATA_BYTES;
	}
	return record;
}

/* Clear possible words up to `end`, but no unread record. */
static inline void ring_clear(struct ring_writer *writer, uint64_t end)
{
	/* Relaxed: the next W1 makes it visible. */
	for (; writer->cleared < end; writer->cleared += RECORD_UNIT)
		atomic_store_explicit(ring_word(&writer->segment, writer->cleared), 0,
				      memory_order_relaxed);
}

/* After a record, when nobody waits: clear ahead, so that this CPU already owns the next lines. */
static inline void ring_clear_ahead(struct ring_writer *writer)
{
	uint64_t room = writer->head + writer->segment.ring_bytes;
	uint64_t end = writer->tail + CLEAR_AHEAD;

	if (plx_unlikely(writer->cleared < writer->tail + CLEAR_AHEAD / 2))
		ring_clear(writer, end < room ? end : room);
}

/* Fetch the lines of one more record of `bytes`. */
static inline void ring_fetch_ahead(struct ring_writer *writer, uint32_t bytes)
{
	uint64_t room = writer->head + writer->segment.ring_bytes;
	uint64_t end = writer->tail + bytes;

	end = end < room ? end : room;
	for (uint64_t at = writer->tail; at < end; at += PLX_CACHE_LINE)
		plx_prefetch_write(ring_word(&writer->segment, at));
}

/* After a record of `bytes`, when nobody waits: take the next lines from the receiver, which read
 * them last. Records of one or two lines are mostly words: these are cleared. The payload of longer
 * ones overwrites the words, and the stores would delay it, so their lines are only fetched: those
 * of one more record, because the receiver polls the line after that (doc/design/shm.md). */
static inline void ring_own_ahead(struct ring_writer *writer, uint32_t bytes)
{
	if (bytes <= CLEAR_RECORD_MAX)
		ring_clear_ahead(writer);
	else if (bytes <= FETCH_RECORD_MAX)
		ring_fetch_ahead(writer, bytes);
}

/* Publish a claimed record. ring_call must follow eventually. */
static inline void ring_commit(struct ring_writer *writer, enum record_kind kind, uint8_t flags,
			       uint32_t length, uint32_t bytes)
{
	uint64_t word = length | (uint64_t)kind << 32 | (uint64_t)flags << 40;
	uint64_t next = writer->tail + bytes;

	if (plx_unlikely(writer->cleared <= next)) {
		writer->cleared = next;
		ring_clear(writer, next + RECORD_UNIT);
	}
	/* W1 -> W2; C1. Not an exchange, which a sequentially consistent store compiles to. An
	 * exchange starts when all earlier stores are done, and by then the receiver, which polls
	 * the word's line, has taken the line away. */
	atomic_store_explicit(ring_word(&writer->segment, writer->tail), word,
			      memory_order_release);
	writer->tail = next;
}

/* Whether the receiver appears to ask for a call: it may be asking now, and be asleep before it
 * sees the last records. */
static inline bool ring_asks(const struct ring_writer *writer)
{
	/* Relaxed: a writer that sees a request checks again in ring_call; one that sees none does
	 * so later. */
	return atomic_load_explicit(&writer->segment.control->call, memory_order_relaxed) !=
	       CALL_NONE;
}

/* Load how the receiver wants to be called about everything published. The fence before the load
 * ensures that it does not sleep through a published record. The caller that takes the request must
 * call. Waits until the written lines arrive here, a cache miss or two. Returns bits of enum
 * shm_call, and any other bits that the peer wrote. */
static inline uint32_t ring_call(struct ring_writer *writer)
{
	_Atomic uint32_t *call = &writer->segment.control->call;

	atomic_thread_fence(memory_order_seq_cst); /* between C1 and C2 */
	/* C2 */
	if (plx_likely(atomic_load_explicit(call, memory_order_seq_cst) == CALL_NONE))
		return CALL_NONE;
	return atomic_exchange_explicit(call, CALL_NONE, memory_order_seq_cst);
}

/* Reading ---------------------------------------------------------------------------------- */

static inline bool ring_look(const struct ring_reader *reader)
{
	/* C4; the record is read after W2. */
	return atomic_load_explicit(ring_word(&reader->segment, reader->head),
				    memory_order_seq_cst) != 0;
}

/* Check a word and fill in the rest of the record. Return: 1; 0 it was a skip with nothing after
 * it; -1 the peer wrote garbage. */
int ring_parse(struct ring_reader *reader, uint64_t word, struct record *record_out);

/* The next record. Return: 1; 0 none; -1 the peer wrote garbage. */
static inline int ring_peek(struct ring_reader *reader, struct record *record_out)
{
	const struct segment *segment = &reader->segment;
	uint32_t offset = (uint32_t)reader->head & (segment->ring_bytes - 1);
	/* W2 <- W1 */
	uint64_t word = atomic_load_explicit(ring_word(segment, reader->head),
					     memory_order_acquire);
	uint32_t bytes = record_bytes((uint32_t)word, 0);

	if (plx_likely(word == 0)) {
		/* Most records extend into the line after that of their word. Prefetched now, it
		 * arrives together with the word's line. */
		plx_prefetch_read(ring_word(segment, reader->head + PLX_CACHE_LINE));
		return 0;
	}
	/* Most records, checked as ring_parse does. */
	if (plx_unlikely(word >> 32 != RECORD_MESSAGE ||
			 (uint32_t)word > ring_payload_max(segment) ||
			 bytes > segment->ring_bytes - offset))
		return ring_parse(reader, word, record_out);
	*record_out = (struct record){
		.kind = RECORD_MESSAGE,
		.length = (uint32_t)word,
		.payload = segment->ring + offset + RECORD_WORD_BYTES,
		.bytes = bytes,
	};
	return 1;
}

/* Publish how far we have read. Returns whether the sender wants to be woken. */
bool ring_tell(struct ring_reader *reader);

/* Release a copied record. Returns whether the sender wants to be woken. */
static inline bool ring_advance(struct ring_reader *reader, const struct record *record)
{
	reader->head += record->bytes;
	if (plx_likely(reader->head - reader->head_told < reader->segment.ring_bytes / 8 &&
		       !(record->flags & RECORD_ACK)))
		return false;
	return ring_tell(reader);
}

#endif
