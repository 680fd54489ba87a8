/* SPDX-License-Identifier: BSD-3-Clause */
/* What the reports of round trips and of one-way runs share. */
#ifndef PING_REPORT_H
#define PING_REPORT_H

#include "ping.h"

#include <jansson.h>

/** Print what makes the figures doubtful, for the top: readers must know first. count:
 * how far the run came, in `what` ("round trips"). */
void report_doubts(const struct ping_conf *conf, const struct ping_outcome *outcome, uint64_t count,
		   const char *what);

/** The keys that plx-ping adds to those of any measurement. Ownership: the caller's. */
json_t *report_own(const struct ping_outcome *outcome);

/** A result that has only how the run ended. */
struct plx_result report_end(const struct ping_conf *conf, const struct ping_outcome *outcome);

#endif
