/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from a peer to a listening or subscribe socket: any bytes, as a sequence of link
 * messages, each after a two-byte length. Deliveries lie within the input or have the announced
 * length; refusals name a reason; nothing is leaked. */
#include "fuzz.h"
#include "netio_wire.h"
#include "point.h"

#define MESSAGE_MAX 4096

static const struct plx_buf *current;
static uint64_t sum;

static bool give(struct intake *intake, const struct netio_msg *msg)
{
	const uint8_t *bytes = msg->data;

	must(msg->len <= MESSAGE_MAX);
	must((uintptr_t)bytes % 8 == 0);
	if (msg->buf == current)
		must(bytes >= current->data && bytes + msg->len <= current->data + current->len);
	for (size_t i = 0; i < msg->len; i++) /* AddressSanitizer checks each byte read */
		sum += bytes[i];
	return true;
}

/* As a subscribe socket does it. */
static void miss(struct intake *intake, uint64_t count, uint32_t reasons)
{
	must(count > 0 && count <= WIRE_GAP_COUNT_MAX);
	must(reasons && !(reasons & 1) && !(reasons >> NETIO_GAP_REASON_COUNT));
}

/* Accepted greetings survive writing and reading again. */
static void check_greeting(const uint8_t *data, size_t size)
{
	struct wire_greeting greeting, again;
	uint32_t length;
	uint8_t bytes[WIRE_PUBSUB_BYTES];

	for (enum wire_type type = WIRE_HELLO; type <= WIRE_WELCOME; type++) {
		if (wire_greeting_read(data, size, type, &greeting))
			continue;
		length = wire_greeting_write(bytes, &greeting);
		must(length <= size && memcmp(bytes, data, length) == 0);
		must(!wire_greeting_read(bytes, length, type, &again));
	}
}

static const char *take(struct intake *intake, const uint8_t *data, size_t size)
{
	struct plx_buf *buf = plx_buf_alloc((uint32_t)size);
	const char *wrong;

	must(buf != NULL);
	memcpy(plx_buf_append(buf, (uint32_t)size), data, size);
	current = buf;
	wrong = intake_take(intake, buf);
	must(!wrong || wrong[0]);
	must(plx_buf_unshared(buf));
	plx_buf_unref(buf);
	return wrong;
}

static void take_all(struct intake *intake, const uint8_t *data, size_t size)
{
	while (size >= 2) {
		size_t length = data[0] | (size_t)data[1] << 8;

		data += 2;
		size -= 2;
		if (length > size)
			length = size;
		if (take(intake, data, length))
			break;
		data += length;
		size -= length;
	}
	intake_drop(intake);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct turn turn = {.burst = UINT32_MAX};
	struct intake listener = {.give = give, .message_max = MESSAGE_MAX, .turn = &turn};
	struct intake subscriber = {
		.give = give, .miss = miss, .message_max = MESSAGE_MAX, .turn = &turn};

	check_greeting(data, size);
	take_all(&listener, data, size);
	take_all(&subscriber, data, size);
	return 0;
}
