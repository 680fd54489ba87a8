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

/* Listen, say where, and open an endpoint for the first client. Receives can be posted then, before
 * it is accepted. Return: 0; -errno. */
int raw_msg_listen(const struct raw_options *options, struct raw_msg *msg, uint64_t *size_out);
int raw_msg_accept(struct raw_msg *msg);

/* Connect, for as long as a server may take to come up. Return: 0; -errno. */
int raw_msg_connect(const struct raw_options *options, struct raw_msg *msg);

/* Whether the peer is gone, where no completion tells that; a system call. Return: 0 it is there,
 * as far as is known; -EPIPE; -errno. */
int raw_msg_gone(struct raw_msg *msg);

void raw_msg_close(struct raw_msg *msg);

#endif
