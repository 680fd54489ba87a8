/* SPDX-License-Identifier: BSD-3-Clause */
/* One description of struct info, from which show.c makes both the text and the JSON. describe.c
 * has the tables. */
#ifndef PLX_INFO_DESCRIBE_H
#define PLX_INFO_DESCRIBE_H

#include "info.h"

enum info_kind {
	INFO_END,     /* of a table */
	INFO_TEXT,    /* char[]; "": unknown */
	INFO_NAME,    /* the same, but JSON has "" */
	INFO_STATE,   /* the same as TEXT, in the kernel's format "4: ACTIVE" */
	INFO_WORDS,   /* char[], separated by blanks; an array in JSON */
	INFO_POINTER, /* const char * */
	INFO_CHOICE,  /* unsigned, index into `words` */
	INFO_COUNT,   /* unsigned */
	INFO_KNOWN,   /* unsigned; 0: unknown */
	INFO_SIGNED,  /* int */
	INFO_NATURAL, /* int; negative: unknown */
	INFO_LARGE,   /* uint64_t; UINT64_MAX: no limit, null in JSON */
	INFO_BYTES,   /* the same, with a unit in the text */
	INFO_REAL,   /* double; negative: unknown. The text has `digits` of its product with `scale`
		      */
	INFO_BOOL,   /* bool; the text has only `before` and `after` if true, `missing` if false */
	INFO_CPUS,   /* struct plx_cpuset */
	INFO_OBJECT, /* a structure; with `missing`, unknown if its first value is */
	INFO_LIST,   /* structures; see below */
};

struct info_field {
	enum info_kind kind;
	const char *key;     /* in JSON; NULL: not there */
	size_t offset;       /* in the structure that the table describes */
	const char *heading; /* of a section of the text that starts here */
	const char *label; /* starts a line of the text; NULL: the value follows on the same line */
	const char *before, *after; /* around the value in the text; before NULL: only in JSON */
	const char *missing;        /* the text if the value is unknown; NULL: none */
	double scale;
	int digits;
	const char *const *words;
	const struct info_field *of; /* fields of an OBJECT, or of each structure of a LIST */

	/* A LIST: offset of its unsigned count, and bytes of a structure. */
	size_t count_offset, item_bytes;
	/* If `match`, the list is in the structure above, and only those belong here whose unsigned
	 * at item_offset equals that at own_offset. */
	bool match;
	size_t item_offset, own_offset;
};

/** Of struct info. */
extern const struct info_field info_fields[];

#endif
