/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client knows of a service's parameters: those it has listed, and the changes published
 * since then. These come by two paths, and one path may deliver older states than the other. */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include "store.h"

struct snapshot {
	struct store *now;  /**< as last reported to `news` */
	struct store *next; /**< what the service has reported since the last loss, or since the
			     * list began, with removals; NULL: the last list is complete */
	unsigned losses;
	bool is_lost; /**< and not listed since: `now` is of an earlier run of the service */
	void (*news)(const struct param *param); /**< a change of `now`; NULL: not reported */
};

/** Return: 0; -ENOMEM. */
int snapshot_init(struct snapshot *snapshot, void (*news)(const struct param *param));
void snapshot_fini(struct snapshot *snapshot);

/** The service is lost. What it reports later counts, even if it is older than what is known:
 * unwritten changes are lost, and the file may be another one. Return: 0; -ENOMEM. */
int snapshot_lose(struct snapshot *snapshot);

/** A list begins; it ends with snapshot_end, or is abandoned after snapshot_lose. Return: 0;
 * -ENOMEM. */
int snapshot_begin(struct snapshot *snapshot);

/** Take a report of a parameter, or of its removal, listed or published. Return: 0; -ENOMEM. */
int snapshot_take(struct snapshot *snapshot, const struct param *param);

/** The list is complete: parameters that the service has not reported no longer exist. */
void snapshot_end(struct snapshot *snapshot);

#endif
