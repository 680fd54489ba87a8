/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes mean the same in all structures: 0 is the default, and a field's maximum (PLX_NEVER,
 * PLX_NO_LIMIT, PLX_NONE) either works or is refused, as the table says. The test fails if a header
 * has a field that the table lacks. */
#include "plx_rpc.h"
#include "plx_session.h"
#include "socket_fixture.h"

#include "plx_fabric_driver.h"

#include <glob.h>

/* Each uses its structure, with defaults in other fields. Return: 0, or the refusal. */
typedef int (*try_fn)(const void *attr);

/* One that is an expression. */
#define TRY(type, result)                       \
	static int try_##type(const void *attr) \
	{                                       \
		return result;                  \
	}

/* The process's settings, which are set while nothing runs. */
static int try_plx_fabric_conf(const void *attr)
{
	struct plx_fabric_conf conf = *(const struct plx_fabric_conf *)attr;

	conf.drivers = plx_drivers;
	netio_down(NULL);
	int rc = plx_fabric_init(&conf);
	if (rc == 0)
		plx_fabric_fini();
	netio_up(NULL);
	return rc;
}

static int try_plx_lcore_conf(const void *attr)
{
	struct plx_lcore_conf conf = *(const struct plx_lcore_conf *)attr;
	struct plx_lcore_map map;
	struct plx_topo *topo;
	char list[32];

	netio_down(NULL);
	assert_int_equal(plx_topo_open(NULL, &topo), 0);
	snprintf(list, sizeof(list), "0@%u", plx_cpuset_next(plx_topo_allowed(topo), 0));
	assert_int_equal(plx_lcore_map_parse_list("-l", list, topo, &map), 0);
	conf.topo = topo;
	conf.map = &map;
	conf.main_lcore = PLX_LCORE_NONE;
	int rc = plx_lcores_init(&conf);
	assert_int_equal(plx_lcores_fini(PLX_NEVER), 0);
	plx_lcore_map_fini(&map);
	plx_topo_close(topo);
	netio_up(NULL);
	return rc;
}

/* Links ---------------------------------------------------------------------------------------- */

static unsigned opened, closed;

PLX_COUNTS(on_open, opened, struct plx_link *link, void *user)

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	assert_int_equal(reason, PLX_LINK_CLOSED);
	closed++;
}

static const struct plx_link_events events = {.on_open = on_open, .on_close = on_close};

static int try_listen(const struct plx_listen_attr *listen)
{
	struct plx_listener *listener;
	struct plx_link *link;

	opened = closed = 0;
	int rc = plx_link_listen("127.0.0.1:0", listen, &listener);
	if (rc)
		return rc;
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &listen->link, &link), 0);
	TURN_UNTIL(opened == 2);
	assert_int_equal(plx_link_close(link), 0);
	TURN_UNTIL(closed == 2);
	plx_listener_close(listener);
	return 0;
}

static int try_plx_link_attr(const void *attr)
{
	struct plx_listen_attr listen = {.link = *(const struct plx_link_attr *)attr};

	listen.link.events = &events;
	return try_listen(&listen);
}

static unsigned ended;

PLX_COUNTS(on_end, ended, struct plx_session *session, void *user)

static int try_plx_session_attr(const void *given)
{
	static const struct plx_session_events session_events = {.on_end = on_end};
	struct plx_session_attr attr = *(const struct plx_session_attr *)given;
	const struct plx_listen_attr listen = {.link.events = &events};
	struct plx_listener *listener;
	struct plx_session *session;

	opened = closed = ended = 0;
	attr.events = &session_events;
	attr.link.events = &events;
	assert_int_equal(plx_link_listen("127.0.0.1:0", &listen, &listener), 0);
	int rc = plx_session_connect(plx_listener_address(listener), &attr, &session);
	if (rc == 0) {
		TURN_UNTIL(opened == 2);
		plx_session_close(session);
		TURN_UNTIL(closed == 2 && ended == 1);
	}
	plx_listener_close(listener);
	return rc;
}

static int try_plx_admission(const void *attr)
{
	struct plx_listen_attr listen = {.link.events = &events,
					 .admission = *(const struct plx_admission *)attr};

	return try_listen(&listen);
}

/* Services ------------------------------------------------------------------------------------- */

