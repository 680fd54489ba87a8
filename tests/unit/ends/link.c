/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#define LINKS_MAX 16
#define BUF_BYTES 1024
#define BUF_COUNT 8

static struct plx_listener *listener;
static struct plx_link *links[LINKS_MAX]; /* from on_open, or the connect, until on_close */
static struct plx_link *current;          /* whose callback runs, or ran last */
static struct plx_link *to_close, *granted_by;
static struct plx_region *region;
static struct plx_remote remote;
static unsigned open_count;
static bool has_direct;
static uint8_t memory[4096];

/* Where a link is listed; NULL: the first empty place. */
static struct plx_link **place_of(const struct plx_link *link)
{
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		if (links[i] == link)
			return &links[i];
	}
	return NULL;
}

static void enlist(struct plx_link *link)
{
	struct plx_link **free_place = place_of(NULL);

	if (place_of(link))
		return;
	assert_non_null(free_place);
	*free_place = link;
}

static void in(struct plx_link *link, const char *callback)
{
	current = link;
	ends_in(callback, NULL);
}

/* A callback of a link that only runs `in`. */
#define RUNS_IN(function, callback, ...)                                       \
	static void function(struct plx_link *link, ##__VA_ARGS__, void *user) \
	{                                                                      \
		in(link, callback);                                            \
	}

RUNS_IN(on_message, "on_message", struct plx_buf *message)
RUNS_IN(on_writable, "on_writable")
RUNS_IN(on_credit, "on_credit")
RUNS_IN(on_put, "on_put", uint32_t value)
RUNS_IN(on_sent, user, struct plx_buf *buf, int status)
ENDS_RUN(on_released, "region released", NULL, void *base, size_t bytes, void *arg)

static const char *on_hello(struct plx_link *link, void *user)
{
	in(link, "on_hello");
	return NULL;
}

static void on_open(struct plx_link *link, void *user)
{
	enlist(link);
	open_count++;
	in(link, "on_open");
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	if (place_of(link))
		*place_of(link) = NULL;
	if (link == granted_by)
		region = NULL;
	current = NULL;
	ends_in("on_close", NULL);
}

static uint32_t place(struct plx_listener *one, const struct sockaddr *peer, void *arg)
{
	ends_in("place", &listener);
	return plx_lcore_id();
}

static const struct plx_link_events events = {
	.on_hello = on_hello,
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_credit = on_credit,
	.on_put = on_put,
	.on_close = on_close,
};

/* A request that an exception out of `place` or on_hello leaves ends when its time is up. */
static struct plx_link *connect_to(const char *provider, bool direct)
{
	const struct plx_link_attr attr = {.events = &events,
					   .provider = provider,
					   .direct = direct,
					   .connect_timeout_ns = 300 * PLX_NS_PER_MS,
					   .rx_buf_bytes = BUF_BYTES,
					   .rx_buf_count = BUF_COUNT};
	struct plx_link *link;

	assert_works(plx_link_connect(plx_listener_address(listener), &attr, &link));
	enlist(link);
	return link;
}

static struct plx_link *client;
static const char *provider_used;

static bool are_open(void)
{
	return open_count == 4;
}

/* The side that was accepted with a client, which is the other one of the first two. */
static struct plx_link *other_than(const struct plx_link *link)
{
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		if (links[i] && links[i] != link && links[i] != to_close &&
		    plx_link_is_open(links[i]) && plx_link_direct_max(links[i]))
			return links[i];
	}
	return NULL;
}

static void up(const char *provider)
{
	struct plx_listen_attr listen = {
		.link = {.events = &events,
			 .provider = provider,
			 .rx_buf_bytes = BUF_BYTES,
			 .rx_buf_count = BUF_COUNT},
		.spread = PLX_SPREAD_CALLBACK,
		.place = place,
	};

	has_direct = strcmp(provider, "tcp") == 0;
	listen.link.direct = has_direct;
	provider_used = provider;
	open_count = 0;
	memset(links, 0, sizeof(links));
	current = NULL;
	assert_works(plx_link_listen("127.0.0.1:0", &listen, &listener));
	client = connect_to(provider, has_direct);
	to_close = connect_to(provider, false);
	ends_turn_until(are_open);
	current = client;
	if (has_direct) {
		granted_by = other_than(client);
		assert_non_null(granted_by);
		assert_works(plx_link_grant(granted_by, memory, sizeof(memory),
					    PLX_REMOTE_READ | PLX_REMOTE_WRITE, &region));
		plx_region_remote(region, &remote);
	}
}

