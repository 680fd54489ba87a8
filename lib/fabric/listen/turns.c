/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate of new connections, and whose turn it is. All under the lock of its admission.
 *
 * Each connection that waits has a turn: the one after the last of its address, or the first turn
 * that any connection waits for. Lower turns are served first, so two addresses alternate, and one
 * alone has the whole rate. A connection is due once the rate allows it and all before it: one that
 * comes late for its turn delays nobody. */
#include "admission.h"

#define BURST_PART 4 /* this part of a second's connections may come in a burst */

static uint64_t slot_of(uint64_t turn)
{
	return turn % TURNS_MAX;
}

void turns_init(struct turns *turns, uint32_t per_s)
{
	*turns = (struct turns){0};
	if (per_s == PLX_NO_LIMIT)
		return;
	turns->gap_ns = PLX_NS_PER_S / per_s;
	turns->burst_ns = PLX_NS_PER_S / BURST_PART;
}

uint64_t turns_join(struct turns *turns, uint64_t *next)
{
	/* An address whose connections leave before their turn runs ahead of the others: then its
	 * last ones share a turn. */
	uint64_t last = turns->first + TURNS_MAX - 1;
	uint64_t turn = lesser(greater(turns->first, *next), last);

	*next = turn + 1;
	turns->counts[slot_of(turn)]++;
	turns->waiting++;
	return turn;
}

void turns_leave(struct turns *turns, uint64_t turn)
{
	turns->counts[slot_of(turn)]--;
	turns->waiting--;
	if (!turns->waiting)
		turns->first = greater(turns->first, turn + 1);
	while (turns->waiting && !turns->counts[slot_of(turns->first)])
		turns->first++;
}

/* How many are served before it. is_last: of those with its turn it is the last. */
static uint64_t before(const struct turns *turns, uint64_t turn, bool is_last)
{
	uint64_t count = is_last ? turns->counts[slot_of(turn)] - 1u : 0;

	for (uint64_t each = turns->first; each < turn; each++)
		count += turns->counts[slot_of(each)];
	return count;
}

/* A leaky bucket as a schedule: each is due one gap after the one before (the "virtual scheduling"
 * of ITU-T I.371), and a burst may come early. */
uint64_t turns_wait_ns(const struct turns *turns, uint64_t turn, bool is_last, uint64_t now_ns)
{
	uint64_t earliest_ns = greater(turns->next_ns, plx_time_since(turns->burst_ns, now_ns));
	uint64_t wait_ns = before(turns, turn, is_last) * turns->gap_ns;

	return plx_time_since(now_ns, earliest_ns + wait_ns);
}

void turns_use(struct turns *turns, uint64_t now_ns)
{
	turns->next_ns = greater(turns->next_ns, plx_time_since(turns->burst_ns, now_ns)) +
			 turns->gap_ns;
}
