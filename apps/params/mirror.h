/* SPDX-License-Identifier: BSD-3-Clause */
/* What a watcher has shown. It distinguishes news from known state, whether published or listed,
 * and finds parameters that disappeared without a notice. */
#ifndef MIRROR_H
#define MIRROR_H

#include "param.h"

struct mirror;

/** Return: 0; -ENOMEM. */
int mirror_create(struct mirror **mirror_out);
/** Accepts NULL. */
void mirror_destroy(struct mirror *mirror);

/** The service is lost. Its reports after the reconnect count even if they are older than this
 * state: unwritten changes are lost, and the file may be another one. */
void mirror_lose(struct mirror *mirror);

/** Take a report of a parameter, from a list page or published. Return: 1 news; 0 known already;
 * -ENOMEM. */
int mirror_take(struct mirror *mirror, const struct param *param, bool removed);

/** A full listing starts; it ends with mirror_end. Called again, it restarts. */
void mirror_begin(struct mirror *mirror);

/** The listing is complete: parameters not reported since mirror_begin no longer exist. `gone` gets
 * each with its last state; then it is forgotten. */
void mirror_end(struct mirror *mirror, void (*gone)(const struct param *param, void *arg),
		void *arg);

/** Known parameters, including removed ones that are kept. */
uint32_t mirror_count(const struct mirror *mirror);

#endif
