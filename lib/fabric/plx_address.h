/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Addresses, "host:port", and name look-up.
 */
#ifndef PLX_ADDRESS_H
#define PLX_ADDRESS_H

#include "plx_base.h"

PLX_BEGIN_DECLS

/** Check the form of "host:port" without a look-up. option: the name the user gave, for the error
 * text.
 * Thread: any.
 * Return: 0; -EINVAL. */
int plx_address_check(const char *option, const char *address);

/** Longest address text, including its NUL. */
#define PLX_ADDRESS_MAX 300

/** Check "host:port" as plx_address_check, and split it, for functions that take both. An IPv6
 * address keeps its brackets, which NetIO's functions accept, so that "%s:%u" gives an address
 * again. No host means "*".
 * Thread: any.
 * Return: 0; -EINVAL. */
int plx_address_split(const char *option, const char *address, char host_out[PLX_ADDRESS_MAX],
		      unsigned *port_out);

struct plx_lookup;
typedef void (*plx_lookup_fn)(struct plx_lookup *lookup, void *arg);

/** A look-up of an address's host on another thread. Embedded in the user's struct; the fields are
 * private. */
struct plx_lookup {
	struct {
		struct plx_lookup *le_next, **le_prev;
	} of_list;
	plx_lookup_fn fn;
	void *arg;
	struct plx_fabric_lcore *home;
	struct plx_name *name;
};

/** Look up the host of "host:port", so that plx_link_connect does not block in the resolver. When
 * the look-up is done or failed, fn runs from the loop: call plx_link_connect there, which returns
 * the error of a failed look-up. Results are used for a second. 4 names are looked up at a time;
 * any number may wait.
 * Ownership: lookup must stay until fn ran or it was cancelled.
 * Thread: an lcore.
 * Return: 0 fn follows; 1 connect at once, because the host is a number or its name is known, and
 * fn does not run; -EINVAL address; -EAGAIN no thread can be started now; -ENOMEM; or as
 * plx_link_connect. */
int plx_lookup_start(struct plx_lookup *lookup, const char *address, plx_lookup_fn fn, void *arg);

/** Cancel a look-up: fn does not run after this. Does nothing if it is zeroed or fn ran. Thread:
 * owner. */
void plx_lookup_cancel(struct plx_lookup *lookup);

PLX_END_DECLS

#endif
