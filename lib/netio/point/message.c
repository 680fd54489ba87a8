/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: sent as a copy or by reference, and received. */
#include "point.h"

int message_refuse(const struct iovec *iov, size_t count, uint64_t message_max,
		   const char *by_reference)
{
	uint64_t length = 0;

	if (count > NETIO_IOV_MAX)
		return plx_fail(EINVAL, "a message of %zu pieces: give at most %d", count,
				NETIO_IOV_MAX);
	for (size_t i = 0; i < count; i++)
		length = iov[i].iov_len < UINT64_MAX - length ? length + iov[i].iov_len
							      : UINT64_MAX;
	if (by_reference && length > PLX_SEND_COPY_MAX)
		return plx_fail(EMSGSIZE,
				"%llu bytes: copies of at most %llu bytes are sent; send longer "
				"messages by %s, which copies nothing",
				(unsigned long long)length, (unsigned long long)PLX_SEND_COPY_MAX,
				by_reference);
	return plx_fail(
		EMSGSIZE,
		"%llu bytes: at most %llu are accepted; the receiver's message_max_bytes may be up "
		"to 1 GiB - 4 KiB",
		(unsigned long long)length, (unsigned long long)message_max);
}

/* The pieces of its frame. Return: how many. */
static inline int frame_pieces(const struct message *message, uint8_t header[WIRE_MESSAGE_BYTES],
			       struct iovec pieces[1 + NETIO_IOV_MAX])
{
	wire_message_write(header, message->tag);
	pieces[0] = (struct iovec){header, WIRE_MESSAGE_BYTES};
	for (size_t i = 0; i < message->count; i++)
		pieces[1 + i] = message->iov[i];
	return 1 + (int)message->count;
}

int message_send_copy(struct plx_link *link, const struct message *message)
{
	uint8_t header[WIRE_MESSAGE_BYTES];
	struct iovec pieces[1 + NETIO_IOV_MAX];
	int count = frame_pieces(message, header, pieces);

	return plx_link_sendv(link, pieces, count);
}

int message_send_long(struct plx_link *link, const struct message *message, plx_link_sent_fn sent,
		      void *arg)
{
	uint8_t header[WIRE_MESSAGE_BYTES];
	struct iovec pieces[1 + NETIO_IOV_MAX];
	int count = frame_pieces(message, header, pieces);

	return link_send_copied(link, pieces, count, sent, arg);
}

int message_make_pool(const char *name, uint32_t count, size_t room_bytes,
		      struct plx_pool **pool_out)
{
	uint32_t lcore = plx_lcore_id();
	struct plx_pool_attr attr = {
		.name = name, .object_count = count, .node = plx_lcore_node(lcore), .owner = lcore};

	return plx_buf_pool_create(&attr, room_bytes, pool_out);
}

/* messages in flight at once, on all links */
#define HEADS      256
#define VIEWS      1024
#define HEAD_BYTES (WIRE_MESSAGE_BYTES + REFERENCE_PREFIX_MAX)

static int make_pools(struct references *references)
{
	int rc = 0;

	if (!references->heads)
		rc = message_make_pool("netio heads", HEADS, HEAD_BYTES, &references->heads);
	return rc ?: message_make_pool("netio views", VIEWS, 0, &references->views);
}

static struct plx_buf *make_head(struct references *references, netio_tag_t tag, const void *prefix,
				 size_t prefix_bytes)
{
	struct plx_buf *head = plx_buf_get(references->heads) ?: plx_buf_alloc(HEAD_BYTES);

	if (plx_unlikely(!head))
		return NULL;
	wire_message_write(plx_buf_append(head, WIRE_MESSAGE_BYTES), tag);
	if (prefix_bytes)
		memcpy(plx_buf_append(head, (uint32_t)prefix_bytes), prefix, prefix_bytes);
	return head;
}

int references_make(struct references *references, netio_tag_t tag, const void *prefix,
		    size_t prefix_bytes, const struct iovec *iov, size_t count,
		    struct plx_buf **message_out)
{
	struct plx_buf *head, *last;
	int rc = plx_unlikely(!references->views) ? make_pools(references) : 0;

	if (rc)
		return rc;
	head = make_head(references, tag, prefix, prefix_bytes);
	if (!head)
		return -ENOMEM;
	last = head;
	for (size_t i = 0; i < count; i++) {
		void *data = iov[i].iov_base;
		uint32_t bytes = (uint32_t)iov[i].iov_len;

		if (bytes == 0)
			continue;
		last->next = plx_buf_view(references->views, data, bytes)
				   ?: plx_buf_wrap(data, 0, bytes, NULL, NULL);
		last = last->next;
		if (!last) {
			plx_buf_unref(head);
			return -ENOMEM;
		}
	}
	*message_out = head;
	return 0;
}

