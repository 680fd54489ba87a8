/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests a provider's wait object with a connection to itself and one message.
 *
 *     nothing has arrived     armed, and no descriptor is ready
 *     a message arrives       a descriptor is ready
 *     it was received         armed again, and no descriptor is ready
 *
 * libfabric's net 1.17 fails the last step after fi_trywait. Each step has a time-out, and
 * everything is closed at the end. For plx-info; processes with links watch their own sleeps
 * instead (sleep.c). */
#include "fabric_address.h"
#include "fabric_provider.h"

#include <netdb.h>
#include <stdio.h>

#define CONNECT_NS (2 * PLX_NS_PER_S)
#define SETTLE_NS  (20 * PLX_NS_PER_MS) /* time to take leftovers of the connection */
#define WAKE_MS    500
#define ARM_TRIES  1000

struct probe {
	struct driver_choice choice;
	struct plx_fabric_fids fids;
	struct fi_info *info;
	struct fid_pep *pep;
	struct fid_ep *ends[2]; /* connector, acceptor */
	unsigned connected, received;
	char out, in; /* one byte: the inject limit of some providers */
	struct fid_mr *mr;
	struct fi_context context;
	char host[NI_MAXHOST];
};

/* Opening ------------------------------------------------------------------------------------ */

/* An address at which the process can connect to itself: the device's if it has no other. */
static int find_host(struct probe *probe)
{
	struct fi_info *info;
	int rc;

	snprintf(probe->host, sizeof(probe->host), "127.0.0.1");
	if (!probe->choice.driver->device)
		return 0;
	rc = driver_getinfo(&probe->choice, NULL, NULL, 0, &info);
	if (rc)
		return rc;
	rc = -FI_EADDRNOTAVAIL;
	for (struct fi_info *each = info; each && rc; each = each->next) {
		if (each->src_addr &&
		    getnameinfo(each->src_addr, (socklen_t)each->src_addrlen, probe->host,
				sizeof(probe->host), NULL, 0, NI_NUMERICHOST) == 0)
			rc = 0;
	}
	fi_freeinfo(info);
	return rc;
}

static int open_fids(struct probe *probe)
{
	const struct plx_fabric_driver *driver = probe->choice.driver;
	const char *step;
	int rc = find_host(probe);

	rc = rc ? rc : driver_getinfo(&probe->choice, probe->host, "0", FI_SOURCE, &probe->info);
	if (rc || !probe->info)
		return rc ? rc : -FI_ENODATA;
	rc = driver_open(driver, probe->info, NULL, &probe->fids, &step);
	if (rc == 0 && driver->needs_mr)
		rc = fi_mr_reg(probe->fids.domain, &probe->in, sizeof(probe->in), FI_RECV, 0, 1, 0,
			       &probe->mr, NULL);
	return rc;
}

static int connect_to_itself(struct probe *probe)
{
	struct sockaddr_storage name;
	size_t len = sizeof(name);
	char port[16];
	struct fi_info *info;
	int rc = fi_passive_ep(probe->fids.fabric, probe->info, &probe->pep, NULL);

	if (rc) {
		probe->pep = NULL;
		return rc;
	}
	rc = fi_pep_bind(probe->pep, &probe->fids.eq->fid, 0);
	rc = rc ?: fi_listen(probe->pep);
	rc = rc ?: fi_getname(&probe->pep->fid, &name, &len);
	if (rc)
		return rc;
	snprintf(port, sizeof(port), "%u", address_port((struct sockaddr *)&name));
	rc = driver_getinfo(&probe->choice, probe->host, port, 0, &info);
	if (rc)
		return rc;
	rc = driver_open_endpoint(&probe->fids, info, NULL, &probe->ends[0]);
	rc = rc ?: fi_connect(probe->ends[0], info->dest_addr, NULL, 0);
	fi_freeinfo(info);
	return rc;
}

/* Taking events and completions -------------------------------------------------------------- */

static int accept_end(struct probe *probe, struct fi_info *info)
{
	int rc = driver_open_endpoint(&probe->fids, info, NULL, &probe->ends[1]);
	void *desc;

	info->handle = NULL;
	desc = probe->mr ? fi_mr_desc(probe->mr) : NULL;
	if (rc == 0)
		rc = (int)fi_recv(probe->ends[1], &probe->in, 1, desc, 0, &probe->context);
	rc = rc ?: fi_accept(probe->ends[1], NULL, 0);
	fi_freeinfo(info);
	return rc;
}

