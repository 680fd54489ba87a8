/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the doctor's files: doctor.c has the report, doctor_host.c and doctor_rdma.c the
 * rules. */
#ifndef DOCTOR_PRIV_H
#define DOCTOR_PRIV_H

#include "info.h"

#define LIST_BYTES 64 /* size of a CPU list within a text */

/** Findings so far, sorted by severity, then in rule order. */
struct report {
	const struct info *info;
	struct info_finding *findings, *newest;
	unsigned count;
};

/** Add a finding. id, why: not copied. command: NULL: none, or doctor_suggest follows. */
void doctor_find(struct report *report, enum info_severity severity, const char *id,
		 const char *why, const char *command, const char *format, ...) PLX_PRINTF(6, 7);

/** Set the command of the newest finding. */
void doctor_suggest(struct report *report, const char *format, ...) PLX_PRINTF(2, 3);

/** Apply the rules; their order is that of findings of one severity. */
void doctor_check_places(struct report *report); /* CPUs, and the default driver */
void doctor_check_rdma(struct report *report);
void doctor_check_host(struct report *report); /* all else */

#endif
