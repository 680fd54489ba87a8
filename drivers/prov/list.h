/* SPDX-License-Identifier: BSD-3-Clause */
/* Doubly linked lists, of links that are inside of what is listed. */
#ifndef PROV_LIST_H
#define PROV_LIST_H

#include <stdbool.h>

/* A ring of links, which its owner is one of. */
struct prov_list {
	struct prov_list *next, *prev;
};

static inline void list_init(struct prov_list *list)
{
	list->next = list->prev = list;
}

static inline bool list_is_empty(const struct prov_list *list)
{
	return list->next == list;
}

static inline void list_append(struct prov_list *list, struct prov_list *link)
{
	link->next = list;
	link->prev = list->prev;
	list->prev->next = link;
	list->prev = link;
}

static inline void list_remove(struct prov_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
}

#endif
