/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connected endpoints (FI_EP_MSG). The client's request carries the size of its messages. */
#ifndef RAW_MSG_H
#define RAW_MSG_H

#include "raw_endpoint.h"

struct raw_msg {
	struct raw_endpoint at;
	struct fid_eq *eq;
	struct fid_pep *pep;
};

/* Listen, print the address, and open an endpoint for the first client. Post receives then, before
 * accepting it. Return: 0; -errno. */
int raw_msg_listen(const struct raw_options *options, struct raw_msg *msg, uint64_t *size_out);
int raw_msg_accept(struct raw_msg *msg);

/* Connect, waiting for the server to come up. Return: 0; -errno. */
int raw_msg_connect(const struct raw_options *options, struct raw_msg *msg);

/* Whether the peer has left, if no completion reports it; a system call. Return: 0 still connected,
 * as far as known; -EPIPE; -errno. */
int raw_msg_gone(struct raw_msg *msg);

void raw_msg_close(struct raw_msg *msg);

#endif