struct try_rpc {
	const struct plx_rpc_service_attr *service;
	const struct plx_rpc_client_attr *client;
	struct plx_rpc_method method;
	struct plx_rpc_call call;
};

static void answer(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	assert_int_equal(plx_rpc_reply(request, data, length), 0);
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	assert_int_equal(result->status, PLX_RPC_OK);
	(*(unsigned *)arg)++;
}

static int call_it(struct plx_rpc_service *service, struct try_rpc *it)
{
	const char *addresses[] = {plx_rpc_service_address(service, 0), NULL};
	struct plx_rpc_client *client;
	unsigned done = 0;
	int rc = plx_rpc_client_create(addresses, it->client, &client);

	if (rc)
		return rc;
	it->call.done = on_done;
	it->call.arg = &done;
	rc = plx_rpc_call_start(client, &it->call, "hello", 5, NULL);
	if (rc == 0)
		TURN_UNTIL(done == 1);
	plx_rpc_client_destroy(client);
	return rc;
}

static int try_rpc(struct try_rpc it)
{
	struct plx_rpc_service *service;
	int rc = plx_rpc_service_create(it.service, &service);

	if (rc)
		return rc;
	it.method.name = "answer";
	it.method.handler = answer;
	rc = plx_rpc_service_add(service, &it.method);
	rc = rc ? rc : plx_rpc_service_listen(service, "127.0.0.1:0", NULL);
	rc = rc ? rc : call_it(service, &it);
	plx_rpc_service_destroy(service);
	return rc;
}

TRY(plx_rpc_service_attr, try_rpc((struct try_rpc){.service = attr}))
TRY(plx_rpc_client_attr, try_rpc((struct try_rpc){.client = attr}))
TRY(plx_rpc_method, try_rpc((struct try_rpc){.method = *(const struct plx_rpc_method *)attr}))
TRY(plx_rpc_call, try_rpc((struct try_rpc){.call = *(const struct plx_rpc_call *)attr}))

/* NetIO ---------------------------------------------------------------------------------------- */

static unsigned received;

PLX_COUNTS(on_received, received, struct netio_recv_socket *socket, const struct netio_msg *msg)

static int listen_up(const struct netio_listen_attr *attr)
{
	int rc = netio_listen_socket_init(&ctx.evloop, &heard.socket, attr);

	if (rc)
		return rc;
	received = 0;
	heard.socket.cb_msg_received = on_received;
	return netio_listen(&heard.socket, "127.0.0.1", 0);
}

static int try_send(const struct netio_listen_attr *listen,
		    const struct netio_connect_attr *connect)
{
	struct netio_send_socket sending;
	struct netio_msg msg;
	int rc = listen_up(listen);

	if (rc)
		return rc;
	rc = netio_send_socket_init(&ctx.evloop, &sending, connect);
	if (rc == 0) {
		connect_to_listening(&sending);
		TURN_UNTIL(netio_send(&sending, "hello", 5) == NETIO_STATUS_OK);
		TURN_UNTIL(received == 1 || netio_recv(&heard.socket, &msg) == 0);
		netio_send_socket_fini(&sending);
	}
	netio_listen_socket_fini(&heard.socket);
	return rc;
}

TRY(netio_listen_attr, try_send(attr, NULL))
TRY(netio_connect_attr, try_send(NULL, attr))

static int try_netio_buffered_attr(const void *attr)
{
	struct netio_buffered_send_socket sending;
	int rc = netio_buffered_send_socket_init(&ctx.evloop, &sending, attr);

	if (rc)
		return rc;
	assert_int_equal(listen_up(NULL), 0);
	connect_buffered_to_listening(&sending);
	TURN_UNTIL(netio_buffered_send(&sending, "hello", 5) == NETIO_STATUS_OK);
	for (unsigned i = 0; i < 1000; i++) /* no page is sent early */
		plx_loop_turn();
	assert_int_equal(received, 0);
	assert_int_equal(netio_buffered_flush(&sending), NETIO_STATUS_OK);
	TURN_UNTIL(received == 1);
	netio_buffered_send_socket_fini(&sending);
	netio_listen_socket_fini(&heard.socket);
	return 0;
}

PLX_COUNTS(on_published, received, struct netio_subscribe_socket *socket,
	   const struct netio_msg *msg)

