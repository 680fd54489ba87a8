/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcores that the kernel moves among all allowed CPUs, for programs that run while other tests do.
 */
#ifndef FLOATING_H
#define FLOATING_H

#include "plx_topo.h"

#include <stdio.h>

#define FLOATING_BYTES 512

/* lcores: "0-1". Return: out, a core list. */
static inline const char *floating(const char *lcores, char out[FLOATING_BYTES])
{
	char cpus[FLOATING_BYTES - 32];
	struct plx_topo *topo;

	if (plx_topo_open(NULL, &topo) != 0)
		return lcores;
	snprintf(out, FLOATING_BYTES, "(%s)@(%s)", lcores,
		 plx_cpuset_format(plx_topo_allowed(topo), cpus, sizeof(cpus)));
	plx_topo_close(topo);
	return out;
}

#endif
