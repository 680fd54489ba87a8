/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the doctor's files. */
#ifndef DOCTOR_PRIV_H
#define DOCTOR_PRIV_H

#include "info.h"

/** Findings so far, in rule order. */
struct report {
	const struct info *info;
	struct info_finding *findings;
	unsigned count, max;
};

/** Add a finding; doctor_suggest() adds its command. id, why: not copied. */
void doctor_find(struct report *report, enum info_severity severity, const char *id,
		 const char *why, const char *format, ...) PLX_PRINTF(5, 6);

/** Set the command of the newest finding. */
void doctor_suggest(struct report *report, const char *format, ...) PLX_PRINTF(2, 3);

/* One function per rule, which adds its findings. */

/* doctor_cpus.c */
void doctor_check_cpu_count(struct report *report);
void doctor_check_quota(struct report *report);
void doctor_check_governor(struct report *report);
void doctor_check_isolated(struct report *report);
void doctor_check_isolation(struct report *report);
void doctor_check_siblings(struct report *report);
void doctor_check_claims(struct report *report);

/* doctor_kernel.c */
void doctor_check_tsc(struct report *report);
void doctor_check_clocksource(struct report *report);
void doctor_check_calibration(struct report *report);
void doctor_check_steal(struct report *report);

/* doctor_memory.c */
void doctor_check_hugepages(struct report *report);
void doctor_check_thp(struct report *report);
void doctor_check_memlock(struct report *report);
void doctor_check_nofile(struct report *report);
void doctor_check_balancing(struct report *report);

/* doctor_transport.c */
void doctor_check_drivers(struct report *report);

/* doctor_rdma.c */
void doctor_check_rdma_open(struct report *report);
void doctor_check_rdma_cm(struct report *report);
void doctor_check_rdma_ports(struct report *report);
void doctor_check_rdma_address(struct report *report);
void doctor_check_rdma_node(struct report *report);

#endif
