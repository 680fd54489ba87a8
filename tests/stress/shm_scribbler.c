/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm_scribbler.h"

#include "dice.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE_BYTES 4096

/* Uniform in [0, limit). */
static uint64_t below(struct scribbler *scribbler, uint64_t limit)
{
	return dice_next(&scribbler->random) % limit;
}

/* Numbers near some edge, or arbitrary ones. */
static uint64_t wild(struct scribbler *scribbler)
{
	static const uint64_t edges[] = {
		0,
		1,
		2,
		3,
		7,
		8,
		56,
		64,
		4096,
		1 << 16,
		1 << 18,
		UINT32_MAX,
		SHM_MESSAGE_MAX,
		SHM_MESSAGE_MAX + 1,
		INT64_MAX,
		UINT64_MAX,
	};
	uint64_t edge = edges[below(scribbler, PLX_ARRAY_LEN(edges))];

	switch (below(scribbler, 4)) {
	case 0:
		return dice_next(&scribbler->random);
	case 1:
		return edge + 64 - below(scribbler, 128);
	default:
		return edge;
	}
}

/* Records ------------------------------------------------------------------------------------ */

static const struct segment *ring_of_peer(const struct scribbler *scribbler)
{
	return &scribbler->writer.segment;
}

/* Claim free room or, rarely, room in use. */
static uint8_t *claim(struct scribbler *scribbler, uint32_t bytes)
{
	struct ring_writer *writer = &scribbler->writer;
	uint8_t *record;

	writer->broken = false;
	record = ring_claim(writer, bytes);
	if (record || below(scribbler, 1000))
		return record;
	writer->head = writer->tail;
	return ring_claim(writer, bytes);
}

/* A valid record with whatever payload lies there. Return: whether there was room. */
static bool publish(struct scribbler *scribbler, enum record_kind kind, uint8_t flags,
		    const void *payload, uint32_t length)
{
	uint32_t bytes = record_bytes(length, flags);
	uint8_t *record = claim(scribbler, bytes);

	if (!record)
		return false;
	if (payload)
		memcpy(ring_payload(record, flags, 1), payload, length);
	ring_commit(&scribbler->writer, kind, flags, length, bytes);
	return true;
}

static void good_record(struct scribbler *scribbler)
{
	uint32_t most = ring_payload_max(ring_of_peer(scribbler));

	publish(scribbler, RECORD_MESSAGE, (uint8_t)below(scribbler, 4), NULL,
		(uint32_t)(below(scribbler, 8) ? below(scribbler, 200) : below(scribbler, most)));
}

/* A record with an arbitrary word. */
static void bad_record(struct scribbler *scribbler)
{
	uint8_t flags = (uint8_t)(below(scribbler, 2) ? below(scribbler, 4) : wild(scribbler));

	if (claim(scribbler, RECORD_UNIT))
		ring_commit(&scribbler->writer, (enum record_kind)below(scribbler, 8), flags,
			    (uint32_t)wild(scribbler), RECORD_UNIT);
}

static uint32_t left_in_ring(const struct scribbler *scribbler)
{
	uint32_t ring_bytes = ring_of_peer(scribbler)->ring_bytes;

	return ring_bytes - ((uint32_t)scribbler->writer.tail & (ring_bytes - 1));
}

/* Records at the ring's end and start. */
static void edge_records(struct scribbler *scribbler)
{
	const struct segment *segment = ring_of_peer(scribbler);
	uint32_t stop = RECORD_UNIT * (1 + (uint32_t)below(scribbler, 40));
	uint32_t most = segment->ring_bytes / 4, left;

	while ((left = left_in_ring(scribbler)) > stop) {
		uint32_t bytes = left - stop < most ? left - stop : most;

		if (!publish(scribbler, RECORD_MESSAGE, 0, NULL, bytes - RECORD_WORD_BYTES))
			return;
	}
	for (uint64_t skips = below(scribbler, 3); skips > 0; skips--) {
		if (claim(scribbler, RECORD_UNIT))
			ring_skip(&scribbler->writer, left_in_ring(scribbler));
	}
	bad_record(scribbler);
}

