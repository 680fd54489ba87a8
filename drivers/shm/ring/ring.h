/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing records into a segment, and reading them out of it. Hot path; both ends are private to
 * one thread each. Memory order:
 *
 *     W1 -> W2   record and cleared word behind it, before its word; the word, before the record
 *     H1 -> H2   the record was copied out, before its place is written again
 *
 * Publishing and asking to be called are four steps on two words; the argument is that of a lane
 * (lib/lcore/messages/lane.c). C2 to C4 are sequentially consistent, and so is the fence between C1
 * and C2, of which one is enough for many records:
 *
 *     sender                             receiver
 *     C1 store the record's word (W1)    C3 store how it wants to be called
 *     C2 load how the receiver wants     C4 look at the record's word once more (W2)
 *        to be called
 *
 * and the same for head (H1) and space_call, with the sides changed: E1 to E4. */
#ifndef SHM_RING_H
#define SHM_RING_H

#include "segment.h"

#include <string.h>

/* Bytes behind the tail that are cleared in one go. */
#define CLEAR_AHEAD 1024

/* The sender's end. */
struct ring_writer {
	struct segment segment;
	uint64_t tail;    /* bytes written, free-running */
	uint64_t head;    /* as last read, checked */
	uint64_t cleared; /* what could be a word is 0 from behind the tail up to here */
	bool broken;      /* head was not what it may be: the peer scribbles */
};

/* The receiver's end. */
struct ring_reader {
	struct segment segment;
	uint64_t head;      /* bytes read, free-running */
	uint64_t head_told; /* as the sender can see it */
};

/* A record as it was read. */
struct record {
	uint8_t kind, flags;
	uint32_t length;        /* of the payload */
	uint64_t data;          /* CQ data; 0 where there is none */
	const uint8_t *payload; /* in shared memory: each byte is read once */
	uint32_t bytes;         /* that it takes of the ring */
};

/* Bytes of ring that a record with that much payload takes. */
static inline uint32_t record_bytes(uint64_t length, uint8_t flags)
{
	uint64_t bytes = RECORD_WORD_BYTES + (flags & RECORD_HAS_DATA ? RECORD_DATA_BYTES : 0) +
			 length;

	return (uint32_t)((bytes + RECORD_UNIT - 1) & ~(uint64_t)(RECORD_UNIT - 1));
}

/* Of the payload of a part, the bytes before those of its message: see segment.h. */
static inline uint32_t ring_part_header(uint8_t flags)
{
	return RECORD_UNIT - RECORD_WORD_BYTES - (flags & RECORD_HAS_DATA ? RECORD_DATA_BYTES : 0);
}

void ring_writer_init(struct ring_writer *writer, const struct segment *segment);
void ring_reader_init(struct ring_reader *reader, const struct segment *segment);

/* A record may take a quarter of the ring: then it fits into an empty one wherever it begins, also
 * while the receiver has not told of the last eighth. */
static inline uint32_t ring_record_max(const struct segment *segment)
{
	return segment->ring_bytes / 4;
}

/* The greatest payload of one record. */
static inline uint32_t ring_payload_max(const struct segment *segment)
{
	return ring_record_max(segment) - RECORD_WORD_BYTES - RECORD_DATA_BYTES;
}

static inline _Atomic uint64_t *ring_word(const struct segment *segment, uint64_t position)
{
	return (_Atomic uint64_t *)(segment->ring + (position & (segment->ring_bytes - 1)));
}

/* Writing ---------------------------------------------------------------------------------- */

/* Read how far the receiver has come. */
void ring_refresh(struct ring_writer *writer);

/* Fill what is left before the end, which the record at hand does not fit in. */
void ring_skip(struct ring_writer *writer, uint32_t left);