/* Until there is no room, so that on_writable follows. */
static void send_all(struct plx_link *link)
{
	struct plx_buf *buf;
	int rc = 0;

	while (rc == 0) {
		buf = plx_link_buf(link, 64);
		assert_non_null(buf);
		plx_buf_append(buf, 64);
		rc = plx_link_send_buf(link, buf, on_sent, (void *)(uintptr_t)"sent");
		if (rc)
			plx_buf_unref(buf);
	}
	assert_int_equal(rc, -EAGAIN);
}

static void put_and_get(void)
{
	struct plx_buf *buf = plx_link_buf(client, 64), *into = plx_link_buf(client, 64);

	assert_non_null(buf);
	assert_non_null(into);
	plx_buf_append(buf, 8);
	assert_works(plx_link_put_and_tell(client, &remote, 0, buf, 1, NULL, NULL));
	assert_works(plx_link_get(client, &remote, 0, 16, into, on_sent, (void *)(uintptr_t)"got"));
}

static void grant_and_revoke(void)
{
	struct plx_region *other;

	assert_works(plx_link_grant(granted_by, memory, 64, PLX_REMOTE_READ, &other));
	plx_region_revoke(other, on_released, NULL);
}

static int revoke_region(void)
{
	struct plx_region *revoked = region;

	if (!region)
		return 1;
	region = NULL;
	plx_region_revoke(revoked, on_released, NULL);
	return 0;
}

static void kick(void)
{
	connect_to(provider_used, has_direct);
	if (has_direct) {
		put_and_get();
		grant_and_revoke();
	}
	send_all(client);
	plx_link_close(to_close);
}

static struct plx_link *target(void)
{
	if (current && place_of(current))
		return current;
	return place_of(client) ? client : NULL;
}

static int close_link(void)
{
	return target() ? plx_link_close(target()) : 1;
}

static int abort_link(void)
{
	if (!target())
		return 1;
	plx_link_abort(target());
	return 0;
}

static int abort_all(void)
{
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		if (links[i])
			plx_link_abort(links[i]);
	}
	return 0;
}

static int drain(void)
{
	return plx_fabric_drain(PLX_NEVER);
}

ENDS_TAKE(plx_listener_close, listener)
ENDS_CALL(plx_fabric_fini)

static void down(bool is_up)
{
	if (is_up) {
		abort_all();
		take_listener();
	}
	listener = NULL;
	region = NULL;
}

static const struct ends_call calls[] = {
	{"plx_link_close", ENDS_DEFERS, close_link},
	{"plx_link_abort", ENDS_DEFERS, abort_link},
	{"plx_link_abort", ENDS_DEFERS, abort_all},
	{"plx_listener_close", ENDS_WORKS, take_listener},
	{"plx_region_revoke", ENDS_DEFERS, revoke_region},
	{"plx_fabric_drain", ENDS_REFUSES, drain},
	{"plx_fabric_fini", ENDS_LOGS, call_plx_fabric_fini},
};

static const struct ends_callback callbacks[] = {
	{"place", ENDS_RUNS},
	{"on_hello", ENDS_RUNS},
	{"on_open", ENDS_RUNS},
	{"on_message", ENDS_ALL},
	{"sent", ENDS_ALL},
	{"on_writable", ENDS_RUNS},
	{"on_credit", ENDS_RUNS},
	{"on_put", 0},
	{"got", 0},
	{"region released", 0},
	{"on_close", ENDS_ALL & ~(1u << ENDS_IN_NETIO_DRAIN)},
};

ENDS_PART(ends_link, "link");
