/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips over libfabric's shared-memory provider (FI_EP_RDM), as a reference for two processes
 * of one host. The client ends with an empty message. */
#include "raw_rdm.h"

struct side {
	struct raw_rdm rdm;
	size_t size;
	bool inject;
};

static int prepare(struct side *side, uint64_t size)
{
	side->size = size;
	side->inject = size <= side->rdm.at.inject_size;
	return raw_endpoint_post_few(&side->rdm.at, size);
}

static inline int transmit(struct side *side, const uint8_t *message)
{
	return raw_rdm_transmit(&side->rdm, message, side->size, side->inject);
}

static int echo(struct side *side)
{
	struct raw_endpoint *at = &side->rdm.at;
	struct fi_cq_msg_entry entry;
	int last = -1;

	for (;;) {
		int rc = raw_rdm_receive(&side->rdm, RAW_PEER_NS, "a message from the client",
					 &entry);
		if (plx_unlikely(rc))
			return rc;
		if (plx_unlikely(entry.len != side->size))
			return entry.len == 0 ? 0
					      : plx_fail(EPROTO, "a message of %zu B came, not %zu",
							 entry.len, side->size);
		unsigned index = raw_endpoint_index(at, entry.op_context);
		rc = transmit(side, at->buffers[index]);
		if (!rc && last >= 0)
			rc = raw_endpoint_post(at, (unsigned)last);
		if (plx_unlikely(rc))
			return rc;
		last = (int)index;
	}
}

static int serve(const struct raw_options *options)
{
	struct side side = {0};
	uint64_t size;
	int rc = raw_rdm_listen(options, &side.rdm, &size);

	rc = rc ? rc : prepare(&side, size);
	rc = rc ? rc : raw_rdm_accept(&side.rdm);
	rc = rc ? rc : echo(&side);
	raw_rdm_close(&side.rdm);
	return rc;
}

/* The previous trip's receive is reposted while this trip's message is in flight. */
static int trips(struct side *side, uint8_t *message, struct raw_run *run)
{
	struct raw_endpoint *at = &side->rdm.at;
	struct fi_cq_msg_entry entry = {0};
	uint64_t number = 0;
	unsigned last = 0;
	bool more;

	do {
		raw_number(message, side->size, ++number);
		uint64_t sent = plx_tsc();
		int rc = transmit(side, message);
		if (!rc && number > 1)
			rc = raw_endpoint_post(at, last);
		if (plx_likely(!rc))
			rc = raw_rdm_receive(&side->rdm, RAW_PEER_NS, "an answer from the server",
					     &entry);
		uint64_t seen = plx_tsc_after_loads();
		if (plx_unlikely(rc))
			return rc;
		if (plx_unlikely(entry.len != side->size))
			return plx_fail(EPROTO, "an answer of %zu B came, not %zu", entry.len,
					side->size);
		last = raw_endpoint_index(at, entry.op_context);
		rc = raw_check_number(at->buffers[last], side->size, number);
		if (plx_unlikely(rc))
			return rc;
		more = raw_run_add(run, sent, seen);
	} while (more);
	return raw_check_message(message, at->buffers[last], side->size, "the last answer");
}

static int ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	struct side side = {0};
	int rc = raw_rdm_connect(options, &side.rdm);

	rc = rc ? rc : prepare(&side, options->size);
	if (!rc) {
		rc = trips(&side, message, run);
		/* Without it the server ends later. */
		raw_rdm_transmit(&side.rdm, "", 0, true);
	}
	raw_rdm_close(&side.rdm);
	return rc;
}

RAW_ROUND_TRIPS("raw-fi-shm", "shm", .address_is_a_name = true);
