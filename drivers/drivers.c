/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of drivers. A new driver is declared and listed here, and nowhere else. */
#include "plx_fabric_driver.h"

extern const struct plx_fabric_driver plx_driver_shm;
extern const struct plx_fabric_driver plx_driver_tcp;
extern const struct plx_fabric_driver plx_driver_verbs;

const struct plx_fabric_driver *const plx_drivers[] = {
	&plx_driver_tcp,
	&plx_driver_shm,
#ifdef PLX_HAVE_VERBS
	&plx_driver_verbs,
#endif
	NULL,
};