static void part_record(struct scribbler *scribbler)
{
	uint64_t first[10] = {below(scribbler, 2) ? wild(scribbler) : below(scribbler, 2000)};

	if (below(scribbler, 3) == 0)
		publish(scribbler, RECORD_FIRST, (uint8_t)below(scribbler, 4), first,
			(uint32_t)below(scribbler, sizeof(first)));
	publish(scribbler, RECORD_NEXT, 0, NULL, (uint32_t)below(scribbler, 2000));
}

/* Pieces in its memory, outside of it, and too long. */
static void read_record(struct scribbler *scribbler)
{
	static uint8_t mine[65536];
	struct {
		uint64_t start;
		struct record_piece pieces[8];
	} request = {below(scribbler, 4) ? 0 : below(scribbler, 100), {{0}}};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(request.pieces); i++) {
		bool good = below(scribbler, 2);

		request.pieces[i].address = good ? (uintptr_t)mine : wild(scribbler);
		request.pieces[i].length = below(scribbler, 8)
						 ? below(scribbler, good ? 800 : sizeof(mine))
						 : wild(scribbler);
	}
	publish(scribbler, RECORD_READ, (uint8_t)below(scribbler, 4), &request,
		(uint32_t)(below(scribbler, 8) ? 8 + 16 * (1 + below(scribbler, 8))
					       : below(scribbler, sizeof(request))));
}

static void words_anywhere(struct scribbler *scribbler)
{
	uint64_t kind = below(scribbler, 7), flags = below(scribbler, 5);

	for (int i = 0; i < 16; i++) {
		uint64_t at = below(scribbler, 1 << 20) * RECORD_UNIT;

		atomic_store(ring_word(ring_of_peer(scribbler), at),
			     below(scribbler, 3000) | kind << 32 | flags << 40);
	}
}

static void bytes_anywhere(struct scribbler *scribbler)
{
	const struct segment *segment = ring_of_peer(scribbler);
	uint64_t at = below(scribbler, segment->ring_bytes - PAGE_BYTES);

	for (int i = 0; i < PAGE_BYTES; i++)
		segment->ring[at + (uint64_t)i] = (uint8_t)dice_next(&scribbler->random);
}

/* Control words ------------------------------------------------------------------------------ */

static void control_words_of(struct scribbler *scribbler, struct segment_control *control)
{
	uint64_t head = atomic_load(&control->head);

	switch (below(scribbler, 6)) {
	case 0:
		atomic_store(&control->head, wild(scribbler));
		break;
	case 1:
		atomic_store(&control->head, head + RECORD_UNIT * below(scribbler, 8));
		break;
	case 2:
		atomic_store(&control->head, head - RECORD_UNIT * below(scribbler, 2));
		break;
	case 3:
		atomic_store(&control->call, (uint32_t)wild(scribbler));
		break;
	case 4:
		atomic_store(&control->space_call, (uint32_t)wild(scribbler));
		break;
	default:
		atomic_store(&control->can_read, (uint32_t)wild(scribbler));
	}
}

static void control_words(struct scribbler *scribbler)
{
	control_words_of(scribbler, scribbler->ep->reader.segment.control);
	control_words_of(scribbler, scribbler->ep->writer.segment.control);
}

static void bell_bits(struct scribbler *scribbler)
{
	struct bell *bell = scribbler->ep->peer_bell;
	uint64_t bits[] = {0, UINT64_MAX, dice_next(&scribbler->random)};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(bell->words); i++)
		atomic_store(&bell->words[i], bits[below(scribbler, PLX_ARRAY_LEN(bits))]);
	atomic_store(&bell->summary, bits[below(scribbler, PLX_ARRAY_LEN(bits))]);
}

/* Memory ------------------------------------------------------------------------------------- */

struct mapping {
	void *base;
	size_t bytes;
};

