/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_rdm.h"

#include <stdio.h>
#include <unistd.h>

#define GIVEN_NAME_MAX 100

/* In the form "fi_ns://" the provider uses names unchanged, without adding user and number. */
static void full_name(const struct raw_options *options, bool server, char *out, size_t size)
{
	if (server)
		snprintf(out, size, "fi_ns://%.100s", options->host);
	else /* names are unique per host, so a client generates one */
		snprintf(out, size, "fi_ns://%.100s.%d", options->host, (int)getpid());
}

static int find(const struct raw_options *options, struct fi_info **info_out)
{
	struct fi_info *hints = fi_allocinfo();
	char name[RAW_NAME_BYTES];

	full_name(options, options->listen, name, sizeof(name));
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup("shm");
	int rc = fi_getinfo(RAW_API_VERSION, name, NULL, FI_SOURCE, hints, info_out);
	fi_freeinfo(hints);
	return rc ? raw_failed(rc, "provider shm has no FI_EP_RDM endpoint") : 0;
}

static int check_name(const char *name)
{
	if (!strchr(name, '/') && strlen(name) <= GIVEN_NAME_MAX)
		return 0;
	return plx_fail(EINVAL, "%s: give a name of at most %d characters without '/'", name,
			GIVEN_NAME_MAX);
}

static int open_domain(struct raw_rdm *rdm)
{
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	int rc = fi_fabric(rdm->at.info->fabric_attr, &rdm->at.fabric, NULL);

	if (rc)
		return raw_failed(rc, "cannot open the fabric");
	rdm->at.cq_wait = FI_WAIT_NONE;
	rc = raw_endpoint_open_domain(&rdm->at, rdm->at.info);
	if (rc)
		return rc;
	rc = fi_av_open(rdm->at.domain, &av_attr, &rdm->av, NULL);
	return rc ? raw_failed(rc, "cannot open an address table") : 0;
}

static int open_endpoint(const struct raw_options *options, struct raw_rdm *rdm)
{
	int rc = check_name(options->host);

	rc = rc ? rc : find(options, &rdm->at.info);
	rc = rc ? rc : open_domain(rdm);
	rc = rc ? rc : raw_endpoint_open(&rdm->at, rdm->at.info, &rdm->av->fid);
	return rc == -EBUSY ? plx_fail(EADDRINUSE, "the name %s is taken", options->host) : rc;
}

static int insert(struct raw_rdm *rdm, const char *name)
{
	return fi_av_insert(rdm->av, name, 1, &rdm->at.peer, 0, NULL) == 1
		     ? 0
		     : plx_fail(EINVAL, "the name %s is not one of provider shm", name);
}

void raw_rdm_close(struct raw_rdm *rdm)
{
	raw_close_fid(rdm->at.ep ? &rdm->at.ep->fid : NULL);
	raw_close_fid(rdm->av ? &rdm->av->fid : NULL);
	raw_endpoint_close(&rdm->at);
}

int raw_rdm_receive(struct raw_rdm *rdm, uint64_t limit_ns, const char *what,
		    struct fi_cq_msg_entry *entry)
{
	struct raw_wait wait = {0};

	for (;;) {
		ssize_t n = fi_cq_read(rdm->at.cq, entry, 1);

		if (plx_likely(n == 1))
			return 0;
		if (n != -FI_EAGAIN)
			return raw_endpoint_error(&rdm->at, n);
		int rc = raw_wait_over(&wait, limit_ns, what);
		if (rc)
			return rc;
	}
}

/* No room, or the peer has not mapped its region yet. Reading the queue makes progress, and reading
 * zero entries keeps those that may be there. */
int raw_rdm_transmit_slowly(struct raw_rdm *rdm, const void *message, size_t size, bool inject)
{
	struct raw_wait wait = {.spins = RAW_SPINS_CHECK - 1};
	ssize_t sent;

	do {
		int rc = raw_wait_over(&wait, RAW_PEER_NS, "the peer to take a message");
		if (rc)
			return rc;
		fi_cq_read(rdm->at.cq, NULL, 0);
		sent = raw_rdm_try(rdm, message, size, inject);
	} while (sent == -FI_EAGAIN || sent == -FI_ENOENT);
	return sent ? raw_failed(sent, "cannot send") : 0;
}

static int post_hello(struct raw_rdm *rdm)
{
	ssize_t rc = fi_recv(rdm->at.ep, &rdm->hello, sizeof(rdm->hello), NULL, FI_ADDR_UNSPEC,
			     &rdm->hello_context);

	return rc ? raw_failed(rc, "cannot post a receive") : 0;
}

int raw_rdm_listen(const struct raw_options *options, struct raw_rdm *rdm, uint64_t *size_out)
{
	struct fi_cq_msg_entry entry;
	int rc = open_endpoint(options, rdm);

	rc = rc ? rc : post_hello(rdm);
	if (rc)
		return rc;
	raw_say_listening(options->host, "");
	rc = raw_rdm_receive(rdm, options->wait_ns, "a client", &entry);
	if (rc)
		return rc;
	rdm->hello.name[sizeof(rdm->hello.name) - 1] = '\0';
	if (entry.len != sizeof(rdm->hello) || !rdm->hello.size || rdm->hello.size > RAW_SIZE_MAX)
		return plx_fail(EPROTO, "what came first (%zu B) is no hello", entry.len);
	*size_out = rdm->hello.size;
	return insert(rdm, rdm->hello.name);
}

int raw_rdm_accept(struct raw_rdm *rdm)
{
	return raw_rdm_transmit(rdm, "", 0, true);
}

int raw_rdm_connect(const struct raw_options *options, struct raw_rdm *rdm)
{
	struct raw_hello hello = {.size = options->size};
	size_t length = sizeof(hello.name);
	struct fi_cq_msg_entry entry;
	char server[RAW_NAME_BYTES];
	int rc = open_endpoint(options, rdm);

	if (rc)
		return rc;
	rc = fi_getname(&rdm->at.ep->fid, hello.name, &length);
	if (rc)
		return raw_failed(rc, "cannot tell the address");
	full_name(options, true, server, sizeof(server));
	rc = insert(rdm, server);
	rc = rc ? rc : post_hello(rdm);
	rc = rc ? rc : raw_rdm_transmit(rdm, &hello, sizeof(hello), true);
	return rc ? rc : raw_rdm_receive(rdm, RAW_PEER_NS, "the server", &entry);
}
