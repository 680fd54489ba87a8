/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric alone: the leanest loop we can write, with a link's queues and endpoints. Receives are
 * posted ahead, sends request no completion, and a queue read takes as many entries as Pollux
 * requests. */
#include "instructions.h"

#include "plx_fabric_driver.h"

#include <netdb.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#define CQ_BURST      64
#define POSTED        8    /* per end, a link's default: 6, and 2 for control frames */
#define RECEIVE_BYTES 4096 /* each, as for a link */

struct end;

struct receive {
	struct fi_context context; /* first: a completion's op_context is its receive */
	struct end *end;
	uint8_t *bytes;
};

struct end {
	struct fid_ep *ep;
	bool connected;
	struct receive receives[POSTED];
};

static struct {
	const struct plx_fabric_driver *driver;
	struct plx_fabric_fids fids;
	struct fid_pep *pep;
	struct end ends[2];
	uint8_t *memory;
	bool inject;
} raw;

/* rc: libfabric's, of what. */
static PLX_NOINLINE void failed(ssize_t rc, const char *what)
{
	plx_fail(rc > -FI_ERRNO_OFFSET ? (int)-rc : EIO, "%s", fi_strerror((int)-rc));
	fail(what);
}

static void must(ssize_t rc, const char *what)
{
	if (rc)
		failed(rc, what);
}

/* Messages --------------------------------------------------------------------------------- */

static inline void transmit(struct end *from, const uint8_t *message)
{
	int rc = (int)(raw.inject ? fi_inject(from->ep, message, SIZE, 0)
				  : fi_send(from->ep, message, SIZE, NULL, 0, NULL));

	if (plx_unlikely(rc))
		failed(rc, "cannot send");
}

static inline void post(struct receive *receive)
{
	int rc = (int)fi_recv(receive->end->ep, receive->bytes, RECEIVE_BYTES, NULL, 0,
			      &receive->context);

	if (plx_unlikely(rc))
		failed(rc, "cannot receive");
}

/* What the queue returned instead of messages. */
static void not_received(ssize_t count)
{
	struct fi_cq_err_entry error = {0};

	if (count == -FI_EAGAIN)
		return;
	if (count == -FI_EAVAIL)
		fi_cq_readerr(raw.fids.cq, &error, 0);
	failed(error.err ? -error.err : count, "a message failed");
}

void raw_run(uint64_t count)
{
	struct fi_cq_msg_entry entries[CQ_BURST];
	uint64_t got = 0;

	while (got < count) {
		ssize_t n = fi_cq_read(raw.fids.cq, entries, CQ_BURST);

		if (plx_unlikely(n < 0)) {
			not_received(n);
			continue;
		}
		for (ssize_t i = 0; i < n; i++) {
			struct receive *receive = entries[i].op_context;

			if (plx_unlikely(entries[i].len != SIZE))
				failed(-FI_EIO, "a message has another length");
			transmit(receive->end, receive->bytes);
			post(receive);
			got++;
		}
	}
}

/* Opening ---------------------------------------------------------------------------------- */

/* As lib/fabric requests it. */
static struct fi_info *find(const char *port, uint64_t flags)
{
	const struct plx_fabric_driver *driver = raw.driver;
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->tx_attr->size = driver->tx_size;
	hints->rx_attr->size = driver->rx_size;
	hints->fabric_attr->prov_name = strdup(driver->provider);
	if (driver->hints)
		driver->hints(hints);

	must((driver->getinfo ? driver->getinfo : fi_getinfo)(FI_VERSION(1, 17), ADDRESS, port,
							      flags, hints, &info),
	     "no such provider, or address");
	fi_freeinfo(hints);
	return info;
}

static void open_domain(struct fi_info *info)
{
	const struct plx_fabric_driver *driver = raw.driver;
	size_t bytes = 2 * POSTED * RECEIVE_BYTES;

	must((driver->fabric ? driver->fabric : fi_fabric)(info->fabric_attr, &raw.fids.fabric,
							   NULL),
	     "cannot open a fabric");
	must(fi_domain(raw.fids.fabric, info, &raw.fids.domain, NULL), "cannot open a domain");
	raw.fids.cq_entries = driver->cq_entries;
	raw.fids.cq_format = FI_CQ_FORMAT_MSG;
	must(driver->open_queues ? driver->open_queues(&raw.fids, info)
				 : plx_fabric_open_queues(&raw.fids, info),
	     "cannot open queues");
	raw.memory = aligned_alloc(RECEIVE_BYTES, bytes);
	memset(raw.memory, 0, bytes);
}

