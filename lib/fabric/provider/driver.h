/* SPDX-License-Identifier: BSD-3-Clause */
/* Drivers: which of them a link may use, and what their providers leave behind in the process. */
#ifndef FABRIC_DRIVER_H
#define FABRIC_DRIVER_H

#include "plx_fabric.h"
#include "plx_fabric_driver.h"

struct driver_choice {
	const struct plx_fabric_driver *driver;
	const char *provider; /* libfabric's name */
	bool asked;           /* by name */
	bool direct;          /* with remote memory */
};

/* driver.c */
void driver_set_table(const struct plx_fabric_driver *const *table, const char *provider,
		      bool require_rdma);
int driver_configure(const char *tcp); /* see struct plx_fabric_conf */

#define DRIVER_CHOICES_MAX 4

/* What `name` stands for, in the order in which they are tried: one; or, where the choice is left
 * to us, those of this host, RDMA if there is any, and then the default for others. Returns how
 * many; -EINVAL; -ENODEV there are none. */
int driver_choose(const char *option, const char *name, struct driver_choice *choices);

/* The same for a link of attr: of those, the ones that have what it asks for. -EOPNOTSUPP: none. */
int driver_choose_for(const struct plx_link_attr *attr, struct driver_choice *choices);
int driver_getinfo(const struct driver_choice *choice, const char *node, const char *service,
		   uint64_t flags, struct fi_info **info_out);

/* open_queues and arm of struct plx_fabric_driver, or what stands for them. */
int driver_open_queues(const struct plx_fabric_driver *driver, struct plx_fabric_fids *fids,
		       const struct fi_info *info);
int driver_arm(const struct plx_fabric_driver *driver, struct plx_fabric_fids *fids);

/* hygiene.c */
/* The text of a libfabric error, -rc; it names the limit of descriptors where they are used up,
 * whatever the provider made of that. Valid until the thread's next call. */
const char *hygiene_strerror(int rc);
uint64_t hygiene_descriptor_limit(void);
void hygiene_signals(void);
void hygiene_environment(void);
struct fd_mark;
struct fd_mark *hygiene_mark(const struct plx_fabric_driver *driver); /* NULL: any */
void hygiene_close_on_exec_since(struct fd_mark *mark);

#endif
