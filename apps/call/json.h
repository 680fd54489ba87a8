/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON as text. Numbers and escapes stay as written, whatever a library could represent. */
#ifndef CALL_JSON_H
#define CALL_JSON_H

#include <stddef.h>
#include <stdio.h>

/* Check that the text is one JSON value (RFC 8259). Print it with an indent of 2 unless out is
 * NULL. Return: 0; -EINVAL, with a text that names the position; everything before it is
 * printed. */
int call_json_walk(const char *text, size_t length, FILE *out);

#endif
