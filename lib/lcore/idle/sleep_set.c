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

struct sleep_entry {
	uint64_t asked; /* the last sleep that it was added for */
	struct plx_poller *whose;
	bool watched; /* in the epoll set */
	bool ready;   /* when the sleep ended */
};

static struct sleep_entry *find(const struct sleep_set *set, int fd)
{
	return (uint32_t)fd < set->room ? &set->entries[fd] : NULL;
}

static void watch(struct sleep_set *set, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (set->entries[fd].watched || epoll_ctl(set->epoll, EPOLL_CTL_ADD, fd, &event))
		return;
	set->entries[fd].watched = true;
	set->watched++;
}

static void unwatch(struct sleep_set *set, int fd)
{
	/* Fails if it was closed: the kernel has removed it. */
	epoll_ctl(set->epoll, EPOLL_CTL_DEL, fd, NULL);
	set->entries[fd].watched = false;
	set->watched--;
}

void sleep_set_fini(struct sleep_set *set)
{
	if (set->open)
		close(set->epoll);
	free(set->entries);
	free(set->events);
	*set = (struct sleep_set){0};
}

static bool make_room(struct sleep_set *set, int fd)
{
	uint32_t room = set->room ?: FIRST_ROOM;
	void *grown;

	while (room <= (uint32_t)fd)
		room *= 2;
	if (room == set->room)
		return true;
	grown = realloc(set->events, room * sizeof(*set->events));
	if (!grown)
		return false;
	set->events = grown;
	grown = realloc(set->entries, room * sizeof(*set->entries));
	if (!grown)
		return false;
	set->entries = grown;
	memset(set->entries + set->room, 0, (room - set->room) * sizeof(*set->entries));
	set->room = room;
	return true;
}

bool sleep_set_begin(struct sleep_set *set)
{
	if (!set->open)
		set->epoll = epoll_create1(EPOLL_CLOEXEC);
	set->open = set->epoll >= 0;
	set->sleep++;
	set->asked = 0;
	return set->open;
}

bool sleep_set_add(struct sleep_set *set, int fd, struct plx_poller *whose)
{
	struct sleep_entry *entry;

	if (fd < 0 || !make_room(set, fd))
		return false;
	watch(set, fd);
	entry = &set->entries[fd];
	if (!entry->watched)
		return false;
	set->asked += entry->asked != set->sleep;
	entry->asked = set->sleep;
	entry->ready = false;
	entry->whose = whose;
	return true;
}

void sleep_set_take_back(struct sleep_set *set, const struct plx_poller *whose)
{
	for (uint32_t fd = 0; fd < set->room; fd++) {
		if (set->entries[fd].asked == set->sleep && set->entries[fd].whose == whose) {
			set->entries[fd].asked = 0;
			set->asked--;
		}
	}
}

/* In most sleeps nothing has changed: no loop. */
void sleep_set_settle(struct sleep_set *set)
{
	for (uint32_t fd = 0; fd < set->room && set->watched > set->asked; fd++) {
		if (set->entries[fd].watched && set->entries[fd].asked != set->sleep)
			unwatch(set, (int)fd);
	}
}

struct plx_poller *sleep_set_look(struct sleep_set *set)
{
	struct plx_poller *first = NULL;
	int count = epoll_wait(set->epoll, set->events, (int)set->room, 0);

	for (int i = 0; i < count; i++) {
		struct sleep_entry *entry = find(set, set->events[i].data.fd);

		if (!entry->watched) /* closed here before sleep_set_forget, and open elsewhere */
			continue;
		entry->ready = true;
		first = first ? first : entry->whose;
	}
	return first;
}

bool sleep_set_ready(const struct sleep_set *set, int fd)
{
	const struct sleep_entry *entry = find(set, fd);

	return entry && entry->asked == set->sleep && entry->ready;
}

void sleep_set_forget(struct sleep_set *set, int fd)
{
	struct sleep_entry *entry = find(set, fd);

	if (!entry || !entry->watched)
		return;
	set->asked -= entry->asked == set->sleep;
	unwatch(set, fd);
	*entry = (struct sleep_entry){0};
}
