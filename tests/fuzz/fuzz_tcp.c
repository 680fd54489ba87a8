/* SPDX-License-Identifier: BSD-3-Clause */
/* A plx_tcp endpoint whose peer sends any bytes in any pieces, while the application posts, sends,
 * cancels and reads as the input says. The socket is simulated, with epoll's edges. Messages must
 * arrive intact, in order, and match a plain scan of the bytes; every operation completes once; and
 * each connection ends. */
#include "fuzz.h"
#include "tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/fi_rma.h>
#include <unistd.h>

#define STREAM_MAX     (256u << 10) /* bytes of one peer */
#define PIECE_MAX      0xc0 /* input bytes that arrive at once; values from here on are actions */
#define QUEUE_SIZE     8
#define MR_BYTES       8192
#define OPERATIONS_MAX 64
#define LAST_LOOKS     64 /* turns for a connection to end after the peer closed */
#define READABLE       1  /* keys */
#define WRITABLE       2

static void *must_alloc(size_t bytes)
{
	void *memory = malloc(bytes ? bytes : 1);

	must(memory != NULL);
	return memory;
}

/* The peer and its socket ---------------------------------------------------------------------- */

static int ends[2]; /* the first is in the event queue, and readable if it has data */

static struct {
	uint8_t stream[STREAM_MAX];
	size_t arrived, consumed;
	size_t frames; /* position of the first frame not yet scanned */
	bool closed, is_reset, interrupts;
	bool accepts; /* a connection waits to be accepted */
	bool is_readable;
	size_t room; /* for sends */
	bool wants_room;
	void *watched; /* in the epoll set of the completion queue; NULL: not in it */
	uint32_t events;
} peer;

/* AddressSanitizer checks each copy. */
static void look_at(const uint8_t *bytes, size_t length)
{
	static uint8_t sink[STREAM_MAX];

	must(length <= sizeof(sink));
	if (length)
		memcpy(sink, bytes, length);
}

static void set_readable(void)
{
	bool readable = peer.arrived > peer.consumed || peer.closed || peer.is_reset;
	char byte = 0;

	if (readable != peer.is_readable)
		must((readable ? write(ends[1], &byte, 1) : read(ends[0], &byte, 1)) == 1);
	peer.is_readable = readable;
}

static void arrives(const uint8_t *bytes, size_t length)
{
	size_t left = STREAM_MAX - peer.arrived;

	length = length < left ? length : left;
	if (peer.closed || peer.is_reset || !length)
		return;
	if (bytes)
		memcpy(peer.stream + peer.arrived, bytes, length);
	else
		memset(peer.stream + peer.arrived, (uint8_t)peer.arrived, length);
	peer.arrived += length;
	peer.events |= EPOLLIN;
	set_readable();
}

static void leaves(bool resets)
{
	peer.closed = true;
	peer.is_reset |= resets;
	peer.events |= EPOLLIN | EPOLLRDHUP | (resets ? EPOLLERR | EPOLLHUP | EPOLLOUT : 0);
	set_readable();
}

static void makes_room(size_t bytes)
{
	peer.room = bytes;
	if (peer.wants_room && bytes)
		peer.events |= EPOLLOUT;
	peer.wants_room &= !bytes;
}

static int fail(int err)
{
	errno = err;
	return -1;
}

static bool is_interrupted(void)
{
	bool was = peer.interrupts;

	peer.interrupts = false;
	return was;
}

static ssize_t sim_recvmsg(int fd, struct msghdr *msg, int flags)
{
	size_t got = 0;

	if (is_interrupted())
		return fail(EINTR);
	if (peer.is_reset && peer.arrived == peer.consumed)
		return fail(ECONNRESET);
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		size_t bytes = peer.arrived - peer.consumed;

		bytes = bytes < msg->msg_iov[i].iov_len ? bytes : msg->msg_iov[i].iov_len;
		if (bytes && !(flags & MSG_TRUNC)) /* with it they are dropped */
			memcpy(msg->msg_iov[i].iov_base, peer.stream + peer.consumed, bytes);
		peer.consumed += bytes;
		got += bytes;
	}
	set_readable();
	return got || peer.closed ? (ssize_t)got : fail(EAGAIN);
}

static ssize_t sim_recv(int fd, void *buf, size_t length, int flags)
{
	struct iovec iov = {buf, length};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return sim_recvmsg(fd, &msg, flags);
}

static ssize_t sim_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t sent = 0, asked = 0;

	if (is_interrupted())
		return fail(EINTR);
	if (peer.is_reset)
		return fail(EPIPE);
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		size_t bytes = msg->msg_iov[i].iov_len;

		asked += bytes;
		bytes = bytes < peer.room ? bytes : peer.room;
		look_at(msg->msg_iov[i].iov_base, bytes);
		peer.room -= bytes;
		sent += bytes;
	}
	peer.wants_room |= sent < asked;
	return sent || !asked ? (ssize_t)sent : fail(EAGAIN);
}

