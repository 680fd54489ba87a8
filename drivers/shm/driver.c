/* SPDX-License-Identifier: BSD-3-Clause */
/* Same-host links: the provider plx_shm, part of Pollux. Messages pass through rings in memory that
 * two processes share; see doc/design/shm.md. */
#include "plx_fabric_driver.h"
#include "shm.h"

/* Sends in flight of one link, which needs at most 36: 136 bytes each. */
#define TX_SIZE 64

extern const struct plx_fabric_driver plx_driver_shm;

const struct plx_fabric_driver plx_driver_shm = {
	.name = "shm",
	.summary = "the same host: rings in shared memory (plx_shm, Pollux' own provider)",
	.provider = SHM_NAME,
	.same_host = true,
	.takes_ipv4 = true, /* one name covers both families */
	.getinfo = shm_getinfo,
	.fabric = shm_fabric_open,
	.admit = prov_pep_admit,
	.listen_failure = prov_pep_why,
	.long_private_data = true,
	.ticket = prov_request_ticket,
	.reject = prov_request_reject,
	.peer_pid = ep_peer_pid,
	.claim = send_claim,
	.commit = send_commit,
	.send_copy = send_copy,
	.reuse_receives = prov_ep_reuse_receives,
	.tx_size = TX_SIZE,
	.rx_size = PROV_EP_SIZE,
	.cq_entries = PROV_CQ_SIZE,
	.signal_every = 0, /* a full ring refuses */
};