static void listen_at(struct fi_info *info, char *port_out, size_t size)
{
	struct sockaddr_storage address;
	size_t length = sizeof(address);

	must(fi_passive_ep(raw.fids.fabric, info, &raw.pep, NULL), "cannot listen");
	must(fi_pep_bind(raw.pep, &raw.fids.eq->fid, 0), "cannot listen");
	must(fi_listen(raw.pep), "cannot listen");
	must(fi_getname(&raw.pep->fid, &address, &length), "cannot listen");
	if (getnameinfo((struct sockaddr *)&address, (socklen_t)length, NULL, 0, port_out,
			(socklen_t)size, NI_NUMERICSERV))
		fail("the listener has no port");
}

static void open_end(struct end *end, struct fi_info *info, uint8_t *memory)
{
	struct fid *cq = &raw.fids.cq->fid;

	must(fi_endpoint(raw.fids.domain, info, &end->ep, end), "cannot make an endpoint");
	must(fi_ep_bind(end->ep, &raw.fids.eq->fid, 0), "cannot bind an event queue");
	must(fi_ep_bind(end->ep, cq, FI_TRANSMIT | FI_SELECTIVE_COMPLETION), "cannot bind a queue");
	must(fi_ep_bind(end->ep, cq, FI_RECV), "cannot bind a queue");
	must(fi_enable(end->ep), "cannot enable an endpoint");
	for (unsigned i = 0; i < POSTED; i++) {
		end->receives[i].end = end;
		end->receives[i].bytes = memory + i * RECEIVE_BYTES;
		post(&end->receives[i]);
	}
	raw.inject = SIZE <= info->tx_attr->inject_size;
}

static void take_event(uint32_t event, struct fi_eq_cm_entry *entry)
{
	if (event == FI_CONNREQ) {
		open_end(&raw.ends[1], entry->info, raw.memory + POSTED * RECEIVE_BYTES);
		fi_freeinfo(entry->info);
		must(fi_accept(raw.ends[1].ep, NULL, 0), "cannot accept");
	} else if (event == FI_CONNECTED) {
		((struct end *)entry->fid->context)->connected = true;
	}
}

static void wait_connected(void)
{
	uint64_t limit_ns = plx_now_ns() + CONNECT_NS;

	while (!raw.ends[0].connected || !raw.ends[1].connected) {
		union {
			struct fi_eq_cm_entry entry;
			uint8_t room[sizeof(struct fi_eq_cm_entry) + 256];
		} event;
		struct fi_cq_msg_entry none; /* a read makes progress */
		uint32_t kind;
		ssize_t n = fi_eq_read(raw.fids.eq, &kind, &event, sizeof(event), 0);

		if (n >= 0)
			take_event(kind, &event.entry);
		else if (n != -FI_EAGAIN || fi_cq_read(raw.fids.cq, &none, 1) != -FI_EAGAIN)
			failed(n, "cannot connect");
		if (plx_now_ns() > limit_ns)
			fail("no connection");
	}
}

static const struct plx_fabric_driver *find_driver(const char *provider)
{
	for (const struct plx_fabric_driver *const *d = plx_drivers; *d; d++) {
		if (strcmp((*d)->name, provider) == 0)
			return *d;
	}
	fail("no such provider");
}

void raw_open(const char *provider)
{
	struct fi_info *info;
	char port[NI_MAXSERV];

	raw.driver = find_driver(provider);
	info = find("0", FI_SOURCE);
	open_domain(info);
	listen_at(info, port, sizeof(port));
	fi_freeinfo(info);
	info = find(port, 0);
	open_end(&raw.ends[0], info, raw.memory);
	must(fi_connect(raw.ends[0].ep, info->dest_addr, NULL, 0), "cannot connect");
	fi_freeinfo(info);
	wait_connected();
	transmit(&raw.ends[0], raw.memory);
}