void references_fini(struct references *references)
{
	plx_pool_destroy(references->heads);
	plx_pool_destroy(references->views);
}

/* Receiving: checks everything a peer sends before it is used ---------------------------------- */

void netio_msg_keep(const struct netio_msg *msg)
{
	plx_buf_ref(msg->buf);
}

void netio_msg_release(const struct netio_msg *msg)
{
	plx_buf_unref(msg->buf);
}

const char *message_read(struct plx_buf *message, uint64_t message_max, struct netio_msg *msg_out)
{
	if (plx_unlikely(message->len < WIRE_MESSAGE_BYTES))
		return "a message without a header";
	if (plx_unlikely(get64(message->data) != WIRE_MESSAGE))
		return "a message with unknown flags";
	if (plx_unlikely(message->len - WIRE_MESSAGE_BYTES > message_max))
		return MESSAGE_TOO_LONG;
	*msg_out = (struct netio_msg){
		.data = message->data + WIRE_MESSAGE_BYTES,
		.len = message->len - WIRE_MESSAGE_BYTES,
		.tag = get64(message->data + 8),
		.buf = message,
	};
	return NULL;
}

#define BUFFER_BYTES_DEFAULT 65536
#define BUFFER_COUNT_MAX     200

/* Default total size and number of buffers. With fewer, the sender waits for credit; with more,
 * data has left the caches before it is read. Measured in doc/design/netio-pages.md. */
#define BUFFERS_BYTES_DEFAULT      (UINT32_C(2) << 20)
#define BUFFER_COUNT_DEFAULT_LEAST 6
#define BUFFER_COUNT_DEFAULT_MOST  16

int intake_set_buffers(uint32_t bytes, uint32_t count, uint64_t message_max,
		       struct plx_link_attr *attr)
{
	uint32_t page_max, fit;
	int rc;

	bytes = bytes ?: BUFFER_BYTES_DEFAULT;
	rc = netio_check_range("buffer_bytes", bytes, NETIO_PAGE_BYTES_MIN, NETIO_PAGE_BYTES_MAX);
	if (rc)
		return rc;
	fit = BUFFERS_BYTES_DEFAULT / bytes;
	if (fit < BUFFER_COUNT_DEFAULT_LEAST)
		fit = BUFFER_COUNT_DEFAULT_LEAST;
	count = count ?: fit < BUFFER_COUNT_DEFAULT_MOST ? fit : BUFFER_COUNT_DEFAULT_MOST;
	page_max = bytes + WIRE_PAGE_OVERHEAD;
	message_max += WIRE_PAGE_OVERHEAD;
	attr->rx_buf_bytes = page_max;
	attr->rx_buf_count = count;
	attr->message_max_bytes = page_max > message_max ? page_max : message_max;
	return netio_check_range("buffer_count", count, 2, BUFFER_COUNT_MAX)
		     ?: link_check_window(page_max, count);
}

/* Not an error: the rest is held, because there is no room, or the turn is over. */
static const char later[] = "later";

/* Give entries from intake->at. Return: NULL; later, and that is where to continue; the error as
 * text. */
static const char *take_entries(struct intake *intake, struct plx_buf *buf)
{
	const uint8_t *at = intake->at, *end = buf->data + buf->len;
	struct netio_msg msg = {.source = intake->source, .buf = buf};
	struct turn *turn = intake->turn;
	struct wire_entry entry;

	while (at != end) {
		const char *wrong;

		intake->at = at;
		wrong = wire_entry_read(&at, end, &entry);
		if (plx_unlikely(wrong != NULL))
			return wrong;
		if (plx_unlikely(entry.length > intake->message_max))
			return MESSAGE_TOO_LONG;
		msg.data = entry.payload;
		msg.len = entry.length;
		msg.tag = entry.tag;
		if (plx_unlikely(!intake->give(intake, &msg)))
			return later;
		if (plx_unlikely(!turn_goes_on(turn)) && at != end) {
			intake->at = at;
			return later;
		}
	}
	return NULL;
}

static const char *take_message(struct intake *intake, struct plx_buf *buf)
{
	struct netio_msg msg;
	const char *wrong = message_read(buf, intake->message_max, &msg);

	if (plx_unlikely(wrong != NULL))
		return wrong;
	msg.source = intake->source;
	return intake->give(intake, &msg) ? NULL : later;
}

