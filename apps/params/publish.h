/* SPDX-License-Identifier: BSD-3-Clause */
/* Who watches: a publish socket of NetIO's, whose tags are the ids of parameters. Thread: the lcore
 * of the store. */
#ifndef PUBLISH_H
#define PUBLISH_H

#include "param.h"

/** Take subscribers at that address' host, at that port; 0: at a free one. Return: 0; as
 * netio_publish_listen. */
int publish_start(const char *address, unsigned port);

/** Who watches it gets the record: one that is slow, the newest of each parameter. */
void publish_change(const struct param *param, bool removed);

unsigned publish_port(void);

/** Accepts one that was not started. */
void publish_stop(void);

#endif
