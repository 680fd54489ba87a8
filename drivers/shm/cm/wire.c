/* SPDX-License-Identifier: BSD-3-Clause */
/* Handshake messages. A connection starts with one from each side, on a SOCK_SEQPACKET socket: a
 * struct wire_message and private data, plus the descriptors of the sender's receiving ring and
 * bell. Both sides are on one host, so numbers are in host byte order. Nothing received is trusted,
 * not even to be complete. */
#include "../shm.h"

#include <unistd.h>

#define WIRE_MAGIC UINT32_C(0x53584c50) /* "PLXS" */
#define FDS        2                    /* segment, bell */

struct wire_message {
	uint32_t magic;
	uint16_t version, kind;
	uint32_t data_bytes;
	/* Our half; all zeros in WIRE_REJECT. */
	uint32_t ring_bytes, bell_bit, address_bytes;
	uint64_t probe_address, probe_value;
	uint8_t address[sizeof(struct sockaddr_in6)];
	uint32_t zero;
};

static_assert(sizeof(struct wire_message) == 72, "no holes");

/* Room for ancillary data, aligned as its header. */
union control {
	struct cmsghdr header;
	uint8_t room[CMSG_SPACE(FDS * sizeof(int))];
};

/* A message as received, with its descriptors. */
struct packet {
	struct wire_message message;
	uint8_t data[PROV_CM_DATA_MAX];
	size_t bytes;
	bool cut; /* truncated */
	int fds[FDS];
	int fd_count;
};

static void write_half(struct wire_message *message, const struct wire_half *half)
{
	message->ring_bytes = half->ring_bytes;
	message->bell_bit = half->bell_bit;
	message->probe_address = half->probe_address;
	message->probe_value = half->probe_value;
	message->address_bytes = address_bytes((const struct sockaddr *)&half->address);
	memcpy(message->address, &half->address, message->address_bytes);
}

static void attach_fds(struct msghdr *header, union control *control, const struct wire_half *half)
{
	const int fds[FDS] = {half->segment_fd, half->bell_fd};

	memset(control, 0, sizeof(*control));
	header->msg_control = control;
	header->msg_controllen = sizeof(*control);
	control->header.cmsg_level = SOL_SOCKET;
	control->header.cmsg_type = SCM_RIGHTS;
	control->header.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&control->header), fds, sizeof(fds));
}

/* The error that the socket reports for its peer. */
static int socket_error(int err)
{
	switch (err) {
	case EAGAIN:
	case EINTR:
		return -FI_EAGAIN;
	case EPIPE:
	case ECONNRESET:
	case ENOTCONN:
		return -FI_ENOTCONN;
	default:
		return -err;
	}
}

int wire_send(int fd, enum wire_kind kind, const struct wire_half *half, const void *data,
	      size_t length)
{
	struct wire_message message = {
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.kind = kind,
		.data_bytes = (uint32_t)length,
	};
	struct iovec parts[] = {{&message, sizeof(message)}, {(void *)data, length}};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = length ? 2 : 1};
	union control control;

	if (length > PROV_CM_DATA_MAX)
		return -FI_EINVAL;
	if (half) {
		write_half(&message, half);
		attach_fds(&header, &control, half);
	}
	return sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? socket_error(errno) : 0;
}

/* There is room for FDS descriptors; the kernel installs no more than fit. */
static void collect_fds(struct msghdr *header, struct packet *packet)
{
	for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at; at = CMSG_NXTHDR(header, at)) {
		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		packet->fd_count = (int)((at->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(packet->fds, CMSG_DATA(at), (size_t)packet->fd_count * sizeof(int));
	}
}

static int receive(int fd, struct packet *packet)
{
	struct iovec parts[] = {{&packet->message, sizeof(packet->message)},
				{packet->data, sizeof(packet->data)}};
	union control control;
	struct msghdr header = {
		.msg_iov = parts,
		.msg_iovlen = PLX_ARRAY_LEN(parts),
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got < 0)
		return socket_error(errno);
	collect_fds(&header, packet);
	packet->bytes = (size_t)got;
	packet->cut = header.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	return 0;
}

static bool is_address(const struct wire_message *message)
{
	struct sockaddr_storage address;
	uint32_t bytes = message->address_bytes;

	return bytes <= sizeof(message->address) &&
	       prov_address_take(message->address, bytes, &address) == 0 &&
	       address_bytes((struct sockaddr *)&address) == bytes;
}

/* Return: what is wrong with it, or NULL. */
static const char *check(const struct packet *packet)
{
	const struct wire_message *message = &packet->message;

	if (packet->bytes < sizeof(*message) || packet->cut)
		return "has no length of ours";
	if (message->magic != WIRE_MAGIC)
		return "is not of this provider";
	if (message->version != WIRE_VERSION)
		return "is of another version of this provider";
	if (message->kind < WIRE_CONNECT || message->kind > WIRE_REJECT)
		return "is of no known kind";
	if (message->data_bytes != packet->bytes - sizeof(*message))
		return "has another length than it says";
	if (packet->fd_count != (message->kind == WIRE_REJECT ? 0 : FDS))
		return "brings too few or too many descriptors";
	if (message->kind == WIRE_REJECT)
		return NULL;
	if (message->bell_bit >= BELL_BITS)
		return "names no bit of a bell";
	if (!message->probe_value)
		return "has no probe word";
	if (!is_address(message))
		return "has no address of IPv4 or IPv6";
	return NULL;
}

static int take_half(const struct packet *packet, struct shm_offer *offer)
{
	const struct wire_message *message = &packet->message;
	int rc = segment_map(packet->fds[0], message->ring_bytes, &offer->segment);

	if (rc)
		return rc;
	rc = peer_bell_map(packet->fds[1], &offer->bell);
	if (rc) {
		segment_unmap(&offer->segment);
		return rc;
	}
	offer->bell_bit = message->bell_bit;
	offer->peer.probe_address = message->probe_address;
	offer->peer.probe_value = message->probe_value;
	memcpy(&offer->address, message->address, message->address_bytes);
	return 0;
}

static int parse(const struct packet *packet, struct shm_offer *offer)
{
	const char *wrong = check(packet);

	if (wrong) {
		shm_log(FI_LOG_WARN, "a message of process %d is refused: it %s",
			(int)offer->peer.pid, wrong);
		return -FI_EINVAL;
	}
	return packet->message.kind == WIRE_REJECT ? 0 : take_half(packet, offer);
}

int wire_receive(int fd, enum wire_kind *kind_out, struct shm_offer *offer_out, void *data_out,
		 uint32_t *length_out)
{
	struct packet packet = {.bytes = 0};
	int rc;

	*offer_out = (struct shm_offer){0};
	if (!peer_identify(fd, &offer_out->peer))
		return -FI_EACCES;
	rc = receive(fd, &packet);
	if (rc)
		return rc;
	/* An empty message looks like the end, and is treated as one. */
	rc = packet.bytes ? parse(&packet, offer_out) : -FI_ENOTCONN;
	for (int i = 0; i < packet.fd_count; i++)
		close(packet.fds[i]);
	if (rc)
		return rc;
	*kind_out = packet.message.kind;
	*length_out = packet.message.data_bytes;
	memcpy(data_out, packet.data, packet.message.data_bytes);
	return 0;
}

void offer_release(struct shm_offer *offer)
{
	segment_unmap(&offer->segment);
	peer_bell_release(offer->bell);
	offer->bell = NULL;
}
