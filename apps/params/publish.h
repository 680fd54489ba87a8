/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing to watchers: a NetIO publish socket whose tags are parameter ids. Thread: the store's
 * lcore. */
#ifndef PUBLISH_H
#define PUBLISH_H

#include "param.h"

/** Accept subscribers at that address's host and that port; 0: any free port. Return: 0; as
 * netio_publish_listen. */
int publish_start(const char *address, unsigned port);

/** Send the record to subscribers; slow ones get only the newest of each parameter. */
void publish_change(const struct param *param, bool removed);

unsigned publish_port(void);

/** Accepts a socket that was not started. */
void publish_stop(void);

#endif
