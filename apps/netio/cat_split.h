/* SPDX-License-Identifier: BSD-3-Clause */
/* Splitting a byte stream into messages. */
#ifndef NETIO_CAT_SPLIT_H
#define NETIO_CAT_SPLIT_H

#include "cat.h"

enum cat_split {
	CAT_SPLIT_MESSAGE,
	CAT_SPLIT_MORE, /* needs more of the stream */
	CAT_SPLIT_END,
	CAT_SPLIT_BAD, /* plx_error() has the error and the line */
};

/* Where to read more bytes into when there is no message. Return: NULL: out of memory. */
void *cat_split_room(size_t *room_out);

/* That many bytes were read; 0: end of the stream. */
void cat_split_took(size_t len);

/* The next message, valid until cat_split_room. */
enum cat_split cat_split_next(const uint8_t **data_out, size_t *len_out);

void cat_split_fini(void);

#endif
