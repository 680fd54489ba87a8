/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the reports of round trips and one-way runs. */
#ifndef PING_REPORT_H
#define PING_REPORT_H

#include "ping.h"

#include <jansson.h>

/** Print doubts about the figures, to go first. count: how far the run got, in `what` ("round
 * trips"). */
void report_doubts(const struct ping_conf *conf, const struct ping_outcome *outcome, uint64_t count,
		   const char *what);

/** The JSON keys that plx-ping adds to those of any measurement. Ownership: the caller's. */
json_t *report_own(const struct ping_outcome *outcome);

/** A result with only the end of the run. */
struct plx_result report_end(const struct ping_conf *conf, const struct ping_outcome *outcome);

#endif