static ssize_t sim_send(int fd, const void *buf, size_t length, int flags)
{
	struct iovec iov = {(void *)(uintptr_t)buf, length};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return sim_sendmsg(fd, &msg, flags);
}

static int sim_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(9)};

	if (!peer.accepts)
		return fail(EAGAIN);
	peer.accepts = false;
	memcpy(address, &from, sizeof(from));
	*bytes = sizeof(from);
	return ends[0];
}

static int sim_socket(int family, int type, int protocol)
{
	return ends[0];
}

static int sim_connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
	return 0;
}

static int sim_shutdown(int fd, int how)
{
	return 0;
}

static int sim_close(int fd)
{
	return 0;
}

static int sim_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	must(fd == ends[0] && (operation == EPOLL_CTL_DEL) == (peer.watched != NULL));
	peer.watched = operation == EPOLL_CTL_DEL ? NULL : event->data.ptr;
	peer.events = EPOLLOUT | (peer.is_readable ? EPOLLIN : 0) | (peer.closed ? EPOLLRDHUP : 0);
	return 0;
}

static int sim_epoll_wait(int epoll_fd, struct epoll_event *events, int count, int timeout_ms)
{
	must(timeout_ms == 0);
	if (!peer.watched || !peer.events)
		return 0;
	events[0] = (struct epoll_event){.events = peer.events, .data.ptr = peer.watched};
	peer.events = 0;
	return 1;
}

static const struct tcp_sys simulated = {
	.socket = sim_socket,
	.accept4 = sim_accept4,
	.connect = sim_connect,
	.recv = sim_recv,
	.recvmsg = sim_recvmsg,
	.send = sim_send,
	.sendmsg = sim_sendmsg,
	.shutdown = sim_shutdown,
	.close = sim_close,
	.epoll_ctl = sim_epoll_ctl,
	.epoll_wait = sim_epoll_wait,
};

/* Expected messages ---------------------------------------------------------------------------- */

/* The next message in the received bytes: its frame and payload. */
static const uint8_t *next_message(struct wire_frame *frame_out)
{
	for (;;) {
		const uint8_t *at = peer.stream + peer.frames;
		size_t left = peer.arrived - peer.frames;
		uint32_t header = left < WIRE_FRAME_BYTES ? 0 : wire_check(get64(at));

		must(header && header <= left);
		wire_read(at, frame_out);
		left -= header;
		peer.frames += header;
		if (frame_out->kind == WIRE_READ)
			continue;
		must(frame_out->length <= left);
		peer.frames += frame_out->length;
		if (frame_out->kind == WIRE_MESSAGE)
			return at + header;
	}
}

/* The application's operations ----------------------------------------------------------------- */

struct operation {
	bool is_receive;
	size_t length;
	uint8_t *bytes;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_pep *pep;
static struct fid_ep *ep;
static struct fid_mr *readable, *writable;
static uint8_t *readable_bytes, *writable_bytes;
static struct operation *operations[OPERATIONS_MAX];
static uint32_t operation_count;
static bool is_connected, has_ended, has_failed, rejects;

static struct operation *begin(bool is_receive, size_t length)
{
	struct operation *operation = must_alloc(sizeof(*operation));

	operation->is_receive = is_receive;
	operation->length = length;
	operation->bytes = must_alloc(length);
	memset(operation->bytes, 0, length);
	return operation;
}

static void end(struct operation *operation)
{
	free(operation->bytes);
	free(operation);
}

static void begun(struct operation *operation, ssize_t rc)
{
	if (rc)
		end(operation);
	else
		operations[operation_count++] = operation;
}

static void post(uint8_t how)
{
	static const size_t lengths[] = {0, 40, 300, 6000};
	struct operation *operation = begin(true, lengths[how & 3]);
	size_t half = operation->length / 3;
	struct iovec iov[] = {{operation->bytes, half},
			      {operation->bytes + half, operation->length - half}};

	if (how & 4)
		begun(operation, fi_recvv(ep, iov, NULL, 2, FI_ADDR_UNSPEC, operation));
	else
		begun(operation, fi_recv(ep, operation->bytes, operation->length, NULL,
					 FI_ADDR_UNSPEC, operation));
}

static void send_one(uint8_t how)
{
	struct operation *operation = begin(false, how * 16u);
	struct iovec iov = {operation->bytes, operation->length};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = operation};

	begun(operation, fi_sendmsg(ep, &msg, FI_COMPLETION | (how & 1 ? FI_MORE : 0)));
}

