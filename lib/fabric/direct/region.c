/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory granted to the peer: registered for that alone, in the link's own domain or bound to its
 * endpoint.
 *
 * Revoking a grant closes its registration, so no new operation can use it. On plx_tcp, InfiniBand
 * and RoCE that also stops operations in progress. Soft iWARP still sends the rest of a get from
 * the memory; libfabric's tcp does, too, and still writes the rest of a put to it. So this side
 * sends REVOKE with a random number, and the peer sends the number back. Its answer follows all
 * puts that it had started. And the peer cannot know the number before it has received all get
 * data, which was sent earlier. Until then, or until the endpoint is closed, the library keeps the
 * memory. */
#include "fabric_link.h"

#include <stdlib.h>

#define KEY_TRIES  4
#define ACCESS_ALL (PLX_REMOTE_READ | PLX_REMOTE_WRITE)

struct plx_region {
	TAILQ_ENTRY(plx_region) of_list; /* oldest first */
	struct plx_link *link;
	struct fid_mr *mr;
	void *base;
	size_t bytes;
	uint64_t key;
	unsigned access;
	plx_region_released_fn released;
	void *arg;
};

/* Granting ------------------------------------------------------------------------------------- */

static int check_grant(const struct plx_link *link, const void *base, size_t bytes, unsigned access)
{
	int rc = direct_check_open(link);

	if (rc)
		return rc;
	if (!base || bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)base)
		return plx_fail(
			EINVAL,
			"%zu bytes at %p cannot be granted; give memory, and 1 byte of it or more",
			bytes, base);
	if (access == 0 || access & ~ACCESS_ALL)
		return plx_fail(EINVAL,
				"access %#x: give PLX_REMOTE_READ, PLX_REMOTE_WRITE or both",
				access);
	return 0;
}

int plx_link_grant(struct plx_link *link, void *base, size_t bytes, unsigned access,
		   struct plx_region **region_out)
{
	uint64_t rights = (access & PLX_REMOTE_READ ? FI_REMOTE_READ : 0) |
			  (access & PLX_REMOTE_WRITE ? FI_REMOTE_WRITE : 0);
	struct plx_region *region;
	int rc = check_grant(link, base, bytes, access);

	ASSERT_OWNER(link->home->id);
	if (rc)
		return rc;
	region = calloc(1, sizeof(*region));
	if (!region)
		return plx_fail(ENOMEM, "out of memory");
	*region = (struct plx_region){.link = link, .base = base, .bytes = bytes, .access = access};
	rc = -FI_ENOKEY;
	for (int i = 0; i < KEY_TRIES && rc == -FI_ENOKEY;
	     i++) /* unless the provider makes the key */
		rc = fi_mr_reg(link->set->fids.domain, base, bytes, rights, 0, plx_random_id(), 0,
			       &region->mr, NULL);
	if (rc == 0 && link->driver->name_writes)
		rc = fi_mr_bind(region->mr, &link->ep->fid, 0);
	if (rc) {
		driver_close_fid(region->mr ? &region->mr->fid : NULL, "memory registration");
		free(region);
		return plx_fail(ENOMEM,
				"%s: registering %zu bytes for %s failed: %s; is the memory there, "
				"and writable if that is granted, and the limit of locked memory "
				"(ulimit -l) large enough?",
				link->set->label, bytes, link->peer, fi_strerror(-rc));
	}
	region->key = fi_mr_key(region->mr);
	TAILQ_INSERT_TAIL(&link->direct->granted, region, of_list);
	*region_out = region;
	return 0;
}

void plx_region_remote(const struct plx_region *region, struct plx_remote *remote_out)
{
	ASSERT_OWNER(region->link->home->id);
	*remote_out = (struct plx_remote){
		.address = region->link->direct->by_address ? (uintptr_t)region->base : 0,
		.key = region->key,
		.bytes = region->bytes,
		.access = region->access,
	};
}

/* Revoking ----------------------------------------------------------------------------------- */

/* Send REVOKE, unless one is unanswered. */
static void ask(struct plx_link *link)
{
	struct direct *direct = link->direct;

	if (TAILQ_EMPTY(&direct->revoked) || !TAILQ_EMPTY(&direct->asked) ||
	    link->want & WANT_REVOKE)
		return;
	direct->question = plx_random_id();
	link_schedule(link, WANT_REVOKE);
}

/* A registration that fails to close is still reachable: end the link. */
static void unregister(struct plx_region *region)
{
	int rc = region->mr ? fi_close(&region->mr->fid) : 0;

	region->mr = NULL;
	if (rc)
		close_now(region->link, PLX_LINK_LOCAL, "taking back a grant failed: %s",
			  fi_strerror(-rc));
}