/* Start or continue a message of the link. */
static const char *take(struct intake *intake, struct plx_buf *buf)
{
	uint8_t kind = buf->len ? buf->data[0] : 0;
	struct wire_gap gap;
	const char *wrong;

	if (intake->at)
		return take_entries(intake, buf);
	if (kind == WIRE_MESSAGE)
		return take_message(intake, buf);
	if (kind == WIRE_ANSWER && intake->answer)
		return intake->answer(intake, buf);
	if (kind != WIRE_PAGE)
		return "what is neither a message nor a page";
	wrong = wire_page_read(buf->data, buf->len, &gap);
	if (wrong)
		return wrong;
	if (plx_unlikely(gap.count)) {
		if (!intake->miss)
			return "a gap where nothing may be missed";
		intake->miss(intake, gap.count, gap.reasons);
	}
	intake->at = buf->data + WIRE_PAGE_BYTES;
	return take_entries(intake, buf);
}

static void let_go_of_first(struct intake *intake)
{
	struct plx_buf *first = intake->held;

	intake->held = first->next;
	intake->at = NULL;
	first->next = NULL;
	plx_buf_unref(first);
	if (--intake->held_count == 0)
		turn_end(&intake->rest);
}

/* The first message that the intake holds, being taken. */
struct taking {
	struct intake *intake;
	struct plx_buf *buf;
	bool done; /* else a C++ callback has thrown */
};

/* A callback has thrown: what it was called for does not come again. Return: whether more of the
 * message follows. */
static bool skip(struct intake *intake, const struct plx_buf *message)
{
	const uint8_t *end = message->data + message->len;
	struct wire_entry entry;

	if (!intake->at && message->data[0] == WIRE_PAGE) { /* it was called for the gap */
		intake->at = message->data + WIRE_PAGE_BYTES;
		return true;
	}
	return intake->at && !wire_entry_read(&intake->at, end, &entry) && intake->at != end;
}

static void stop_taking(struct taking *taking)
{
	struct intake *intake = taking->intake;

	if (!taking->done && intake->held_count && !skip(intake, taking->buf))
		let_go_of_first(intake);
	plx_buf_unref(taking->buf);
}

/* A callback may drop what the intake holds: the reference keeps the message meanwhile. */
static const char *take_held(struct intake *intake)
{
	struct taking now PLX_CLEANUP(stop_taking) = {intake, plx_buf_ref(intake->held), false};
	const char *wrong = take(intake, now.buf);

	now.done = true;
	if (wrong != later && intake->held_count)
		let_go_of_first(intake);
	return wrong;
}

static int go_on(struct turn_rest *rest)
{
	struct intake *intake = plx_container_of(rest, struct intake, rest);
	const char *wrong;
	int work = 0;

	do {
		const uint8_t *before = intake->at;

		wrong = take_held(intake);
		work += wrong != later || intake->at != before;
	} while (!wrong && rest->home && turn_goes_on(intake->turn)); /* not after a fork */
	intake->went_on(intake, wrong == later ? NULL : wrong);
	return work;
}

/* The link limits how many messages its user may keep, and so how many are held. */
static const char *hold(struct intake *intake, struct plx_buf *message)
{
	if (intake->dropped)
		return NULL;
	if (intake->held_count == intake->held_max)
		return "more than it was granted";
	*(intake->held_count ? intake->held_end : &intake->held) = plx_buf_ref(message);
	intake->held_end = &message->next;
	if (intake->held_count++ == 0) {
		intake->rest.go_on = go_on;
		turn_wait(&intake->rest, intake->link, !intake->outlives_link);
	}
	return NULL;
}

void intake_open(struct intake *intake, struct plx_link *link)
{
	intake->link = link;
	intake->turn = turn_of(link);
	intake->dropped = false;
}

/* A message that has just arrived. */
struct arrival {
	struct intake *intake; /* NULL: taken; else a C++ callback has thrown */
	struct plx_buf *message;
};

static PLX_NOINLINE void hold_rest(struct intake *intake, struct plx_buf *message)
{
	if (intake->dropped || intake->held_count || !skip(intake, message))
		return;
	hold(intake, message);
}

/* Passes no address: the arrival stays in registers. */
static inline PLX_ALWAYS_INLINE void stop_arrival(const struct arrival *arrival)
{
	if (plx_unlikely(arrival->intake != NULL))
		hold_rest(arrival->intake, arrival->message);
}

const char *intake_take(struct intake *intake, struct plx_buf *message)
{
	struct arrival arrival PLX_CLEANUP(stop_arrival) = {intake, message};
	const char *wrong = later;

	if (plx_likely(intake->held_count == 0)) {
		intake->at = NULL;
		wrong = take(intake, message);
	}
	arrival.intake = NULL;
	return plx_unlikely(wrong == later) ? hold(intake, message) : wrong;
}

void intake_drop(struct intake *intake)
{
	intake->dropped = true;
	while (intake->held_count)
		let_go_of_first(intake);
}
