/* SPDX-License-Identifier: BSD-3-Clause */
/* Doubly linked lists, of links that are inside of what is listed. */
#ifndef PROV_LIST_H
#define PROV_LIST_H

#include <plx_base.h>
#include <stdbool.h>

/* A ring of links, which its owner is one of. */
struct prov_list {
	struct prov_list *next, *prev;
};

/* Each of the elements, whose link in the list is `member`. */
#define PROV_LIST_FOREACH(type, each, list, member)                                              \
	for (type *each = plx_container_of((list)->next, type, member); &each->member != (list); \
	     each = plx_container_of(each->member.next, type, member))

/* The same; each may leave the list, and its memory end, meanwhile. */
#define PROV_LIST_FOREACH_SAFE(type, each, list, member)                            \
	for (type *each = plx_container_of((list)->next, type, member),             \
		  *each##_next = plx_container_of(each->member.next, type, member); \
	     &each->member != (list);                                               \
	     each = each##_next, each##_next = plx_container_of(each->member.next, type, member))

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
