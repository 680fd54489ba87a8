/* SPDX-License-Identifier: BSD-3-Clause */
/* What providers do not have. fi_getinfo does not offer it; a call returns -FI_ENOSYS. */
#include "prov.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/* Objects ------------------------------------------------------------------------------------- */

REFUSE(int, prov_no_bind, struct fid *fid, struct fid *bound, uint64_t flags)
REFUSE(int, prov_no_control, struct fid *fid, int command, void *arg)
REFUSE(int, prov_no_ops_open, struct fid *fid, const char *name, uint64_t flags, void **ops_out,
       void *context)

/* Remote memory, and tags ---------------------------------------------------------------------- */

/* Entries that take the same types share a function. */
REFUSE(static ssize_t, no_read, struct fid_ep *ep, void *buf, size_t length, void *desc,
       fi_addr_t source, uint64_t address_or_tag, uint64_t key_or_ignored, void *context)
REFUSE(static ssize_t, no_pieces, struct fid_ep *ep, const struct iovec *iov, void **desc,
       size_t count, fi_addr_t peer, uint64_t address_or_tag, uint64_t key_or_ignored,
       void *context)
REFUSE(static ssize_t, no_write, struct fid_ep *ep, const void *buf, size_t length, void *desc,
       uint64_t peer_or_data, uint64_t address_or_peer, uint64_t key_or_tag, void *context)
REFUSE(static ssize_t, no_inject, struct fid_ep *ep, const void *buf, size_t length,
       uint64_t peer_or_data, uint64_t address_or_peer, uint64_t key_or_tag)

REFUSE(static ssize_t, no_rma_msg, struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
REFUSE(static ssize_t, no_write_data, struct fid_ep *ep, const void *buf, size_t length, void *desc,
       uint64_t data, fi_addr_t peer, uint64_t address, uint64_t key, void *context)
REFUSE(static ssize_t, no_write_inject_data, struct fid_ep *ep, const void *buf, size_t length,
       uint64_t data, fi_addr_t peer, uint64_t address, uint64_t key)

struct fi_ops_rma prov_no_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = no_read,
	.readv = no_pieces,
	.readmsg = no_rma_msg,
	.write = no_write,
	.writev = no_pieces,
	.writemsg = no_rma_msg,
	.inject = no_inject,
	.writedata = no_write_data,
	.injectdata = no_write_inject_data,
};

REFUSE(static ssize_t, no_tagged_msg, struct fid_ep *ep, const struct fi_msg_tagged *msg,
       uint64_t flags)
REFUSE(static ssize_t, no_send, struct fid_ep *ep, const void *buf, size_t length, void *desc,
       fi_addr_t peer, uint64_t tag, void *context)
REFUSE(static ssize_t, no_send_pieces, struct fid_ep *ep, const struct iovec *iov, void **desc,
       size_t count, fi_addr_t peer, uint64_t tag, void *context)
REFUSE(static ssize_t, no_send_inject, struct fid_ep *ep, const void *buf, size_t length,
       fi_addr_t peer, uint64_t tag)

struct fi_ops_tagged prov_no_tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = no_read,
	.recvv = no_pieces,
	.recvmsg = no_tagged_msg,
	.send = no_send,
	.sendv = no_send_pieces,
	.sendmsg = no_tagged_msg,
	.inject = no_send_inject,
	.senddata = no_write,
	.injectdata = no_inject,
};

/* Atomic operations --------------------------------------------------------------------------- */

REFUSE(static ssize_t, no_atomic, struct fid_ep *ep, const void *buf, size_t count, void *desc,
       fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op,
       void *context)
REFUSE(static ssize_t, no_atomic_pieces, struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
       size_t count, fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
       enum fi_op op, void *context)
REFUSE(static ssize_t, no_atomic_msg, struct fid_ep *ep, const struct fi_msg_atomic *msg,
       uint64_t flags)
REFUSE(static ssize_t, no_atomic_inject, struct fid_ep *ep, const void *buf, size_t count,
       fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op)
