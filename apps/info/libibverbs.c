/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA device properties, queried with libibverbs. */
#include "info.h"

#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INLINE_TRIED_MAX 4096 /* beyond this a copy costs more than it saves */

/* Opening ---------------------------------------------------------------------------------- */

static int closed_or(int error)
{
	return errno == EACCES || errno == EPERM ? -EACCES : error;
}

/* libibverbs silently skips devices without a device file. */
static int check_file(const struct plx_rdma_device *device)
{
	char path[64];

	if (!device->uverbs[0])
		return -ENXIO;
	snprintf(path, sizeof(path), "/dev/infiniband/%s", device->uverbs);
	return access(path, R_OK | W_OK) == 0 ? 0 : closed_or(-ENOENT);
}

static int open_listed(struct ibv_device *const *list, const char *name,
		       struct ibv_context **context_out)
{
	while (*list && strcmp(ibv_get_device_name(*list), name) != 0)
		list++;
	if (!*list)
		return -ENODEV;
	errno = 0;
	*context_out = ibv_open_device(*list);
	return *context_out ? 0 : closed_or(-EIO); /* a cgroup has a list of devices */
}

static int open_device(const struct plx_rdma_device *device, struct ibv_context **context_out)
{
	int rc = check_file(device);
	struct ibv_device **list = rc ? NULL : ibv_get_device_list(NULL);

	if (!list)
		return rc ? rc : -EIO;
	rc = open_listed(list, device->name, context_out);
	ibv_free_device_list(list);
	return rc;
}

/* The inline limit ------------------------------------------------------------------------- */

struct trial {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

/* Whether a queue pair with that much inline data can be created. The returned capability does not
 * count: rxe and siw repeat the request, others round up. */
static bool try_inline(const struct trial *trial, uint32_t *bytes)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = trial->cq,
		.recv_cq = trial->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = *bytes},
	};
	struct ibv_qp *qp = ibv_create_qp(trial->pd, &attr);

	if (!qp)
		return false;
	ibv_destroy_qp(qp);
	bool granted = attr.cap.max_inline_data >= *bytes;

	if (granted)
		*bytes = attr.cap.max_inline_data;
	return granted;
}

/* Double until refused, then bisect. */
static int search_inline(const struct trial *trial)
{
	uint32_t granted = 0, refused = 0;

	if (!try_inline(trial, &granted))
		return -1;
	while (refused ? granted + 1 < refused : granted < INLINE_TRIED_MAX) {
		uint32_t bytes = refused      ? granted + (refused - granted) / 2
			       : granted < 32 ? 64
					      : 2 * granted;

		*(try_inline(trial, &bytes) ? &granted : &refused) = bytes;
	}
	return (int)granted;
}

static int find_inline(struct ibv_context *context)
{
	struct trial trial = {.pd = ibv_alloc_pd(context)};
	int bytes = -1;

	if (!trial.pd)
		return -1;
	trial.cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	if (trial.cq) {
		bytes = search_inline(&trial);
		ibv_destroy_cq(trial.cq);
	}
	ibv_dealloc_pd(trial.pd);
	return bytes;
}

/* Ports and GIDs --------------------------------------------------------------------------- */

static unsigned mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static const char *gid_type(const struct plx_rdma_device *device, uint32_t type)
{
	if (device->transport == PLX_RDMA_IWARP)
		return "iWARP";
	switch (type) {
	case IBV_GID_TYPE_IB:
		return "InfiniBand";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	default:
		return "unknown";
	}
}

static void add_gid(const struct plx_rdma_device *device, const struct ibv_gid_entry *entry,
		    struct info_details *details)
{
	struct info_gid *gid = &details->gids[details->gid_count++];
	char netdev[IF_NAMESIZE] = "";

	*gid = (struct info_gid){.port = entry->port_num, .index = entry->gid_index};
	inet_ntop(AF_INET6, entry->gid.raw, gid->text, sizeof(gid->text));
	snprintf(gid->type, sizeof(gid->type), "%s", gid_type(device, entry->gid_type));
	if (entry->ndev_ifindex && if_indextoname(entry->ndev_ifindex, netdev))
		memcpy(gid->netdev, netdev, sizeof(gid->netdev));
}

static int ask_port(struct ibv_context *context, unsigned number, unsigned i,
		    struct info_details *details)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(context, (uint8_t)number, &attr) != 0)
		return 0;
	details->ports[i].mtu_bytes = mtu_bytes(attr.active_mtu);
	details->ports[i].mtu_max_bytes = mtu_bytes(attr.max_mtu);
	return attr.gid_tbl_len;
}

/* One call for all GIDs in use, of tables with hundreds of entries; it needs room for the whole
 * table. */
static void ask_gids(const struct plx_rdma_device *device, struct ibv_context *context,
		     size_t places, struct info_details *details)
{
	struct ibv_gid_entry *entries = calloc(places ? places : 1, sizeof(*entries));
	ssize_t count = entries ? ibv_query_gid_table(context, entries, places, 0) : 0;

	for (ssize_t i = 0; i < count && details->gid_count < INFO_GIDS_MAX; i++)
		add_gid(device, &entries[i], details);
	free(entries);
}

static void ask_ports(const struct plx_rdma_device *device, struct ibv_context *context,
		      struct info_details *details)
{
	size_t places = 0;

	for (unsigned i = 0; i < device->port_count; i++)
		places += (size_t)ask_port(context, device->ports[i].number, i, details);
	ask_gids(device, context, places, details);
}

/* Public ----------------------------------------------------------------------------------- */

int info_probe_device(const struct plx_rdma_device *device, struct info_details *details_out)
{
	struct ibv_context *context;
	struct ibv_device_attr attr;
	int rc = open_device(device, &context);

	if (rc)
		return rc;
	*details_out = (struct info_details){.inline_max_bytes = -1};
	rc = ibv_query_device(context, &attr) == 0 ? 0 : -EIO;
	if (rc == 0) {
		details_out->max_sge = (unsigned)attr.max_sge;
		details_out->max_cqe = (unsigned)attr.max_cqe;
		details_out->inline_max_bytes = find_inline(context);
		ask_ports(device, context, details_out);
	}
	ibv_close_device(context);
	return rc;
}
