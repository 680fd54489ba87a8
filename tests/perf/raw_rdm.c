/* SPDX-License-Identifier: BSD-3-Clause */
/* Two endpoints of libfabric's shared-memory provider (FI_EP_RDM), which know each other by name.
 * The client's hello carries its name and the size of its messages. The provider does not report
 * lost peers, so the programs define how a run ends. */
#include "raw_endpoint.h"

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

static int open_domain(struct raw_endpoint *at)
{
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	int rc = fi_fabric(at->info->fabric_attr, &at->fabric, NULL);

	if (rc)
		return raw_failed(rc, "cannot open the fabric");
	at->cq_wait = FI_WAIT_NONE;
	rc = raw_endpoint_open_domain(at, at->info);
	if (rc)
		return rc;
	rc = fi_av_open(at->domain, &av_attr, &at->av, NULL);
	return rc ? raw_failed(rc, "cannot open an address table") : 0;
}

static int open_endpoint(const struct raw_options *options, struct raw_endpoint *at)
{
	int rc = check_name(options->host);

	rc = rc ? rc : find(options, &at->info);
	rc = rc ? rc : open_domain(at);
	rc = rc ? rc : raw_endpoint_open(at, at->info, &at->av->fid);
	return rc == -EBUSY ? plx_fail(EADDRINUSE, "the name %s is taken", options->host) : rc;
}

static int insert(struct raw_endpoint *at, const char *name)
{
	return fi_av_insert(at->av, name, 1, &at->peer, 0, NULL) == 1
		     ? 0
		     : plx_fail(EINVAL, "the name %s is not one of provider shm", name);
}

static int receive(struct raw_endpoint *at, uint64_t limit_ns, const char *what,
		   struct fi_cq_msg_entry *entry)
{
	struct raw_wait wait = {0};

	for (;;) {
		ssize_t n = fi_cq_read(at->cq, entry, 1);

		if (plx_likely(n == 1))
			return 0;
		if (n != -FI_EAGAIN)
			return raw_endpoint_error(at, n);
		int rc = raw_wait_over(&wait, limit_ns, what);
		if (rc)
			return rc;
	}
}

static int post_hello(struct raw_endpoint *at)
{
	ssize_t rc = fi_recv(at->ep, &at->hello, sizeof(at->hello), NULL, FI_ADDR_UNSPEC,
			     &at->hello_context);

	return rc ? raw_failed(rc, "cannot post a receive") : 0;
}

static int listen_for_one(const struct raw_options *options, struct raw_endpoint *at,
			  uint64_t *size_out)
{
	struct fi_cq_msg_entry entry;
	int rc = open_endpoint(options, at);

	rc = rc ? rc : post_hello(at);
	if (rc)
		return rc;
	plx_app_say("listening on %s", options->host);
	rc = receive(at, options->wait_ns, "a client", &entry);
	if (rc)
		return rc;
	at->hello.name[sizeof(at->hello.name) - 1] = '\0';
	if (entry.len != sizeof(at->hello) || !at->hello.size || at->hello.size > RAW_SIZE_MAX)
		return plx_fail(EPROTO, "what came first (%zu B) is no hello", entry.len);
	*size_out = at->hello.size;
	return insert(at, at->hello.name);
}

static int accept_it(struct raw_endpoint *at)
{
	return raw_endpoint_send(at, "", 0, NULL);
}

static int connect_to(const struct raw_options *options, struct raw_endpoint *at)
{
	struct raw_hello hello = {.size = options->size};
	size_t length = sizeof(hello.name);
	struct fi_cq_msg_entry entry;
	char server[RAW_NAME_BYTES];
	int rc = open_endpoint(options, at);

	if (rc)
		return rc;
	rc = fi_getname(&at->ep->fid, hello.name, &length);
	if (rc)
		return raw_failed(rc, "cannot tell the address");
	full_name(options, true, server, sizeof(server));
	rc = insert(at, server);
	rc = rc ? rc : post_hello(at);
	rc = rc ? rc : raw_endpoint_send(at, &hello, sizeof(hello), NULL);
	return rc ? rc : receive(at, RAW_PEER_NS, "the server", &entry);
}

const struct raw_kind raw_rdm = {listen_for_one, accept_it, connect_to, NULL};