static void read_one(uint8_t how)
{
	struct operation *operation = begin(false, how);

	begun(operation, fi_read(ep, operation->bytes, operation->length, NULL, FI_ADDR_UNSPEC, 0,
				 1, operation));
}

static void write_one(uint8_t how)
{
	struct operation *operation = begin(false, how * 16u);

	begun(operation, fi_write(ep, operation->bytes, operation->length, NULL, FI_ADDR_UNSPEC, 0,
				  1, operation));
}

static void cancel(uint8_t which)
{
	if (operation_count)
		fi_cancel(&ep->fid, operations[which % operation_count]);
}

/* It completed; has_message: with a message. */
static void completed(struct operation *operation, bool has_message, size_t length, bool has_data,
		      uint64_t data)
{
	struct wire_frame frame;
	uint32_t i = 0;

	while (i < operation_count && operations[i] != operation)
		i++;
	must(i < operation_count);
	operations[i] = operations[--operation_count];
	if (has_message) {
		const uint8_t *payload = next_message(&frame);

		must(length ==
		     (frame.length < operation->length ? frame.length : operation->length));
		must(length == 0 || memcmp(operation->bytes, payload, length) == 0);
		must(has_data == !!(frame.flags & WIRE_HAS_DATA));
		must(!has_data || data == frame.data);
	}
	end(operation);
}

static void take_error(void)
{
	struct fi_cq_err_entry error = {0};

	must(fi_cq_readerr(cq, &error, 0) == 1);
	must(error.err == FI_ETRUNC || error.err == FI_ECANCELED);
	completed(error.op_context, error.err == FI_ETRUNC, error.len,
		  error.flags & FI_REMOTE_CQ_DATA, error.data);
}

/* Return: whether there was one. */
static bool take_completion(void)
{
	struct fi_cq_data_entry entry;
	ssize_t got = fi_cq_read(cq, &entry, 1);

	if (got == -FI_EAVAIL)
		take_error();
	else if (got == 1 && entry.op_context)
		completed(entry.op_context, entry.flags & FI_RECV, entry.len,
			  entry.flags & FI_REMOTE_CQ_DATA, entry.data);
	else
		must(got == -FI_EAGAIN || (got == 1 && entry.flags & FI_REMOTE_WRITE));
	return got != -FI_EAGAIN;
}

/* Connections ---------------------------------------------------------------------------------- */

static void make_ep(struct fi_info *from)
{
	must(fi_endpoint(domain, from, &ep, NULL) == 0);
	must(fi_ep_bind(ep, &eq->fid, 0) == 0);
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) == 0);
	must(fi_enable(ep) == 0);
}

static void answer(struct fi_info *request)
{
	if (rejects) {
		must(fi_reject(pep, request->handle, "no", 2) == 0);
	} else {
		make_ep(request);
		has_failed = fi_accept(ep, "yes", 3) != 0;
	}
	fi_freeinfo(request);
}

static void take_events(void)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + PROV_CM_DATA_MAX];
	} event;
	struct fi_eq_err_entry error = {0};
	uint32_t number;
	ssize_t got;

	while ((got = fi_eq_read(eq, &number, &event, sizeof(event), 0)) != -FI_EAGAIN) {
		if (got == -FI_EAVAIL) {
			must(fi_eq_readerr(eq, &error, 0) > 0);
			must(!is_connected && !has_failed);
			has_failed = true;
		} else if (number == FI_CONNREQ) {
			answer(event.cm.info);
		} else if (number == FI_CONNECTED) {
			must(!is_connected && !has_failed);
			is_connected = true;
			peer.frames = WIRE_HELLO_BYTES + (peer.stream[10] | peer.stream[11] << 8);
		} else {
			must(number == FI_SHUTDOWN && is_connected && !has_ended);
			has_ended = true;
		}
	}
}

static void hello(enum wire_hello_kind kind)
{
	uint8_t bytes[WIRE_HELLO_MOST];

	arrives(bytes, wire_write_hello(bytes, kind, "private", 7));
}

/* how: its kind, and whether its HELLO arrives at once. */
static void open_connection(uint8_t how)
{
	peer.arrived = peer.consumed = peer.frames = 0;
	peer.closed = peer.is_reset = peer.interrupts = peer.wants_room = false;
	peer.watched = NULL;
	peer.events = 0;
	peer.room = SIZE_MAX;
	is_connected = has_ended = has_failed = false;
	rejects = how & 4;
	if (how & 1) {
		make_ep(info);
		must(fi_connect(ep, info->dest_addr, "who", 3) == 0);
	} else {
		peer.accepts = true;
		((struct prov_pep *)pep)->source.ready(&((struct prov_pep *)pep)->source, EPOLLIN);
	}
	take_events();
	if (how & 2)
		hello(how & 1 ? WIRE_ACCEPT : WIRE_CONNECT);
	take_events();
}

