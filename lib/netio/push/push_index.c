/* SPDX-License-Identifier: BSD-3-Clause */
/* Receivers by credit: a list per credit value and a bit per list, so that choosing one takes
 * constant time. */
#include "push.h"

void push_index_init(struct push_index *index)
{
	memset(index->used, 0, sizeof(index->used));
	for (unsigned i = 0; i <= PUSH_CREDIT_MAX; i++)
		TAILQ_INIT(&index->at[i]);
}

static void take_out(struct push_receiver *receiver)
{
	struct push_index *index = receiver->index;
	uint32_t place = receiver->place;

	if (place == 0)
		return;
	TAILQ_REMOVE(&index->at[place], receiver, peers);
	if (TAILQ_EMPTY(&index->at[place]))
		index->used[place / 64] &= ~(UINT64_C(1) << place % 64);
	receiver->place = 0;
}

static uint32_t place_of(const struct push_receiver *receiver)
{
	uint32_t credit;

	if (!receiver->is_open || receiver->is_full)
		return 0;
	credit = plx_link_credit(receiver->connection.session.link);
	return credit < PUSH_CREDIT_MAX ? credit : PUSH_CREDIT_MAX;
}

/* Insert after those with equal credit, so that they take turns. */
void push_place(struct push_receiver *receiver)
{
	struct netio_push_core *core = receiver->core;
	struct push_index *index = receiver->is_suspect ? &core->suspected : &core->responsive;
	uint32_t place = place_of(receiver);

	if (place == receiver->place && index == receiver->index && place < PUSH_CREDIT_MAX)
		return;
	take_out(receiver);
	if (place == 0)
		return;
	receiver->index = index;
	receiver->place = place;
	TAILQ_INSERT_TAIL(&index->at[place], receiver, peers);
	index->used[place / 64] |= UINT64_C(1) << place % 64;
}

/* Skips receivers that accept only shorter messages. */
static struct push_receiver *first_that_accepts(const struct push_index *index, uint32_t place,
						uint64_t length)
{
	struct push_receiver *receiver = TAILQ_FIRST(&index->at[place]);

	while (receiver && receiver->connection.message_max < length)
		receiver = TAILQ_NEXT(receiver, peers);
	return receiver;
}

struct push_receiver *push_choose(struct netio_push_core *core, uint64_t length)
{
	const struct push_index *index = plx_likely(core->open > core->suspect) ? &core->responsive
										: &core->suspected;

	for (int word = PLX_ARRAY_LEN(index->used) - 1; word >= 0; word--) {
		uint64_t used = index->used[word];

		while (used) {
			uint32_t bit = 63 - (uint32_t)__builtin_clzll(used);
			struct push_receiver *receiver = first_that_accepts(
				index, (uint32_t)word * 64 + bit, length);

			if (plx_likely(receiver != NULL))
				return receiver;
			used &= ~(UINT64_C(1) << bit);
		}
	}
	return NULL;
}