void plx_region_revoke(struct plx_region *region, plx_region_released_fn released, void *arg)
{
	struct plx_link *link = region->link;
	struct direct *direct = link->direct;

	ASSERT_OWNER(link->home->id);
	region->released = released;
	region->arg = arg;
	unregister(region);
	TAILQ_REMOVE(&direct->granted, region, of_list);
	TAILQ_INSERT_TAIL(direct->revokes_at_once ? &direct->done : &direct->revoked, region,
			  of_list);
	if (link->state == LINK_DEAD) /* close_reap releases them */
		return;
	if (direct->revokes_at_once)
		link_schedule(link, WANT_RELEASE);
	else
		ask(link);
}

/* REVOKE was sent. */
void region_asked(struct plx_link *link)
{
	TAILQ_CONCAT(&link->direct->asked, &link->direct->revoked, of_list);
}

void region_on_revoke(struct plx_link *link, uint64_t number)
{
	if (link->want & WANT_REVOKED) {
		close_now(link, PLX_LINK_PROTOCOL, "a REVOKE before the last one was answered");
		return;
	}
	link->direct->answer = number;
	link_schedule(link, WANT_REVOKED);
}

void region_on_revoked(struct plx_link *link, uint64_t number)
{
	struct direct *direct = link->direct;

	if (TAILQ_EMPTY(&direct->asked) || number != direct->question) {
		close_now(link, PLX_LINK_PROTOCOL, "an answer to no REVOKE");
		return;
	}
	TAILQ_CONCAT(&direct->done, &direct->asked, of_list);
	link_schedule(link, WANT_RELEASE);
	ask(link);
}

static void free_region(struct plx_region **region)
{
	free(*region);
}

/* Notify the user that the memory is unreachable. The callback may revoke other grants. */
static void release(struct regions *done)
{
	struct plx_region *region;

	while ((region = TAILQ_FIRST(done))) {
		struct plx_region *ended PLX_CLEANUP(free_region) = region;

		TAILQ_REMOVE(done, region, of_list);
		if (region->released)
			region->released(region->base, region->bytes, region->arg);
	}
}

void region_release_done(struct plx_link *link)
{
	link->want &= ~WANT_RELEASE;
	release(&link->direct->done);
}

/* The endpoint is closed, and nothing is in flight. Grants that were not revoked stay the user's
 * until all others are reported. */
void region_end_all(struct plx_link *link)
{
	struct direct *direct = link->direct;
	struct plx_region *region;

	TAILQ_FOREACH (region, &direct->granted, of_list)
		unregister(region);
	do {
		TAILQ_CONCAT(&direct->done, &direct->asked, of_list);
		TAILQ_CONCAT(&direct->done, &direct->revoked, of_list);
		release(&direct->done);
	} while (!TAILQ_EMPTY(&direct->done) || !TAILQ_EMPTY(&direct->revoked));
	while ((region = TAILQ_FIRST(&direct->granted))) {
		TAILQ_REMOVE(&direct->granted, region, of_list);
		free(region);
	}
}

/* A grant as bytes, as the peer gets it -------------------------------------------------------- */

/* Bytes that come back are untrusted: whatever they hold, an operation reaches only the memory of
 * the peer that sent them, and offsets cannot overflow. */
#define KEY_AT      8
#define BYTES_AT    16
#define ACCESS_AT   24
#define RESERVED_AT 28

void plx_remote_encode(const struct plx_remote *remote, void *out)
{
	uint8_t *bytes = out;

	put64(bytes, remote->address);
	put64(bytes + KEY_AT, remote->key);
	put64(bytes + BYTES_AT, remote->bytes);
	put32(bytes + ACCESS_AT, remote->access);
	put32(bytes + RESERVED_AT, 0);
}

int remote_check(const struct plx_remote *remote)
{
	if (remote->bytes == 0)
		return plx_fail(EINVAL, "remote memory: there are no bytes");
	if (remote->address > UINT64_MAX - remote->bytes)
		return plx_fail(EINVAL, "remote memory: it goes beyond the end of all memory");
	if (remote->access == 0 || remote->access & ~ACCESS_ALL)
		return plx_fail(EINVAL, "remote memory: its access is neither reading nor writing");
	return 0;
}

int plx_remote_decode(const void *in, size_t size, struct plx_remote *remote_out)
{
	const uint8_t *bytes = in;
	struct plx_remote remote;
	int rc;

	if (size != PLX_REMOTE_BYTES)
		return plx_fail(EINVAL, "remote memory: %zu bytes; it is described in %d", size,
				PLX_REMOTE_BYTES);
	if (get32(bytes + RESERVED_AT))
		return plx_fail(EINVAL, "remote memory: reserved bytes are set");
	remote = (struct plx_remote){
		.address = get64(bytes),
		.key = get64(bytes + KEY_AT),
		.bytes = get64(bytes + BYTES_AT),
		.access = get32(bytes + ACCESS_AT),
	};
	rc = remote_check(&remote);
	if (rc == 0)
		*remote_out = remote;
	return rc;
}