static void open_memory(void)
{
	readable_bytes = must_alloc(MR_BYTES);
	memset(readable_bytes, 0, MR_BYTES);
	writable_bytes = must_alloc(MR_BYTES);
	must(fi_mr_reg(domain, readable_bytes, MR_BYTES, FI_REMOTE_READ, 0, READABLE, 0, &readable,
		       NULL) == 0);
	must(fi_mr_reg(domain, writable_bytes, MR_BYTES, FI_REMOTE_WRITE, 0, WRITABLE, 0, &writable,
		       NULL) == 0);
}

static void close_memory(void)
{
	if (!readable)
		return;
	must(fi_close(&readable->fid) == 0 && fi_close(&writable->fid) == 0);
	readable = writable = NULL;
	free(readable_bytes);
	free(writable_bytes);
}

/* The peer leaves, and the application cleans up. */
static void close_connection(void)
{
	makes_room(SIZE_MAX);
	leaves(false);
	for (int i = 0; i < LAST_LOOKS; i++) {
		while (take_completion())
			continue;
		take_events();
		if (!ep || has_ended || has_failed)
			break;
		if (operation_count < OPERATIONS_MAX)
			post(1);
	}
	must(!ep || has_ended || has_failed);
	must(((struct prov_pep *)pep)->silent_count == 0);
	must(((struct prov_pep *)pep)->told_count == 0);
	if (ep)
		must(fi_close(&ep->fid) == 0);
	ep = NULL;
	while (take_completion())
		continue;
	must(operation_count == 0 && peer.watched == NULL);
	peer.closed = peer.is_reset = false;
	peer.arrived = peer.consumed;
	set_readable();
	close_memory();
}

/* An input ------------------------------------------------------------------------------------- */

static void act(uint8_t action, uint8_t how)
{
	struct fid *fid = &cq->fid;
	bool may_post = ep && operation_count < OPERATIONS_MAX;

	switch (action % 16) {
	case 0:
	case 1:
		return may_post ? post(how) : (void)0;
	case 2:
		return may_post ? send_one(how) : (void)0;
	case 3:
		return may_post ? read_one(how) : (void)0;
	case 4:
		return may_post ? write_one(how) : (void)0;
	case 5:
		return ep ? cancel(how) : (void)0;
	case 6:
		return makes_room(how & 1 ? SIZE_MAX : how * 8u);
	case 7:
		return arrives(NULL, how * 64u);
	case 8:
		peer.interrupts = true;
		return;
	case 9:
		return close_memory();
	case 10:
		fi_trywait(fabric, &fid, 1);
		return;
	case 11:
		return how < 8 ? leaves(how & 1) : (void)0;
	default:
		while (how-- % 16 && take_completion())
			continue;
	}
}

static void start(void)
{
	struct fi_info *hints = fi_allocinfo(), *local;
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
	struct fi_cq_attr cq_attr = {
		.wait_obj = FI_WAIT_FD, .format = FI_CQ_FORMAT_DATA, .size = QUEUE_SIZE};

	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->size = hints->rx_attr->size = QUEUE_SIZE;
	must(tcp_getinfo(FI_VERSION(1, 17), "127.0.0.1", "1", 0, hints, &info) == 0);
	must(tcp_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &local) == 0);
	fi_freeinfo(hints);
	free(info->src_addr); /* nothing to bind to */
	info->src_addr = NULL;
	info->src_addrlen = 0;
	must(tcp_fabric_open(info->fabric_attr, &fabric, NULL) == 0);
	must(fi_domain(fabric, info, &domain, NULL) == 0);
	must(fi_eq_open(fabric, &eq_attr, &eq, NULL) == 0);
	must(fi_cq_open(domain, &cq_attr, &cq, NULL) == 0);
	must(fi_passive_ep(fabric, local, &pep, NULL) == 0);
	fi_freeinfo(local);
	must(fi_pep_bind(pep, &eq->fid, 0) == 0);
	must(fi_listen(pep) == 0);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
	tcp_sys = simulated;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 1;

	if (!fabric)
		start();
	if (!size)
		return 0;
	open_memory();
	open_connection(data[0]);
	while (at < size) {
		uint8_t first = data[at++];
		size_t left = size - at, length = first + 1u < left ? first + 1u : left;

		if (first < PIECE_MAX) {
			arrives(data + at, length);
			at += length;
		} else {
			act(first, left ? data[at++] : 0);
		}
		if (!is_connected)
			take_events();
		fi_cq_read(cq, NULL, 0);
	}
	close_connection();
	return 0;
}
