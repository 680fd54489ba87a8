/* SPDX-License-Identifier: BSD-3-Clause */
/* What a watcher has shown: it tells news from what is known, whether it was published or listed,
 * and what is no more, although nobody told. */
#ifndef MIRROR_H
#define MIRROR_H

#include "param.h"

struct mirror;

/** Return: 0; -ENOMEM. */
int mirror_create(struct mirror **mirror_out);
/** Accepts NULL. */
void mirror_destroy(struct mirror *mirror);

/** The service is lost. What it says when it is back counts, also if it is older than what is here:
 * a change that it had not written yet is no more, and its file may be another one. */
void mirror_lose(struct mirror *mirror);

/** What the service says of a parameter, by a page of a list or by what it publishes. Return: 1 it
 * is news; 0 it is not; -ENOMEM. */
int mirror_take(struct mirror *mirror, const struct param *param, bool removed);

/** All will be listed from here on, until mirror_end; called again, from the beginning. */
void mirror_begin(struct mirror *mirror);

/** All were: those of which the service has said nothing since mirror_begin are no more. Each is
 * told, as it was last, and forgotten. */
void mirror_end(struct mirror *mirror, void (*gone)(const struct param *param, void *arg),
		void *arg);

/** Parameters that are here, and removed ones that are kept. */
uint32_t mirror_count(const struct mirror *mirror);

#endif