static int try_publish(const struct netio_publish_attr *publish,
		       const struct netio_subscribe_attr *subscribe)
{
	struct netio_subscribe_socket subscribing = {0};
	struct netio_publish_socket publishing;
	int rc = netio_publish_socket_init(&ctx.evloop, &publishing, publish);

	if (rc)
		return rc;
	received = 0;
	assert_int_equal(netio_publish_listen(&publishing, "127.0.0.1", 0), 0);
	rc = netio_subscribe_socket_init(&ctx.evloop, &subscribing, subscribe);
	if (rc == 0) {
		subscribing.cb_msg_received = on_published;
		assert_works(netio_subscribe(&subscribing, "127.0.0.1",
					     netio_publish_socket_port(&publishing), 7));
		TURN_UNTIL(netio_buffered_publish(&publishing, 7, "hello", 5, 0, NULL) ==
			   NETIO_STATUS_OK);
		netio_buffered_publish_flush(&publishing);
		TURN_UNTIL(received == 1);
	}
	netio_subscribe_socket_fini(&subscribing);
	netio_publish_socket_fini(&publishing);
	return rc;
}

TRY(netio_publish_attr, try_publish(attr, NULL))
TRY(netio_subscribe_attr, try_publish(NULL, attr))

static int try_plx_idle_conf(const void *attr)
{
	int rc = plx_idle_set(plx_lcore_id(), attr);

	if (rc == 0)
		plx_loop_turn();
	assert_int_equal(plx_idle_set(plx_lcore_id(), &(struct plx_idle_conf){0}), 0);
	return rc;
}

static int try_plx_pool_attr(const void *attr)
{
	struct plx_pool_attr full = *(const struct plx_pool_attr *)attr;
	struct plx_pool *pool;

	full.name = "attributes";
	full.object_bytes = full.object_count = 64;
	full.owner = PLX_LCORE_NONE;
	full.node = PLX_NODE_ANY;
	int rc = plx_pool_create(&full, &pool);
	if (rc)
		return rc;
	void *object = plx_pool_get(pool);
	assert_non_null(object);
	plx_pool_put(pool, object);
	plx_pool_destroy(pool);
	return 0;
}

/* The table ------------------------------------------------------------------------------------ */

#define ROW(type, field, greatest)                                   \
	{#type "." #field, try_##type, offsetof(struct type, field), \
	 sizeof(((struct type *)0)->field), greatest}

#define WORKS   0
#define REFUSED -EINVAL

