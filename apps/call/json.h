/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON as text: numbers and escapes stay as they are written, whatever a library could hold of
 * them. */
#ifndef CALL_JSON_H
#define CALL_JSON_H

#include <stddef.h>
#include <stdio.h>

/* Check that the text is one value of JSON (RFC 8259), and print it, with an indent of 2, unless
 * out is NULL. Return: 0; -EINVAL, the text naming the place; what comes before it is printed. */
int call_json_walk(const char *text, size_t length, FILE *out);

#endif
