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

static int fail_closed(const char *name, const char *path)
{
	return plx_fail(EACCES,
			"RDMA device %s: no permission for %s; give the user read and write access "
			"to it, by its group or a udev rule, or to the container by its device "
			"list",
			name, path);
}

/* libibverbs silently skips devices without a device file. */
static int check_file(const struct plx_rdma_device *device)
{
	char path[64];

	if (!device->uverbs[0])
		return plx_fail(ENXIO,
				"RDMA device %s: user space has no way to it, as the kernel module "
				"ib_uverbs is not loaded; modprobe ib_uverbs",
				device->name);
	snprintf(path, sizeof(path), "/dev/infiniband/%s", device->uverbs);
	if (access(path, R_OK | W_OK) == 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return fail_closed(device->name, path);
	return plx_fail(ENOENT,
			"RDMA device %s: %s: %s; give the container the devices in "
			"/dev/infiniband, or run udevadm trigger",
			device->name, path, strerror(errno));
}

static int open_listed(struct ibv_device *const *list, const struct plx_rdma_device *device,
		       struct ibv_context **context_out)
{
	while (*list && strcmp(ibv_get_device_name(*list), device->name) != 0)
		list++;
	if (!*list)
		return plx_fail(ENODEV,
				"RDMA device %s: libibverbs has no driver for it; install "
				"ibverbs-providers (rdma-core)",
				device->name);
	errno = 0;
	*context_out = ibv_open_device(*list);
	if (*context_out)
		return 0;
	if (errno == EACCES || errno == EPERM) /* a cgroup's device list */
		return fail_closed(device->name, device->uverbs);
	return plx_fail(errno ? errno : EIO, "RDMA device %s: it cannot be opened: %s",
			device->name, strerror(errno ? errno : EIO));
}

static int open_device(const struct plx_rdma_device *device, struct ibv_context **context_out)
{
	int rc = check_file(device);

	if (rc)
		return rc;
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list)
		return plx_fail(EIO, "RDMA device %s: libibverbs cannot list devices: %s",
				device->name, strerror(errno));
	rc = open_listed(list, device, context_out);
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
	rc = ibv_query_device(context, &attr);
	if (rc == 0) {
		details_out->max_sge = (unsigned)attr.max_sge;
		details_out->max_cqe = (unsigned)attr.max_cqe;
		details_out->inline_max_bytes = find_inline(context);
		ask_ports(device, context, details_out);
	} else {
		rc = plx_fail(rc, "RDMA device %s: it does not answer: %s", device->name,
			      strerror(rc));
	}
	ibv_close_device(context);
	return rc;
}