static void list_mappings(const struct scribbler *scribbler, struct mapping out[4])
{
	const struct shm_ep *ep = scribbler->ep;
	const struct segment *mine = &ep->reader.segment, *theirs = &ep->writer.segment;

	out[0] = (struct mapping){mine->control, SEGMENT_CONTROL_BYTES + mine->ring_bytes};
	out[1] = (struct mapping){theirs->control, SEGMENT_CONTROL_BYTES + theirs->ring_bytes};
	out[2] = (struct mapping){rx_cq_of(ep)->bell, BELL_BYTES};
	out[3] = (struct mapping){ep->peer_bell, BELL_BYTES};
}

/* If that is not allowed (it needs a capability), holes are made through the mappings only. */
static void open_memory(struct scribbler *scribbler)
{
	struct mapping mappings[4];
	char path[64];

	list_mappings(scribbler, mappings);
	for (int i = 0; i < 4; i++) {
		int fd;

		sprintf(path, "/proc/self/map_files/%lx-%lx", (unsigned long)mappings[i].base,
			(unsigned long)mappings[i].base + mappings[i].bytes);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			scribbler->fds[scribbler->fd_count++] = fd;
	}
}

static void holes(struct scribbler *scribbler)
{
	struct mapping mappings[4];

	list_mappings(scribbler, mappings);
	for (int i = 0; i < 4; i++) {
		uint64_t pages = mappings[i].bytes / PAGE_BYTES, first = below(scribbler, pages);
		uint64_t count = 1 + below(scribbler, pages - first);

		madvise((char *)mappings[i].base + first * PAGE_BYTES, count * PAGE_BYTES,
			MADV_REMOVE);
	}
	for (int i = 0; i < scribbler->fd_count; i++)
		fallocate(scribbler->fds[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)below(scribbler, 64) * PAGE_BYTES, 16 * PAGE_BYTES);
}

static void sizes(struct scribbler *scribbler)
{
	for (int i = 0; i < scribbler->fd_count; i++) {
		int fd = scribbler->fds[i];

		if (ftruncate(fd, 0) == 0 || ftruncate(fd, 1 << 30) == 0 ||
		    fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0)
			++*scribbler->resized;
	}
}

/* Socket ------------------------------------------------------------------------------------- */

