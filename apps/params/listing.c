/* SPDX-License-Identifier: BSD-3-Clause */
#include "listing.h"

#include <string.h>

#define AGAIN_NS (50 * PLX_NS_PER_MS) /* if the service gives no time */

static void call(struct listing *listing);

static void fail(struct listing *listing, int rc)
{
	listing_stop(listing);
	listing->failed(rc, listing->arg);
}

static void begin(struct listing *listing)
{
	listing->anew = listing->once_more = false;
	listing->lists = true;
	listing->place.length = 0;
	listing->begun(listing->arg);
	call(listing);
}

static void go_on(struct listing *listing)
{
	if (listing->anew)
		begin(listing);
	else
		call(listing);
}

static void on_time(struct plx_timer *timer, void *arg)
{
	go_on(arg);
}

static void wait_for_more(struct listing *listing, uint64_t wait_ns)
{
	int rc;

	plx_timer_init(&listing->again, on_time, listing);
	rc = plx_timer_start(&listing->again, wait_ns ? wait_ns : AGAIN_NS);
	if (rc)
		fail(listing, rc);
}

static void end(struct listing *listing)
{
	listing->lists = false;
	listing->ended(listing->arg);
	if (listing->once_more && listing->wanted)
		begin(listing);
}

static void take_page(struct listing *listing, const struct plx_rpc_result *result)
{
	struct param param;
	size_t offset;
	bool more;
	const char *wrong = page_read(result->data, result->length, &listing->place, &more,
				      &offset);

	while (!wrong && page_next(result->data, result->length, &offset, &param, &wrong))
		listing->found(&param, listing->arg);
	if (wrong)
		fail(listing, plx_fail(EPROTO, "the reply: %s", wrong));
	else if (more && listing->wanted)
		call(listing);
	else if (listing->wanted)
		end(listing);
}

/* Whether the service will always answer this request so. */
static bool is_final(enum plx_rpc_status status)
{
	return status == PLX_RPC_ERROR || status == PLX_RPC_UNKNOWN || status == PLX_RPC_DENIED ||
	       status == PLX_RPC_TOO_BIG;
}

static void on_page(const struct plx_rpc_result *result, void *arg)
{
	struct listing *listing = arg;

	listing->calls = false;
	if (result->status == PLX_RPC_CANCELLED || !listing->wanted)
		return;
	if (is_final(result->status))
		fail(listing, plx_fail(EIO, "the service does not list its parameters: %s",
				       plx_rpc_status_name(result->status)));
	else if (result->status != PLX_RPC_OK)
		wait_for_more(listing, result->retry_after_ns);
	else if (listing->anew) /* the page may predate what triggered the restart */
		begin(listing);
	else
		take_page(listing, result);
}

static void call(struct listing *listing)
{
	uint8_t order[WIRE_LIST_BYTES + 2 * PARAM_NAME_MAX];
	struct list_order what = {
		.prefix = listing->below,
		.prefix_length = (uint32_t)strlen(listing->below),
		.after = listing->place.name,
		.after_length = listing->place.length,
	};
	struct plx_rpc_call page = {
		.method = PARAMS_LIST,
		.deadline_ns = listing->deadline_ns,
		.retry = true,
		.done = on_page,
		.arg = listing,
	};
	int rc = plx_rpc_call_start(listing->client, &page, order, list_write(&what, order), NULL);

	listing->calls = rc == 0;
	if (rc == -EAGAIN)
		wait_for_more(listing, 0);
	else if (rc)
		fail(listing, rc);
}

void listing_begin(struct listing *listing)
{
	bool waits = plx_timer_running(&listing->again);

	listing->wanted = true;
	listing->anew = true;
	if (!listing->calls && !waits)
		begin(listing);
}

void listing_once_more(struct listing *listing)
{
	if (listing->wanted && listing->lists)
		listing->once_more = true;
	else
		listing_begin(listing);
}

void listing_stop(struct listing *listing)
{
	listing->wanted = listing->lists = false;
	plx_timer_stop(&listing->again);
}
