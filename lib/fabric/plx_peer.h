/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Who the peer of a link is, and how the link reaches it. Part of plx_fabric.h.
 */
#ifndef PLX_PEER_H
#define PLX_PEER_H

#include "plx_address.h"
#include "plx_base.h"

#include <sys/types.h>

PLX_BEGIN_DECLS

struct plx_link;
struct sockaddr_storage;

/** The peer's address, "192.0.2.1:7000"; valid until on_close returns. */
const char *plx_link_peer(const struct plx_link *link);

/** The peer's address as AF_INET or AF_INET6.
 * Thread: owner.
 * Return: 0; -EINVAL the provider does not report it. */
int plx_link_peer_sockaddr(const struct plx_link *link, struct sockaddr_storage *peer_out);

/** Whether the peer is on this host: over shm, from a loopback address, or from this link's local
 * address. On an open link, false may mean that the provider does not report it. In on_close:
 * whether the peer's address is one of this host.
 * Thread: owner. */
bool plx_link_is_same_host(const struct plx_link *link);

/** Strip the peer's address from a text of on_close, for a line that already names the peer: "went
 * away without closing". Returns all of text if it has no address.
 * Thread: owner. */
const char *plx_link_without_peer(const struct plx_link *link, const char *text);

#define PLX_PROGRAM_BYTES 61 /**< a program's name, each of its 15 bytes escaped, and a NUL */

/** The name of the peer's program: its first 15 bytes, escaped by plx_printable. The peer states
 * it, and may lie. "": before on_open, or the peer did not send it (an older Pollux). Valid until
 * on_close returns.
 * Thread: owner. */
const char *plx_link_peer_program(const struct plx_link *link);

/** The peer's process id. Over shm the kernel states it: the process that connected, or listens.
 * Otherwise the peer does, in the numbers of its PID namespace, and may lie. 0: before on_open, or
 * unknown: the peer did not send it, or over shm it is outside this process's PID namespace.
 * Thread: owner. */
pid_t plx_link_peer_pid(const struct plx_link *link);

#define PLX_PEER_BYTES (PLX_ADDRESS_MAX + PLX_PROGRAM_BYTES + 20)

/** Format who a peer is, for people: "192.0.2.1:40312 (netio-cat, pid 1234)". Leaves out what is
 * unknown: an empty program, pid 0. program: printable.
 * Thread: any.
 * Return: out. */
const char *plx_peer_format(const char *address, const char *program, pid_t pid,
			    char out[PLX_PEER_BYTES]);

/** plx_peer_format of a link's peer. Thread: owner. */
const char *plx_link_peer_format(const struct plx_link *link, char out[PLX_PEER_BYTES]);

/** The driver, "tcp": constant text for plx_link_attr.provider. May change until on_open. */
const char *plx_link_driver(const struct plx_link *link);

/** Driver and provider for people: "tcp (libfabric plx_tcp)". May change until the link is open,
 * which invalidates the pointer; from on_open on it is valid until on_close returns. */
const char *plx_link_provider(const struct plx_link *link);

/** Why this provider was selected, for people: "the peer is on this host and offers it". An
 * accepting side knows what it offers itself. May change until the link is open. Constant text,
 * always valid. */
const char *plx_link_choice(const struct plx_link *link);

/** libfabric's name of the provider, "plx_tcp"; valid until on_close returns. */
const char *plx_link_fi_provider(const struct plx_link *link);

PLX_END_DECLS

#endif
