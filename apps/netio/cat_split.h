/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages out of a stream of bytes. */
#ifndef NETIO_CAT_SPLIT_H
#define NETIO_CAT_SPLIT_H

#include "cat.h"

enum cat_split {
	CAT_SPLIT_MESSAGE,
	CAT_SPLIT_MORE, /* the stream has to go on */
	CAT_SPLIT_END,
	CAT_SPLIT_BAD, /* plx_error() says what, and in which line */
};

/* Where bytes of the stream go, when there is no message. Return: NULL: out of memory. */
void *cat_split_room(size_t *room_out);

/* So many came; 0: that was the end. */
void cat_split_took(size_t len);

/* The next message, which stays until cat_split_room. */
enum cat_split cat_split_next(const uint8_t **data_out, size_t *len_out);

void cat_split_fini(void);

#endif
