/* SPDX-License-Identifier: BSD-3-Clause */
/* Sides and their connections. */
#include "multi_recv.h"

#include <netdb.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_NS (10 * PLX_NS_PER_S)
#define SRX_SIZE   4096 /* receives that are posted at most */

int fabric_failed(ssize_t rc, const char *what)
{
	return plx_fail(rc > -FI_ERRNO_OFFSET ? (int)-rc : EIO, "%s: %s", what,
			fi_strerror((int)-rc));
}

struct fi_info *side_hints(const struct plx_fabric_driver *driver, const char *provider)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->tx_attr->size = driver->tx_size;
	hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

static int find(const struct side *side, const char *port, uint64_t flags, uint64_t caps,
		struct fi_info **info_out)
{
	struct fi_info *hints = side_hints(side->driver, side->provider);

	hints->caps |= caps;
	if (side->shared)
		hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	else
		hints->rx_attr->size = side->driver->rx_size;

	int rc = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", port, flags, hints, info_out);

	fi_freeinfo(hints);
	return rc ? fabric_failed(rc, "fi_getinfo") : 0;
}

static int open_context(struct side *side)
{
	struct fi_rx_attr attr = *side->info->rx_attr;

	attr.size = SRX_SIZE;

	int rc = fi_srx_context(side->fids.domain, &attr, &side->srx, NULL);

	/* Receives that nobody used come back there. */
	if (!rc)
		rc = fi_ep_bind(side->srx, &side->fids.cq->fid, FI_RECV);
	return rc;
}

static int open_objects(struct side *side)
{
	int rc = fi_fabric(side->info->fabric_attr, &side->fids.fabric, NULL);

	if (!rc)
		rc = fi_domain(side->fids.fabric, side->info, &side->fids.domain, NULL);
	if (!rc)
		rc = side->driver->open_queues ? side->driver->open_queues(&side->fids, side->info)
					       : plx_fabric_open_queues(&side->fids, side->info);
	if (!rc && side->shared)
		rc = open_context(side);
	if (!rc)
		rc = fi_passive_ep(side->fids.fabric, side->info, &side->pep, NULL);
	if (!rc)
		rc = fi_pep_bind(side->pep, &side->fids.eq->fid, 0);
	if (!rc)
		rc = fi_listen(side->pep);
	return rc;
}

int side_open(struct side *side, const struct plx_fabric_driver *driver, const char *provider,
	      bool shared, uint64_t caps)
{
	*side = (struct side){.driver = driver, .provider = provider, .shared = shared};

	int rc = find(side, "0", FI_SOURCE, caps, &side->info);

	if (rc)
		return rc;
	side->fids.cq_entries = driver->cq_entries;
	side->fids.cq_format = FI_CQ_FORMAT_DATA; /* it tells where the message lies */
	rc = open_objects(side);
	return rc ? fabric_failed(rc, "cannot open a side") : 0;
}

static void close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

void side_close(struct side *side)
{
	close_fid(side->pep ? &side->pep->fid : NULL);
	close_fid(side->srx ? &side->srx->fid : NULL);
	close_fid(side->fids.cq ? &side->fids.cq->fid : NULL);
	close_fid(side->fids.domain ? &side->fids.domain->fid : NULL);
	close_fid(side->fids.eq ? &side->fids.eq->fid : NULL);
	close_fid(side->fids.wait ? &side->fids.wait->fid : NULL);
	close_fid(side->fids.fabric ? &side->fids.fabric->fid : NULL);
	if (side->info)
		fi_freeinfo(side->info);
	*side = (struct side){0};
}

/* Connections ------------------------------------------------------------------------------ */

static int open_end(struct side *side, struct fi_info *info, struct connection *connection)
{
	struct fid *cq = &side->fids.cq->fid;
	int rc = fi_endpoint(side->fids.domain, info, &connection->ep, connection);

	if (!rc)
		rc = fi_ep_bind(connection->ep, &side->fids.eq->fid, 0);
	if (!rc && side->shared)
		rc = fi_ep_bind(connection->ep, &side->srx->fid, 0);
	if (!rc)
		rc = fi_ep_bind(connection->ep, cq, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (!rc)
		rc = fi_ep_bind(connection->ep, cq, FI_RECV);
	if (!rc)
		rc = fi_enable(connection->ep);
	return rc ? fabric_failed(rc, "cannot make an endpoint") : 0;
}

static int accept_it(struct side *side, struct fi_info *info)
{
	int rc = open_end(side, info, side->accepts);

	fi_freeinfo(info);
	if (rc)
		return rc;
	rc = fi_accept(side->accepts->ep, NULL, 0);
	return rc ? fabric_failed(rc, "cannot accept") : 0;
}

int side_turn(struct side *side)
{
	union {
		struct fi_eq_cm_entry entry;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + 256];
	} event;
	uint32_t kind;
	ssize_t n = fi_eq_read(side->fids.eq, &kind, &event, sizeof(event), 0);

	fi_cq_read(side->fids.cq, NULL, 0);
	if (n == -FI_EAGAIN)
		return 0;
	if (n < 0)
		return fabric_failed(n, "a connection failed");
	if (kind == FI_CONNREQ)
		return accept_it(side, event.entry.info);

	struct connection *connection = event.entry.fid->context;

	if (kind == FI_CONNECTED)
		connection->connected = true;
	else if (kind == FI_SHUTDOWN)
		connection->ended = true;
	return 0;
}

static int begin(struct side *from, struct connection *client, const char *port)
{
	struct fi_info *info;
	int rc = find(from, port, 0, 0, &info);

	if (rc)
		return rc;
	rc = open_end(from, info, client);
	if (!rc) {
		rc = fi_connect(client->ep, info->dest_addr, NULL, 0);
		rc = rc ? fabric_failed(rc, "cannot connect") : 0;
	}
	fi_freeinfo(info);
	return rc;
}

int side_connect(struct side *from, struct connection *client, struct side *to,
		 struct connection *server)
{
	uint64_t limit_ns = plx_now_ns() + CONNECT_NS;
	struct sockaddr_storage address;
	size_t length = sizeof(address);
	char port[NI_MAXSERV];
	int rc = fi_getname(&to->pep->fid, &address, &length);

	if (rc || getnameinfo((struct sockaddr *)&address, (socklen_t)length, NULL, 0, port,
			      sizeof(port), NI_NUMERICSERV))
		return plx_fail(EIO, "the listener has no port");
	to->accepts = server;
	rc = begin(from, client, port);
	while (!rc && (!client->connected || !server->connected)) {
		rc = side_turn(from);
		if (!rc)
			rc = side_turn(to);
		if (!rc && plx_now_ns() > limit_ns)
			rc = plx_fail(ETIMEDOUT, "no connection");
	}
	return rc;
}

void connection_close(struct connection *connection)
{
	if (connection->ep) {
		fi_shutdown(connection->ep, 0);
		fi_close(&connection->ep->fid);
	}
	*connection = (struct connection){0};
}