REFUSE(static ssize_t, no_fetch, struct fid_ep *ep, const void *buf, size_t count, void *desc,
       void *result, void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
       enum fi_datatype type, enum fi_op op, void *context)
REFUSE(static ssize_t, no_fetch_pieces, struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
       size_t count, struct fi_ioc *results, void **result_desc, size_t result_count,
       fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op,
       void *context)
REFUSE(static ssize_t, no_fetch_msg, struct fid_ep *ep, const struct fi_msg_atomic *msg,
       struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
REFUSE(static ssize_t, no_compare, struct fid_ep *ep, const void *buf, size_t count, void *desc,
       const void *compare, void *compare_desc, void *result, void *result_desc, fi_addr_t dest,
       uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
REFUSE(static ssize_t, no_compare_pieces, struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
       size_t count, const struct fi_ioc *compares, void **compare_desc, size_t compare_count,
       struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t dest,
       uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
REFUSE(static ssize_t, no_compare_msg, struct fid_ep *ep, const struct fi_msg_atomic *msg,
       const struct fi_ioc *compares, void **compare_desc, size_t compare_count,
       struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
REFUSE(static int, no_atomic_is_valid, struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
       size_t *count)

struct fi_ops_atomic prov_no_atomic = {
	.size = sizeof(struct fi_ops_atomic),
	.write = no_atomic,
	.writev = no_atomic_pieces,
	.writemsg = no_atomic_msg,
	.inject = no_atomic_inject,
	.readwrite = no_fetch,
	.readwritev = no_fetch_pieces,
	.readwritemsg = no_fetch_msg,
	.compwrite = no_compare,
	.compwritev = no_compare_pieces,
	.compwritemsg = no_compare_msg,
	.writevalid = no_atomic_is_valid,
	.readwritevalid = no_atomic_is_valid,
	.compwritevalid = no_atomic_is_valid,
};

/* Collective operations ----------------------------------------------------------------------- */

REFUSE(static ssize_t, no_barrier, struct fid_ep *ep, fi_addr_t group, void *context)
REFUSE(static ssize_t, no_barrier_flags, struct fid_ep *ep, fi_addr_t group, uint64_t flags,
       void *context)
REFUSE(static ssize_t, no_broadcast, struct fid_ep *ep, void *buf, size_t count, void *desc,
       fi_addr_t group, fi_addr_t root, enum fi_datatype type, uint64_t flags, void *context)
REFUSE(static ssize_t, no_all_to_all, struct fid_ep *ep, const void *buf, size_t count, void *desc,
       void *result, void *result_desc, fi_addr_t group, enum fi_datatype type, uint64_t flags,
       void *context)
REFUSE(static ssize_t, no_all_reduce, struct fid_ep *ep, const void *buf, size_t count, void *desc,
       void *result, void *result_desc, fi_addr_t group, enum fi_datatype type, enum fi_op op,
       uint64_t flags, void *context)
REFUSE(static ssize_t, no_reduce, struct fid_ep *ep, const void *buf, size_t count, void *desc,
       void *result, void *result_desc, fi_addr_t group, fi_addr_t root, enum fi_datatype type,
       enum fi_op op, uint64_t flags, void *context)
REFUSE(static ssize_t, no_scatter, struct fid_ep *ep, const void *buf, size_t count, void *desc,
       void *result, void *result_desc, fi_addr_t group, fi_addr_t root, enum fi_datatype type,
       uint64_t flags, void *context)
REFUSE(static ssize_t, no_collective_msg, struct fid_ep *ep, const struct fi_msg_collective *msg,
       struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)

struct fi_ops_collective prov_no_collective = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = no_barrier,
	.broadcast = no_broadcast,
	.alltoall = no_all_to_all,
	.allreduce = no_all_reduce,
	.allgather = no_all_to_all,
	.reduce_scatter = no_all_reduce,
	.reduce = no_reduce,
	.scatter = no_scatter,
	.gather = no_scatter,
	.msg = no_collective_msg,
	.barrier2 = no_barrier_flags,
};
