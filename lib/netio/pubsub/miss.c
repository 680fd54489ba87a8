/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers that begin to miss messages: the log names each one once, until it has missed none
 * for QUIET_NS. Only messages that a subscriber misses do work here. */
#include "pubsub_priv.h"

#include <inttypes.h>

#define QUIET_NS (10 * PLX_NS_PER_S)

/* Return: how many it has missed in all. */
static uint64_t count_missed(const struct outbox *outbox, uint32_t *reasons_out)
{
	uint64_t sum = 0;

	*reasons_out = 0;
	for (unsigned reason = 1; reason < NETIO_GAP_REASON_COUNT; reason++) {
		sum += outbox->missed[reason];
		*reasons_out |= outbox->missed[reason] ? NETIO_GAP_BIT(reason) : 0;
	}
	return sum;
}

/* Return: false: too many lines were logged just now. */
static bool log_begin(struct subscriber *subscriber, enum plx_log_level level)
{
	struct netio_publish_core *core = subscriber_core(subscriber);
	char who[PLX_PEER_BYTES], why[NETIO_GAP_TEXT_BYTES];
	uint32_t reasons;
	uint64_t count;

	if (level > netio_log->level)
		return true;
	if (!plx_log_allowed(&core->miss_limit, plx_loop_now_ns()))
		return false;
	count = count_missed(&subscriber->outbox, &reasons);
	plx_log(netio_log, level, WHO " misses messages: %" PRIu64 " so far (%s)",
		WHO_ARGS(subscriber, who), count, netio_gap_reasons_format(reasons, why));
	return true;
}

/* Conflated messages count apart: the subscriber asked for the newest ones only. A message that is
 * given up is a decision of the publisher, or the end of a subscriber that blocked it. */
void miss_note(struct subscriber *subscriber, enum netio_gap_reason reason)
{
	bool is_conflated = reason == NETIO_GAP_CONFLATED;
	uint64_t *newest_ns = &subscriber->missed_ns[is_conflated];
	uint64_t now_ns = plx_loop_now_ns();

	if (reason == NETIO_GAP_GIVEN_UP)
		return;
	if ((*newest_ns && plx_time_since(*newest_ns, now_ns) < QUIET_NS) ||
	    log_begin(subscriber, is_conflated ? PLX_LOG_INFO : PLX_LOG_WARNING))
		*newest_ns = now_ns;
}