/* Return: the number of events and completions; a libfabric error. */
static int take_all(struct probe *probe)
{
	struct fi_cq_msg_entry done;
	struct fi_eq_cm_entry cm;
	uint32_t event;
	int count = 0;
	ssize_t rc;

	while ((rc = fi_cq_read(probe->fids.cq, &done, 1)) == 1) {
		probe->received += (done.flags & FI_RECV) != 0;
		count++;
	}
	if (rc != -FI_EAGAIN)
		return (int)rc;
	while ((rc = fi_eq_read(probe->fids.eq, &event, &cm, sizeof(cm), 0)) >= (int)sizeof(cm)) {
		if (event == FI_CONNREQ)
			rc = accept_end(probe, cm.info);
		if (rc < 0)
			return (int)rc;
		probe->connected += event == FI_CONNECTED;
		count++;
	}
	return rc == -FI_EAGAIN ? count : (int)rc;
}

/* Take until *value is target, and for SETTLE_NS more. Return: 0; -FI_ETIMEDOUT; an error. */
static int take_until(struct probe *probe, const unsigned *value, unsigned target)
{
	uint64_t limit_ns = plx_now_ns() + CONNECT_NS, settled_ns = 0;

	for (;;) {
		uint64_t now_ns = plx_now_ns();
		int rc = take_all(probe);

		if (rc < 0)
			return rc;
		if (*value >= target && !settled_ns)
			settled_ns = now_ns + SETTLE_NS;
		if (settled_ns && now_ns >= settled_ns)
			return 0;
		if (now_ns >= limit_ns)
			return -FI_ETIMEDOUT;
	}
}

/* The steps ---------------------------------------------------------------------------------- */

static int arm(struct probe *probe)
{
	for (unsigned i = 0; i < ARM_TRIES; i++) {
		int rc = driver_arm(probe->choice.driver, &probe->fids);

		if (rc != -FI_EAGAIN)
			return rc;
		rc = take_all(probe);
		if (rc < 0)
			return rc;
	}
	return -FI_EAGAIN;
}

static const char *expect_silence(struct probe *probe, const char *else_text)
{
	if (arm(probe) != 0)
		return "it does not let itself be armed";
	return driver_is_ready(&probe->fids, 0) ? else_text : NULL;
}

static const char *try_all_steps(struct probe *probe)
{
	const char *wrong;

	if (probe->fids.wait_fd < 0)
		return "it has no descriptor";
	if (connect_to_itself(probe) != 0 || take_until(probe, &probe->connected, 2) != 0)
		return "it does not connect to itself";
	wrong = expect_silence(probe, "it wakes for nothing");
	if (!wrong && fi_inject(probe->ends[0], &probe->out, sizeof(probe->out), 0) != 0)
		wrong = "a message to itself does not leave";
	if (!wrong && !driver_is_ready(&probe->fids, WAKE_MS))
		wrong = "a message does not wake";
	if (!wrong && take_until(probe, &probe->received, 1) != 0)
		wrong = "a message to itself does not arrive";
	return wrong ?: expect_silence(probe, "it wakes for nothing after a message");
}

const char *plx_fabric_probe_sleep(const struct plx_fabric_driver *driver, const char *provider)
{
	struct probe probe = {
		.choice = {.driver = driver, .provider = provider},
		.fids = {.wait_fd = -1,
			 .eq_fd = -1,
			 .cq_entries = driver->cq_entries,
			 .cq_format = FI_CQ_FORMAT_MSG},
	};
	const char *wrong;

	plx_clock_init();
	wrong = open_fids(&probe) == 0 ? try_all_steps(&probe) : "it cannot be opened";
	driver_close_fid(probe.ends[0] ? &probe.ends[0]->fid : NULL, "endpoint");
	driver_close_fid(probe.ends[1] ? &probe.ends[1]->fid : NULL, "endpoint");
	driver_close_fid(probe.pep ? &probe.pep->fid : NULL, "passive endpoint");
	driver_close_fid(probe.mr ? &probe.mr->fid : NULL, "memory registration");
	driver_close(&probe.fids);
	if (probe.info)
		fi_freeinfo(probe.info);
	return wrong;
}
