/* SPDX-License-Identifier: BSD-3-Clause */
/* Greetings and batches of services and clients, on any bytes: accepted ones lie within the input
 * and survive writing and reading again, and refusals name a reason. */
#include "fuzz.h"
#include "rpc_wire.h"

static void check_greeting(const uint8_t *data, size_t size, enum rpc_role role)
{
	struct rpc_greeting greeting, again;
	uint8_t bytes[RPC_GREETING_BYTES];
	const char *wrong = rpc_greeting_read(data, size, role, &greeting);

	if (wrong) {
		must(wrong[0] != '\0');
		return;
	}
	must(greeting.role == role);
	must(greeting.version_min <= RPC_VERSION_MAX && greeting.version_max >= RPC_VERSION_MIN);
	rpc_greeting_write(bytes, &greeting);
	must(!rpc_greeting_read(bytes, sizeof(bytes), role, &again));
	must(again.version_min == greeting.version_min &&
	     again.version_max == greeting.version_max);
	must(again.role == greeting.role && again.open_max == greeting.open_max);
	must(again.key_ms == greeting.key_ms);
	must(again.payload_max == greeting.payload_max && again.identity == greeting.identity);
}

/* Writes each record into `copy`, which must equal the batch except for its padding. */
static size_t check_batch(const uint8_t *batch, size_t size, uint8_t *copy)
{
	struct rpc_record record;
	const char *wrong;
	size_t offset = 0, written = 0;

	while (rpc_record_next(batch, size, &offset, &record, &wrong)) {
		uint32_t length = record.header.length;

		must(record.payload == batch + written + RPC_RECORD_BYTES);
		must(length <= size - (size_t)(record.payload - batch));
		must(offset <= size && offset > written);
		if (length)
			memcpy(rpc_header_write(copy + written, &record.header), record.payload,
			       length);
		else
			rpc_header_write(copy + written, &record.header);
		must(memcmp(copy + written, batch + written, RPC_RECORD_BYTES + length) == 0);
		written = offset;
	}
	must(wrong ? wrong[0] != '\0' : written == size);
	return written;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + (size == 0));

	must(copy != NULL);
	check_greeting(data, size, RPC_CLIENT);
	check_greeting(data, size, RPC_SERVER);
	check_batch(data, size, copy);
	free(copy);
	return 0;
}
