/* SPDX-License-Identifier: BSD-3-Clause */
/* What the reports of round trips and of one-way runs share. */
#ifndef PING_REPORT_H
#define PING_REPORT_H

#include "ping.h"

#include <jansson.h>

/** Print what makes the figures doubtful, for the top: whoever reads them has to know first. count:
 * how far the run came, in `what` ("round trips"). */
void report_doubts(const struct ping_conf *conf, const struct ping_outcome *outcome, uint64_t count,
		   const char *what);

/** Set the keys that plx-ping adds to those of any measurement. */
void report_set_own(json_t *object, const struct ping_conf *conf,
		    const struct ping_outcome *outcome);

/** Write the run's JSON file. Return: 0; -errno with the path. */
int report_write_json(const struct ping_conf *conf, const json_t *object);

#endif
