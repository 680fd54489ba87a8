/* SPDX-License-Identifier: BSD-3-Clause */
/* The cold paths of ring.h, and the checks of a peer's values. */
#include "ring.h"

void ring_refresh(struct ring_writer *writer)
{
	/* H2 <- H1; E4 if space_call was stored before */
	uint64_t head = atomic_load_explicit(&writer->segment.control->head, memory_order_seq_cst);

	/* It must move forward, from record to record, and not past what was written. */
	if (head - writer->head > writer->tail - writer->head || head % RECORD_UNIT)
		writer->broken = true;
	else
		writer->head = head;
}

void ring_skip(struct ring_writer *writer, uint32_t left)
{
	ring_commit(writer, RECORD_SKIP, 0, 0, left);
}

static bool is_known(uint8_t kind, uint8_t flags)
{
	return kind >= RECORD_MESSAGE && kind <= RECORD_NEXT &&
	       !(flags & ~(RECORD_HAS_DATA | RECORD_ACK));
}

int ring_parse(struct ring_reader *reader, uint64_t word, struct record *record_out)
{
	const struct segment *segment = &reader->segment;
	uint32_t offset = (uint32_t)reader->head & (segment->ring_bytes - 1);
	uint32_t length = (uint32_t)word;
	uint8_t kind = (uint8_t)(word >> 32), flags = (uint8_t)(word >> 40);
	const uint8_t *at = segment->ring + offset + RECORD_WORD_BYTES;
	uint64_t data = 0;

	if (word >> 48 || !is_known(kind, flags))
		return -1;
	if (kind == RECORD_SKIP) {
		/* At the start of the ring there is nothing to skip. */
		if (offset == 0)
			return -1;
		reader->head += segment->ring_bytes - offset;
		return ring_peek(reader, record_out);
	}
	if (length > ring_payload_max(segment) ||
	    record_bytes(length, flags) > segment->ring_bytes - offset)
		return -1;
	if (flags & RECORD_HAS_DATA) {
		memcpy(&data, at, sizeof(data));
		at += RECORD_DATA_BYTES;
	}
	*record_out = (struct record){
		.kind = kind,
		.flags = flags,
		.length = length,
		.data = data,
		.payload = at,
		.bytes = record_bytes(length, flags),
	};
	return 1;
}

bool ring_tell(struct ring_reader *reader)
{
	struct segment_control *control = reader->segment.control;

	reader->head_told = reader->head;
	/* H1 -> H2; E1 */
	atomic_store_explicit(&control->head, reader->head, memory_order_seq_cst);
	/* E2 */
	if (plx_likely(atomic_load_explicit(&control->space_call, memory_order_seq_cst) ==
		       CALL_NONE))
		return false;
	return atomic_exchange_explicit(&control->space_call, CALL_NONE, memory_order_seq_cst) ==
	       CALL_WAKE;
}
