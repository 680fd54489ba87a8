/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A load of calls of a service. */
#ifndef PLX_RPC_LOAD_H
#define PLX_RPC_LOAD_H

#include "load.h"
#include "plx_rpc.h"

struct plx_rpc_load {
	struct plx_load load; /**< the first member */
	struct plx_rpc_client *client;
	struct plx_rpc_call call; /**< method, version, deadline */
	const void *data;
	size_t length;
	/** Change `data` before a call is sent. NULL: it stays. */
	void (*fill)(struct plx_rpc_load *rpc);
	/** Look at a result: any but a refusal that is tried again. Return: a text that ends the
	 * run; NULL: it continues. */
	const char *(*check)(struct plx_rpc_load *rpc, const struct plx_rpc_result *result);
	/** Why no service is up, as plx_rpc_client_trouble. */
	const char *(*trouble)(const struct plx_rpc_client *client);

	uint64_t statuses[PLX_RPC_STATUS_COUNT]; /**< of measured calls */
	uint64_t handler_ns;                     /**< of measured calls */
	uint64_t refused;                        /**< calls that were BUSY and tried again */
	uint64_t answered_tsc;                   /**< the last answer that is no lost service */
	struct plx_timer *pauses;                /**< closed loop: one per flight */
};

/** After plx_load_init of rpc->load: wait for a service, up to `timeout_ns`, and run the load until
 * it has ended. A closed loop tries refused calls again, when the service allows; that wait is not
 * time of the call. Return: 0, see plx_load_end; -EIO no service, -ENOMEM. */
int plx_rpc_load_run(struct plx_rpc_load *rpc, uint64_t timeout_ns);

/** Free it, and destroy the client. */
void plx_rpc_load_fini(struct plx_rpc_load *rpc);

#endif
