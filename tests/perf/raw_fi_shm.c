/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips over libfabric's shared-memory provider (FI_EP_RDM), as a reference for two processes
 * of one host. The client ends with an empty message. */
#include "raw_rdm.h"

struct side {
	struct raw_rdm rdm;
	size_t size;
	bool inject;
};

static inline struct raw_endpoint *at_of(struct side *side)
{
	return &side->rdm.at;
}

static inline int receive(struct side *side)
{
	struct fi_cq_msg_entry entry;
	int rc = raw_rdm_receive(&side->rdm, RAW_PEER_NS, "a message from the peer", &entry);

	if (plx_unlikely(rc))
		return rc;
	if (plx_likely(entry.len == side->size))
		return (int)raw_endpoint_index(&side->rdm.at, entry.op_context);
	return entry.len == 0
		     ? -EPIPE
		     : plx_fail(EPROTO, "a message of %zu B came, not %zu", entry.len, side->size);
}

static inline int transmit(struct side *side, const uint8_t *message, void *desc)
{
	return raw_rdm_transmit(&side->rdm, message, side->size, side->inject);
}

#include "raw_trips.h"

static int prepare(struct side *side, uint64_t size)
{
	side->size = size;
	side->inject = size <= side->rdm.at.inject_size;
	return raw_endpoint_post_few(&side->rdm.at, size);
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

static int ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	struct side side = {0};
	int rc = raw_rdm_connect(options, &side.rdm);

	rc = rc ? rc : prepare(&side, options->size);
	if (!rc) {
		rc = trips(&side, message, NULL, run);
		/* Without it the server ends later. */
		raw_rdm_transmit(&side.rdm, "", 0, true);
	}
	raw_rdm_close(&side.rdm);
	return rc;
}

RAW_ROUND_TRIPS("raw-fi-shm", "shm", .address_is_a_name = true);