/* Bytes, sometimes none, and sometimes with a descriptor. */
static bool send_bytes(struct scribbler *scribbler, size_t length, bool with_fd)
{
	static uint8_t bytes[2000];
	struct iovec iov = {bytes, length};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};

	if (with_fd) {
		memcpy(CMSG_DATA(&control.header), &scribbler->ep->base.source.fd, sizeof(int));
		header.msg_control = &control;
		header.msg_controllen = sizeof(control.room);
	}
	return sendmsg(scribbler->ep->base.source.fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void garbage(struct scribbler *scribbler)
{
	send_bytes(scribbler, below(scribbler, 2000), below(scribbler, 8) == 0);
}

static bool has_ended(const struct scribbler *scribbler)
{
	struct pollfd pollfd = {.fd = scribbler->ep->base.source.fd, .events = POLLRDHUP};

	return poll(&pollfd, 1, 0) != 0;
}

/* Mixtures ----------------------------------------------------------------------------------- */

void scribble_at_random(struct scribbler *scribbler)
{
	static void (*const acts[])(struct scribbler *) = {
		good_record,    bad_record, part_record, read_record, edge_records,  words_anywhere,
		bytes_anywhere, bell_bits,  holes,       sizes,       control_words, garbage,
	};
	size_t count = PLX_ARRAY_LEN(acts), one = below(scribbler, count);
	bool all = below(scribbler, 2);
	uint64_t rare = 1 + below(scribbler, 100);
	uint64_t end_ns = plx_now_ns() + below(scribbler, 20) * PLX_NS_PER_MS;

	while (plx_now_ns() < end_ns && !has_ended(scribbler)) {
		if (below(scribbler, rare) == 0)
			acts[all ? below(scribbler, count) : one](scribbler);
		else if (below(scribbler, 4) == 0)
			good_record(scribbler);
	}
}

/* Fill the ring; the word that the peer reads next, after the first record, comes last. */
static void fill_ring(struct scribbler *scribbler, uint64_t word)
{
	const struct segment *segment = ring_of_peer(scribbler);

	for (uint64_t at = segment->ring_bytes; at > 0; at -= RECORD_UNIT)
		atomic_store(ring_word(segment, at), word);
	usleep(10000);
}

void scribble_without_end(struct scribbler *scribbler)
{
	uint64_t first[RECORD_UNIT / sizeof(uint64_t)] = {SHM_MESSAGE_MAX};

	publish(scribbler, RECORD_FIRST, RECORD_ACK, first, sizeof(first));
	while (atomic_load(&ring_of_peer(scribbler)->control->head) == 0 && !has_ended(scribbler))
		;
	fill_ring(scribbler, (ring_part_header(0) + 1) | (uint64_t)RECORD_NEXT << 32);
}

void scribble_round_and_round(struct scribbler *scribbler)
{
	publish(scribbler, RECORD_MESSAGE, 0, NULL, 1);
	fill_ring(scribbler, 1 | (uint64_t)RECORD_MESSAGE << 32);
}

void scribble_on_the_socket(struct scribbler *scribbler)
{
	uint64_t end_ns = plx_now_ns() + 300 * PLX_NS_PER_MS;

	while (plx_now_ns() < end_ns && !has_ended(scribbler)) {
		while (send_bytes(scribbler, 1, false))
			;
	}
}

/* Word by word, as a receiver would find them. */
void scribble_on_the_head(struct scribbler *scribbler)
{
	struct ring_reader *reader = &scribbler->ep->reader;
	uint64_t end_ns = plx_now_ns() + 2 * PLX_NS_PER_S;
	struct record record;

	atomic_store(&scribbler->ep->writer.segment.control->can_read, 0);
	atomic_store(&reader->segment.control->can_read, 0);
	while (plx_now_ns() < end_ns && ring_peek(reader, &record) >= 0) {
		while (ring_peek(reader, &record) == 1) {
			reader->head += record.bytes;
			atomic_store(&reader->segment.control->head, reader->head);
		}
	}
}

/* Connections -------------------------------------------------------------------------------- */

static bool is_connected(struct side *side)
{
	uint64_t limit_ns = plx_now_ns() + PLX_NS_PER_S;
	struct fi_eq_cm_entry entry;
	ssize_t got = -FI_EAGAIN;
	uint32_t event;

	if (fi_connect(side->ep, side->info->dest_addr, "x", 1))
		return false;
	while (got == -FI_EAGAIN && plx_now_ns() < limit_ns)
		got = fi_eq_read(side->eq, &event, &entry, sizeof(entry), 0);
	return got > 0 && event == FI_CONNECTED;
}

static void connect_once(const char *port, scribble_fn fn, struct scribbler *scribbler)
{
	struct pair_attr attr = {.cq_size = 0};
	struct side *side = &scribbler->side;

	*side = (struct side){.info = pair_info("127.0.0.1", port, 0, &attr)};
	side_open_fabric(side);
	side_open_ep(side, side->info, &attr);
	scribbler->ep = (struct shm_ep *)side->ep;
	if (is_connected(side)) {
		scribbler->writer = scribbler->ep->writer;
		open_memory(scribbler);
		fn(scribbler);
	}
	while (scribbler->fd_count)
		close(scribbler->fds[--scribbler->fd_count]);
	side_close(side);
}

void scribble_for_ever(const char *port, scribble_fn fn, _Atomic uint64_t *resized)
{
	struct scribbler scribbler = {.resized = resized};

	for (uint64_t seed = 1;; seed++) {
		scribbler.random = seed * UINT64_C(0x9e3779b97f4a7c15);
		connect_once(port, fn, &scribbler);
	}
}