static const struct row {
	const char *name;
	try_fn try;
	size_t offset, bytes;
	int greatest; /* the result of the maximum */
} rows[] = {
	ROW(plx_admission, links_max, WORKS),
	ROW(plx_admission, links_per_host_max, WORKS),
	ROW(plx_admission, accepts_per_s, WORKS),
	ROW(plx_admission, handshakes_max, WORKS),
	ROW(plx_fabric_conf, heartbeat_ns, WORKS),
	ROW(plx_fabric_conf, dead_after_ns, REFUSED),
	ROW(plx_fabric_conf, dead_after_max_ns, REFUSED),
	ROW(plx_fabric_conf, receive_bytes, REFUSED),
	ROW(plx_fabric_conf, partial_bytes, REFUSED),
	ROW(plx_fabric_conf, turn_ns, REFUSED),
	ROW(plx_fabric_conf, turn_max, WORKS),
	ROW(plx_lcore_conf, lane_slots, REFUSED),
	ROW(plx_link_attr, rx_buf_bytes, REFUSED),
	ROW(plx_link_attr, rx_buf_count, REFUSED),
	ROW(plx_link_attr, message_max_bytes, REFUSED),
	ROW(plx_link_attr, connect_timeout_ns, WORKS),
	ROW(plx_link_attr, hello_timeout_ns, WORKS),
	ROW(plx_link_attr, close_timeout_ns, WORKS),
	ROW(plx_rpc_method, open_max, WORKS),
	ROW(plx_rpc_method, request_max, WORKS),
	ROW(plx_rpc_service_attr, request_max, REFUSED),
	ROW(plx_rpc_service_attr, open_max, WORKS),
	ROW(plx_rpc_service_attr, open_total, WORKS),
	ROW(plx_rpc_service_attr, waiting_max, WORKS),
	ROW(plx_rpc_service_attr, turn_max, WORKS),
	ROW(plx_rpc_service_attr, turn_ns, WORKS),
	ROW(plx_rpc_service_attr, self_test_rate, WORKS),
	ROW(plx_rpc_service_attr, keys_max, WORKS),
	ROW(plx_rpc_service_attr, key_bytes_max, WORKS),
	ROW(plx_rpc_service_attr, key_ns, REFUSED),
	ROW(plx_rpc_service_attr, clients_max, WORKS),
	ROW(plx_rpc_service_attr, slow_ns, WORKS),
	ROW(plx_rpc_client_attr, reply_max, REFUSED),
	ROW(plx_rpc_client_attr, deadline_ns, WORKS),
	ROW(plx_rpc_client_attr, calls_max, WORKS),
	ROW(plx_rpc_client_attr, waiting_max, WORKS),
	ROW(plx_rpc_client_attr, identity, WORKS), /* an ordinary number */
	ROW(plx_rpc_client_attr, reconnect_min_ns, WORKS),
	ROW(plx_rpc_client_attr, reconnect_max_ns, WORKS),
	ROW(plx_session_attr, reconnect_min_ns, WORKS),
	ROW(plx_session_attr, reconnect_max_ns, WORKS),
	ROW(plx_rpc_call, deadline_ns, WORKS),
	ROW(netio_connect_attr, connect_timeout_ns, WORKS),
	ROW(netio_connect_attr, reconnect_min_ns, WORKS),
	ROW(netio_connect_attr, reconnect_max_ns, WORKS),
	ROW(netio_connect_attr, message_max_bytes, REFUSED),
	ROW(netio_buffered_attr, page_bytes, REFUSED),
	ROW(netio_buffered_attr, page_count, REFUSED),
	ROW(netio_buffered_attr, watermark_bytes, REFUSED),
	ROW(netio_buffered_attr, timeout_ns, WORKS),
	ROW(netio_listen_attr, buffer_bytes, REFUSED),
	ROW(netio_listen_attr, buffer_count, REFUSED),
	ROW(netio_listen_attr, message_max_bytes, REFUSED),
	ROW(netio_listen_attr, queue_count, REFUSED),
	ROW(netio_publish_attr, page_bytes, REFUSED),
	ROW(netio_publish_attr, page_count, REFUSED),
	ROW(netio_publish_attr, watermark_bytes, REFUSED),
	ROW(netio_publish_attr, timeout_ns, WORKS),
	ROW(netio_publish_attr, subscribers_max, WORKS),
	ROW(netio_publish_attr, subscriptions_max, WORKS),
	ROW(netio_publish_attr, subscriber_subscriptions_max, WORKS),
	ROW(netio_publish_attr, block_max_ns, WORKS),
	ROW(netio_publish_attr, backlog_bytes, WORKS), /* truncated to the capacity of the pages */
	ROW(netio_subscribe_attr, buffer_bytes, REFUSED),
	ROW(netio_subscribe_attr, buffer_count, REFUSED),
	ROW(plx_idle_conf, spin_max_ns, REFUSED),
	ROW(plx_idle_conf, sleep_max_ns, WORKS),
	ROW(plx_idle_conf, wake_ns, REFUSED),
	ROW(plx_idle_conf, sleep_ns, REFUSED),
	ROW(plx_pool_attr, cache_count, WORKS),
};

/* Fields without a default; ids; and fields that tests of lib/lcore and lib/eal check. */
static const char *const others[] = {
	"plx_lcore_conf.main_lcore",    "plx_pool_attr.object_count",  "plx_pool_attr.owner",
	"plx_ring_attr.capacity",       "plx_ring_attr.element_bytes", "plx_eal_conf.owned_count",
	"plx_eal_conf.log_level_count", "plx_eal_conf.main_lcore",     "plx_eal_conf.lane_slots",
	"plx_eal_conf.heartbeat_ns",    "plx_eal_conf.self_test_rate", "plx_eal_conf.receive_bytes",
	"plx_eal_conf.turn_ns",         "plx_eal_conf.turn_max",
};

NETIO_TEST(a_zero_means_the_default_in_each_structure)
{
	static const uint64_t zeroes[256];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		if (i && rows[i].try == rows[i - 1].try)
			continue;
		if (rows[i].try(zeroes) != 0)
			fail_msg("%s: %s", rows[i].name, plx_error());
	}
}

