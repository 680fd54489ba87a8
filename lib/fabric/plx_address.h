/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Addresses, "host:port", and what names stand for.
 */
#ifndef PLX_ADDRESS_H
#define PLX_ADDRESS_H

#include "plx_base.h"

PLX_BEGIN_DECLS

/** Check the form of "host:port"; nothing is looked up. option: how the user named it, for the
 * text. Thread: any. Return: 0; -EINVAL. */
int plx_address_check(const char *option, const char *address);

/** Longest address text, with its NUL. */
#define PLX_ADDRESS_MAX 300

struct plx_lookup;
typedef void (*plx_lookup_fn)(struct plx_lookup *lookup, void *arg);

/** What the host of an address stands for is found out on another thread. Embedded in its user's
 * struct; the fields are private. */
struct plx_lookup {
	struct {
		struct plx_lookup *le_next, **le_prev;
	} of_list;
	plx_lookup_fn fn;
	void *arg;
	struct plx_fabric_lcore *home;
};

/** Look the host of "host:port" up, so that plx_link_connect need not wait for a resolver: fn is
 * called from the loop when it is known what it stands for, or that it does not resolve; call
 * plx_link_connect there. What is known is used for a second. 4 names are looked up at a time, 64
 * may wait. A link's plx_link_connect fails with the reason where the name does not resolve.
 * Ownership: lookup must stay until fn was called or it was cancelled. Thread: an lcore. Return: 0:
 * fn follows; 1: connect at once, as the host is a number or its name is known, and fn is not
 * called; -EINVAL address; -EAGAIN too many wait, or there is no thread; as plx_link_connect. */
int plx_lookup_start(struct plx_lookup *lookup, const char *address, plx_lookup_fn fn, void *arg);

/** fn is not called any more. Does nothing to one that is zeroed, or has called. Thread: owner. */
void plx_lookup_cancel(struct plx_lookup *lookup);

PLX_END_DECLS

#endif
