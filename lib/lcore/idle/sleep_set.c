/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of a sleep that do not fit into its array: one epoll set per lcore. They stay in it
 * between sleeps, so falling asleep needs no system call for each. A descriptor that is not added
 * for a sleep is removed before it begins. */
#include "lcore_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define FIRST_ROOM 64

struct entry {
	int fd;
	bool watched;   /* in the epoll set */
	bool ready;     /* when the sleep ended */
	uint64_t asked; /* the last sleep that it was added for */
	struct plx_poller *whose;
};

struct sleep_set {
	int epoll;
	uint64_t sleep; /* number of the current sleep */
	uint32_t count, room;
	struct entry *entries;
	struct epoll_event *events; /* same size */
	uint32_t *places;           /* by descriptor: index of its entry + 1; 0: none */
	uint32_t places_count;
};

static struct entry *find(const struct sleep_set *set, int fd)
{
	uint32_t place = (uint32_t)fd < set->places_count ? set->places[fd] : 0;

	return place ? &set->entries[place - 1] : NULL;
}

static void watch(struct sleep_set *set, struct entry *entry, bool watched)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = entry->fd};
	int what = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;

	/* Removing fails if it was closed: the kernel has removed it. */
	if (epoll_ctl(set->epoll, what, entry->fd, &event) == 0 || !watched)
		entry->watched = watched;
}

struct sleep_set *sleep_set_create(void)
{
	struct sleep_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (set->epoll < 0) {
		free(set);
		return NULL;
	}
	return set;
}

void sleep_set_destroy(struct sleep_set *set)
{
	if (!set)
		return;
	close(set->epoll);
	free(set->entries);
	free(set->events);
	free(set->places);
	free(set);
}

int sleep_set_fd(const struct sleep_set *set)
{
	return set->epoll;
}

static bool make_room(struct sleep_set *set, int fd)
{
	uint32_t places = set->places_count ? set->places_count : FIRST_ROOM;
	uint32_t room = set->room ? 2 * set->room : FIRST_ROOM;
	void *grown;

	while (places <= (uint32_t)fd)
		places *= 2;
	if (places > set->places_count) {
		grown = realloc(set->places, places * sizeof(*set->places));
		if (!grown)
			return false;
		set->places = grown;
		memset(set->places + set->places_count, 0,
		       (places - set->places_count) * sizeof(*set->places));
		set->places_count = places;
	}
	if (set->count < set->room)
		return set->entries;
	grown = realloc(set->entries, room * sizeof(*set->entries));
	if (!grown)
		return false;
	set->entries = grown;
	grown = realloc(set->events, room * sizeof(*set->events));
	if (!grown)
		return false;
	set->events = grown;
	set->room = room;
	return true;
}

void sleep_set_begin(struct sleep_set *set)
{
	set->sleep++;
}

bool sleep_set_add(struct sleep_set *set, int fd, struct plx_poller *whose)
{
	struct entry *entry;

	if (fd < 0)
		return false;
	entry = find(set, fd);
	if (!entry) {
		if (!make_room(set, fd))
			return false;
		entry = &set->entries[set->count++];
		*entry = (struct entry){.fd = fd};
		set->places[fd] = set->count;
	}
	if (!entry->watched)
		watch(set, entry, true);
	if (!entry->watched)
		return false;
	entry->asked = set->sleep;
	entry->ready = false;
	entry->whose = whose;
	return true;
}

void sleep_set_take_back(struct sleep_set *set, const struct plx_poller *whose)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->entries[i].asked == set->sleep && set->entries[i].whose == whose)
			set->entries[i].asked = 0;
	}
}

void sleep_set_settle(struct sleep_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->entries[i].watched && set->entries[i].asked != set->sleep)
			watch(set, &set->entries[i], false);
	}
}

struct plx_poller *sleep_set_look(struct sleep_set *set)
{
	struct plx_poller *first = NULL;
	int count = epoll_wait(set->epoll, set->events, (int)set->count, 0);

	for (int i = 0; i < count; i++) {
		struct entry *entry = find(set, set->events[i].data.fd);

		if (!entry) /* closed here before sleep_set_forget, and open elsewhere */
			continue;
		entry->ready = true;
		first = first ? first : entry->whose;
	}
	return first;
}

bool sleep_set_ready(const struct sleep_set *set, int fd)
{
	const struct entry *entry = find(set, fd);

	return entry && entry->asked == set->sleep && entry->ready;
}

void sleep_set_forget(struct sleep_set *set, int fd)
{
	struct entry *entry = find(set, fd), *last;

	if (!entry)
		return;
	if (entry->watched)
		watch(set, entry, false);
	last = &set->entries[--set->count];
	*entry = *last;
	set->places[last->fd] = set->places[fd];
	set->places[fd] = 0;
}