NETIO_TEST(the_largest_numbers_mean_what_the_table_says)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		uint64_t attr[256] = {0};

		memset((char *)attr + rows[i].offset, 0xff, rows[i].bytes);
		int rc = rows[i].try(attr);
		if (rc != rows[i].greatest)
			fail_msg("%s: %d instead of %d: %s", rows[i].name, rc, rows[i].greatest,
				 rc ? plx_error() : "");
	}
}

/* Each size is in range, but not both together. */
NETIO_TEST(buffers_of_more_than_1_GiB_are_refused_at_once)
{
	struct plx_link_attr link = {.rx_buf_bytes = 8 << 20, .rx_buf_count = 200};
	struct netio_listen_attr listen = {.buffer_bytes = 8 << 20, .buffer_count = 200};
	struct netio_subscribe_attr subscribe = {.buffer_bytes = 8 << 20, .buffer_count = 200};
	struct netio_subscribe_socket subscribing;

	assert_fails(try_plx_link_attr(&link), -EINVAL, "more than 1073741824 bytes in all");
	assert_fails(netio_listen_socket_init(&ctx.evloop, &heard.socket, &listen), -EINVAL,
		     "more than 1073741824 bytes in all");
	assert_fails(netio_subscribe_socket_init(&ctx.evloop, &subscribing, &subscribe), -EINVAL,
		     "more than 1073741824 bytes in all");
}

NETIO_TEST(a_wait_may_have_no_timeout)
{
	struct plx_listen_attr listen = {.link.events = &events};
	struct plx_rpc_service *service;
	struct plx_listener *listener;
	struct plx_link *link;

	opened = closed = 0;
	assert_int_equal(plx_rpc_service_create(NULL, &service), 0);
	assert_int_equal(plx_rpc_service_finish(service, PLX_NEVER), 0);
	plx_rpc_service_destroy(service);
	assert_int_equal(netio_drain(&ctx.evloop, PLX_NEVER), 0);
	assert_int_equal(plx_link_listen("127.0.0.1:0", &listen, &listener), 0);
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &listen.link, &link), 0);
	TURN_UNTIL(opened == 2);
	assert_int_equal(plx_fabric_drain(PLX_NEVER), 0);
	assert_int_equal(closed, 2);
}

/* The headers ---------------------------------------------------------------------------------- */

static bool is_known(const char *name)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].name, name) == 0)
			return true;
	}
	for (unsigned i = 0; i < PLX_ARRAY_LEN(others); i++) {
		if (strcmp(others[i], name) == 0)
			return true;
	}
	return false;
}

/* Return: how many numeric fields the structures of that header have. */
static unsigned check_header(const char *path)
{
	char line[256], type[64] = "", name[64], whole[160];
	FILE *file = fopen(path, "re");
	unsigned count = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		const char *end = strchr(line, ' ');

		if (sscanf(line, "struct %63[a-z_] {", type) == 1 && strchr(line, '{') && end)
			continue;
		if (line[0] == '}')
			type[0] = '\0';
		if (!strstr(type, "_attr") && !strstr(type, "_conf") &&
		    strcmp(type, "plx_admission") != 0)
			continue;
		if (sscanf(line, "\tuint%*[0-9]_t %63[a-z_0-9];", name) != 1 ||
		    strncmp(line, "\tuint8", 6) == 0 || strchr(line, '['))
			continue;
		snprintf(whole, sizeof(whole), "%s.%s", type, name);
		if (!is_known(whole))
			fail_msg("%s: the table lacks %s", path, whole);
		count++;
	}
	fclose(file);
	return count;
}

PLX_TEST(the_table_lists_each_number_in_the_headers)
{
	char pattern[512];
	unsigned count = 0;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/lib/*/{plx_,netio_}[a-z]*.h",
		 getenv("PLX_SOURCE_ROOT"));
	assert_int_equal(glob(pattern, GLOB_BRACE, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		count += check_header(found.gl_pathv[i]);
	globfree(&found);
	/* plx_rpc_call and plx_rpc_method are other structures. */
	assert_int_equal(count, PLX_ARRAY_LEN(rows) + PLX_ARRAY_LEN(others) - 3);
}

PLX_TEST_MAIN()
