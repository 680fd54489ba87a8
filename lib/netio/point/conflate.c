/* SPDX-License-Identifier: BSD-3-Clause */
#include "outbox.h"

#include <search.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	return compare_numbers(((const struct latest *)a)->tag, ((const struct latest *)b)->tag);
}

/* Memory used, including a tree node and the heap's overhead for three blocks. */
static uint64_t charge(uint64_t room)
{
	return sizeof(struct latest) + 96 + room;
}

void conflation_init(struct conflation *conflation)
{
	*conflation = (struct conflation){0};
	TAILQ_INIT(&conflation->queue);
}

struct latest *conflation_find(const struct conflation *conflation, netio_tag_t tag)
{
	struct latest wanted = {.tag = tag};
	struct latest **found = tfind(&wanted, &conflation->by_tag, compare);

	return found ? *found : NULL;
}

static struct latest *create(struct conflation *conflation, netio_tag_t tag)
{
	struct latest *latest = calloc(1, sizeof(*latest));

	if (latest)
		latest->tag = tag;
	if (!latest || !tsearch(latest, &conflation->by_tag, compare)) {
		free(latest);
		return NULL;
	}
	latest->order = ++conflation->order;
	TAILQ_INSERT_TAIL(&conflation->queue, latest, link);
	conflation->count++;
	conflation->bytes += charge(0);
	return latest;
}

int conflation_put(struct conflation *conflation, const struct message *message, uint64_t bytes_max)
{
	uint64_t length = message->length;
	struct latest *latest = conflation_find(conflation, message->tag);
	uint64_t room = latest ? latest->room : 0, more = length > room ? length - room : 0;
	bool is_new = !latest;

	if (is_new)
		more += charge(0);
	if (more && (conflation->bytes > bytes_max || more > bytes_max - conflation->bytes))
		return -EAGAIN;
	latest = latest ?: create(conflation, message->tag);
	if (!latest)
		return -ENOMEM;
	if (length > room) {
		uint8_t *data = realloc(latest->data, length);

		if (!data) {
			if (is_new)
				conflation_drop(conflation, latest);
			return -ENOMEM;
		}
		conflation->bytes += length - room;
		latest->data = data;
		latest->room = length;
	}
	message_copy(message, latest->data);
	latest->length = length;
	return is_new ? 0 : 1;
}

void conflation_drop(struct conflation *conflation, struct latest *latest)
{
	tdelete(latest, &conflation->by_tag, compare);
	TAILQ_REMOVE(&conflation->queue, latest, link);
	conflation->count--;
	conflation->bytes -= charge(latest->room);
	free(latest->data);
	free(latest);
}

uint32_t conflation_clear(struct conflation *conflation)
{
	uint32_t count = conflation->count;

	while (conflation->count)
		conflation_drop(conflation, TAILQ_FIRST(&conflation->queue));
	return count;
}