/* Room for a record of that many bytes, which begins where this points. NULL: not now. */
static inline uint8_t *ring_claim(struct ring_writer *writer, uint32_t bytes)
{
	const struct segment *segment = &writer->segment;
	uint32_t offset = (uint32_t)writer->tail & (segment->ring_bytes - 1);
	uint32_t left = segment->ring_bytes - offset;
	/* The word behind the record is written too. */
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

/* Where the payload of a claimed record begins. */
static inline uint8_t *ring_payload(uint8_t *record, uint8_t flags, uint64_t data)
{
	record += RECORD_WORD_BYTES;
	if (flags & RECORD_HAS_DATA) {
		memcpy(record, &data, sizeof(data));
		record += RECORD_DATA_BYTES;
	}
	return record;
}

/* Clear what could be words up to there, but no record that was not read. */
static inline void ring_clear(struct ring_writer *writer, uint64_t end)
{
	/* Relaxed: the next W1 makes it visible. */
	for (; writer->cleared < end; writer->cleared += RECORD_UNIT)
		atomic_store_explicit(ring_word(&writer->segment, writer->cleared), 0,
				      memory_order_relaxed);
}

/* After a record, when nobody waits: clear for the next ones, so that their lines are this CPU's by
 * then. */
static inline void ring_clear_ahead(struct ring_writer *writer)
{
	uint64_t room = writer->head + writer->segment.ring_bytes;
	uint64_t end = writer->tail + CLEAR_AHEAD;

	if (plx_unlikely(writer->cleared < writer->tail + CLEAR_AHEAD / 2))
		ring_clear(writer, end < room ? end : room);
}

/* Publish a claimed record. ring_call has to follow, sooner or later. */
static inline void ring_commit(struct ring_writer *writer, enum record_kind kind, uint8_t flags,
			       uint32_t length, uint32_t bytes)
{
	uint64_t word = length | (uint64_t)kind << 32 | (uint64_t)flags << 40;
	uint64_t next = writer->tail + bytes;

	if (plx_unlikely(writer->cleared <= next)) {
		writer->cleared = next;
		ring_clear(writer, next + RECORD_UNIT);
	}
	/* W1 -> W2; C1. Not an exchange, which is what a sequentially consistent store is compiled
	 * to: it begins when all stores before it are done, and the receiver, who reads the word's
	 * line all the time, has taken the line away by then. */
	atomic_store_explicit(ring_word(&writer->segment, writer->tail), word,
			      memory_order_release);
	writer->tail = next;
}

/* Whether the receiver asks to be called, as far as can be seen at once: it may be asking now, and
 * be asleep before it can see the last records. */
static inline bool ring_asks(const struct ring_writer *writer)
{
	/* Relaxed: who sees a wish looks again, by ring_call, and so does in time who sees none. */
	return atomic_load_explicit(&writer->segment.control->call, memory_order_relaxed) !=
	       CALL_NONE;
}

/* How the receiver wants to be called, for all that was published, once the receiver can see it: it
 * is not asleep on any of it. Whoever takes the wish away calls. This waits until the lines that
 * were written are here, a cache miss or two. Returns bits of enum shm_call, and whatever else the
 * peer put there. */
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

/* Whether there is a record. */
static inline bool ring_look(const struct ring_reader *reader)
{
	/* C4; the record itself is read after W2. */
	return atomic_load_explicit(ring_word(&reader->segment, reader->head),
				    memory_order_seq_cst) != 0;
}

/* Check what a word says, and fill in the rest of the record. Return: 1; 0 it was a skip, with
 * nothing behind it; -1 the peer scribbles. */
int ring_parse(struct ring_reader *reader, uint64_t word, struct record *record_out);

/* The next record. Return: 1; 0 there is none; -1 the peer scribbles. */
static inline int ring_peek(struct ring_reader *reader, struct record *record_out)
{
	const struct segment *segment = &reader->segment;
	uint32_t offset = (uint32_t)reader->head & (segment->ring_bytes - 1);
	/* W2 <- W1 */
	uint64_t word = atomic_load_explicit(ring_word(segment, reader->head),
					     memory_order_acquire);
	uint32_t bytes = record_bytes((uint32_t)word, 0);

	if (plx_likely(word == 0)) {
		/* Most records reach into the line behind that of their word. Asked for now, it
		 * comes together with the word's, not after it. */
		plx_prefetch_read(ring_word(segment, reader->head + PLX_CACHE_LINE));
		return 0;
	}
	/* What most records are, checked as ring_parse does. */
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

/* Say how far we have come. Returns whether the sender wants to be woken for it. */
bool ring_tell(struct ring_reader *reader);

/* The record was copied out. Returns whether the sender wants to be woken. */
static inline bool ring_advance(struct ring_reader *reader, const struct record *record)
{
	reader->head += record->bytes;
	if (plx_likely(reader->head - reader->head_told < reader->segment.ring_bytes / 8 &&
		       !(record->flags & RECORD_ACK)))
		return false;
	return ring_tell(reader);
}

#endif
