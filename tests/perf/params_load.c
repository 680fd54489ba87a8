/* SPDX-License-Identifier: BSD-3-Clause */
/* Many parameters, many watchers and many sets per second of a plx-params service, and whether any
 * is lost. Defines parameters, subscribes watchers, each on a separate connection, and sets values
 * on a schedule. A value is the time when its set was due. After the last set, each watcher must
 * have seen, for every parameter, the revision of the last reply or a later one. */
#include "app.h"
#include "bytes.h"
#include "netio.h"
#include "plx_lcore.h"
#include "plx_rpc.h"
#include "wire.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS_MAX 1000000
#define WATCHERS_MAX   1000
#define RATE_MAX       10000000
#define IN_FLIGHT      256                 /* defines in flight */
#define BURST_MAX      16                  /* sets per turn */
#define DEADLINE_NS    (10 * PLX_NS_PER_S) /* of a call, and of each step after the last set */
#define NAME_FORMAT    "load/%07" PRIu32
#define NAME_BYTES     12
#define HIST_NS_MAX    (100 * PLX_NS_PER_S)

static const char *service;
static uint64_t parameters = 100000, watchers = 100, rate = 10000, seed = 1;
static uint64_t duration_ns = 5 * PLX_NS_PER_S;
static bool durable;
static const char *out;

static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &service, "host:port of plx-params", .required = true),
	PLX_UINT("parameters", "N", &parameters, 1, PARAMETERS_MAX,
		 "how many are defined (default 100000)"),
	PLX_UINT("watchers", "N", &watchers, 0, WATCHERS_MAX,
		 "connections that subscribe to all (default 100)"),
	PLX_UINT("rate", "R", &rate, 1, RATE_MAX, "sets a second (default 10000)"),
	PLX_TIME("duration", "TIME", &duration_ns, 1, 0, "for how long (default 5s)"),
	PLX_FLAG("durable", &durable, "a set is answered when it is on the disk"),
	PLX_UINT("seed", "N", &seed, 0, 0, "of which parameters are set (default 1)"),
	PLX_TEXT("out", "FILE", &out, "write the figures there, too"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "params-load",
	.summary = "Load a plx-params service, and look whether anything is lost.",
	.options = options,
	.eal = &(const struct plx_eal_conf){.idle = "poll"}};

struct watcher {
	struct netio_subscribe_socket socket;
	uint64_t *seen; /* revisions, by parameter */
};

static struct {
	struct plx_rpc_client *client;
	uint64_t *acknowledged; /* revisions, by parameter */
	uint64_t defined, called, open, refused;
	uint64_t ports; /* 1 once `port` is known */
	unsigned port;
	struct netio_context netio;
	struct watcher *watchers;
	uint64_t subscribed, messages, gaps;
	struct plx_schedule schedule;
	struct plx_hist set_ns, watch_ns;
	int rc;
} load;

static void fail(int rc)
{
	load.rc = load.rc ? load.rc : rc;
	plx_loop_quit();
}

/* Turn the loop until the count is reached. Return: 0; -ETIMEDOUT, with `what` in the text;
 * load.rc. */
static int turn_until(const uint64_t *count, uint64_t wanted, const char *what)
{
	uint64_t until_ns = plx_now_ns() + DEADLINE_NS;

	while (*count != wanted && load.rc == 0) {
		if (plx_stop_signal())
			return plx_fail(EINTR, "interrupted");
		if (plx_now_ns() > until_ns)
			return plx_fail(ETIMEDOUT, "%s: not within 10 s", what);
		plx_loop_turn();
	}
	return load.rc;
}

static void name_of(uint32_t i, char name[NAME_BYTES + 1])
{
	snprintf(name, NAME_BYTES + 1, NAME_FORMAT, i % (PARAMETERS_MAX * 10));
}

/* Return: its index; `parameters` if it is not one of ours. */
static uint64_t index_of(const struct param *param)
{
	char digits[NAME_BYTES + 1] = "";

	if (param->name_length != NAME_BYTES)
		return parameters;
	memcpy(digits, param->name, NAME_BYTES);
	return strtoull(digits + strlen("load/"), NULL, 10);
}

/* Parameters ----------------------------------------------------------------------------------- */

static void define_next(void);

static void on_defined(const struct plx_rpc_result *result, void *arg)
{
	if (result->status == PLX_RPC_CANCELLED) /* the client is ending, and the reason is known */
		return;
	if (result->status != PLX_RPC_OK) {
		fail(plx_fail(EIO, "a parameter was not defined: %s",
			      plx_rpc_status_name(result->status)));
		return;
	}
	load.acknowledged[(uintptr_t)arg] = get64(result->data);
	load.defined++;
	if (load.called < parameters)
		define_next();
}

static struct order order_of(const char *name, int64_t value)
{
	return (struct order){
		.param = {.name = name,
			  .name_length = NAME_BYTES,
			  .kind.type = PARAM_INT,
			  .value = {PARAM_INT, .integer = value}},
	};
}

/* Again while the disk is slow. */
static void define_next(void)
{
	uint8_t bytes[WIRE_ORDER_MAX];
	char name[NAME_BYTES + 1];
	struct order order = order_of(name, 0);
	struct plx_rpc_call call = {
		.method = PARAMS_DEFINE,
		.deadline_ns = DEADLINE_NS,
		.retry = true,
		.done = on_defined,
		.arg = (void *)(uintptr_t)load.called,
	};
	int rc;

	name_of((uint32_t)load.called++, name);
	rc = plx_rpc_call_start(load.client, &call, bytes, order_write(&order, bytes), NULL);
	if (rc)
		fail(rc);
}

static int define_all(void)
{
	for (int i = 0; i < IN_FLIGHT && load.called < parameters; i++)
		define_next();
	return turn_until(&load.defined, parameters, "parameters that are defined");
}

/* Watchers ------------------------------------------------------------------------------------- */

static void on_port(const struct plx_rpc_result *result, void *arg)
{
	if (result->status != PLX_RPC_OK || result->length != sizeof(uint16_t)) {
		fail(plx_fail(EIO, "it does not tell where it publishes"));
		return;
	}
	load.port = get16(result->data);
	load.ports = 1;
}

static void on_subscribed(struct netio_publisher *publisher,
			  const struct netio_subscription *subscription)
{
	load.subscribed++;
}

static void on_lost(struct netio_publisher *publisher,
		    const struct netio_subscription *subscription, const char *why)
{
	fail(plx_fail(EIO, "a watcher lost its connection: %s", why));
}

/* Conflated messages still deliver the newest value. */
static void on_gap(struct netio_publisher *publisher, const struct netio_gap *gap)
{
	load.gaps++;
	if (gap->reasons != NETIO_GAP_BIT(NETIO_GAP_CONFLATED))
		fail(plx_fail(EIO, "a watcher missed changes"));
}

static void on_message(struct netio_subscribe_socket *socket, const struct netio_msg *message)
{
	struct watcher *watcher = socket->data;
	struct param param;
	const char *wrong = record_read(message->data, message->len, &param);
	uint64_t i = wrong ? parameters : index_of(&param);

	if (i >= parameters) {
		fail(plx_fail(EPROTO, "a change that was not made: %s", wrong ? wrong : "a name"));
		return;
	}
	load.messages++;
	if (watcher->seen[i] < param.revision)
		watcher->seen[i] = param.revision;
	plx_hist_record(&load.watch_ns, plx_tsc_to_ns(plx_tsc() - (uint64_t)param.value.integer));
}

static int watcher_begin(struct watcher *watcher, const char *host)
{
	static const struct netio_subscription everything = {
		.tag = 1, .last = UINT64_MAX, .policy = NETIO_POLICY_CONFLATE};
	int rc = netio_subscribe_socket_init(&load.netio.evloop, &watcher->socket, NULL);

	if (rc)
		return rc;
	watcher->socket.data = watcher;
	watcher->socket.cb_subscribed = on_subscribed;
	watcher->socket.cb_subscription_lost = on_lost;
	watcher->socket.cb_gap = on_gap;
	watcher->socket.cb_msg_received = on_message;
	watcher->seen = calloc(parameters, sizeof(*watcher->seen));
	if (!watcher->seen)
		return plx_fail(ENOMEM, "out of memory");
	memcpy(watcher->seen, load.acknowledged, parameters * sizeof(*watcher->seen));
	return netio_subscribe_to(&watcher->socket, host, load.port, &everything);
}

static int watch_all(void)
{
	struct plx_rpc_call call = {.method = PARAMS_WATCH, .done = on_port};
	char host[PLX_ADDRESS_MAX];
	unsigned of_service;
	int rc = plx_rpc_call_start(load.client, &call, NULL, 0, NULL);

	rc = rc ? rc : turn_until(&load.ports, 1, "the port where it publishes");
	rc = rc ? rc : netio_init(&load.netio);
	rc = rc ? rc : plx_address_split("--connect", service, host, &of_service);
	for (uint64_t i = 0; rc == 0 && i < watchers; i++)
		rc = watcher_begin(&load.watchers[i], host);
	return rc ? rc : turn_until(&load.subscribed, watchers, "watchers that have subscribed");
}

/* Return: how many last changes the watchers have not seen, up to max. */
static uint64_t count_missed(uint64_t max)
{
	uint64_t missed = 0;

	for (uint64_t i = 0; i < watchers; i++) {
		for (uint64_t j = 0; j < parameters && missed < max; j++)
			missed += load.watchers[i].seen[j] < load.acknowledged[j];
	}
	return missed;
}

/* Sets ----------------------------------------------------------------------------------------- */

struct set {
	struct set *next_free;
	uint64_t due_tsc;
	uint32_t index;
};

static struct set *free_sets;

static void on_set(const struct plx_rpc_result *result, void *arg)
{
	struct set *set = arg;

	load.open--;
	if (result->status == PLX_RPC_OK) {
		uint64_t revision = get64(result->data);

		plx_hist_record(&load.set_ns, plx_tsc_to_ns(plx_tsc() - set->due_tsc));
		if (load.acknowledged[set->index] < revision)
			load.acknowledged[set->index] = revision;
	} else {
		load.refused++;
	}
	set->next_free = free_sets;
	free_sets = set;
}

static int set_one(void)
{
	uint8_t bytes[WIRE_ORDER_MAX];
	char name[NAME_BYTES + 1];
	struct set *set = free_sets;
	struct order order;
	struct plx_rpc_call call = {
		.method = PARAMS_SET, .deadline_ns = DEADLINE_NS, .done = on_set, .arg = set};
	int rc;

	set->due_tsc = (uint64_t)load.schedule.next_tsc;
	/* Knuth's multiplicative hash: spreads over all parameters, and repeats each. */
	set->index = (uint32_t)(((load.called + seed) * UINT64_C(2654435761)) % parameters);
	name_of(set->index, name);
	order = order_of(name, (int64_t)set->due_tsc);
	order.flags = durable ? WIRE_DURABLE : 0;
	rc = plx_rpc_call_start(load.client, &call, bytes, order_write(&order, bytes), NULL);
	if (rc)
		return rc;
	free_sets = set->next_free;
	load.called++;
	load.open++;
	plx_schedule_advance(&load.schedule);
	return 0;
}

static int make_sets(void)
{
	uint64_t stop_tsc = plx_tsc() +
			    (uint64_t)((double)duration_ns / 1e9 * plx_clock_info_read()->hz);

	load.called = 0;
	plx_schedule_init(&load.schedule, PLX_ARRIVAL_POISSON, (double)rate, seed,
			  plx_clock_info_read()->hz);
	load.schedule.next_tsc = (double)plx_tsc();
	while ((uint64_t)load.schedule.next_tsc < stop_tsc && load.rc == 0) {
		if (plx_stop_signal())
			return plx_fail(EINTR, "interrupted");
		for (int i = 0;
		     i < BURST_MAX && free_sets && load.schedule.next_tsc <= (double)plx_tsc();
		     i++) {
			int rc = set_one();

			if (rc)
				return rc;
		}
		plx_loop_turn();
	}
	return load.rc;
}

/* The run -------------------------------------------------------------------------------------- */

static json_int_t percentile(const struct plx_hist *hist, double percent)
{
	return (json_int_t)plx_hist_quantile(hist, percent / 100);
}

/* Includes plx-call's names for common figures. Return: 0; -EIO something was lost; -errno. */
static int report(uint64_t elapsed_ns)
{
	uint64_t missed = count_missed(UINT64_MAX);
	json_t *all = json_pack(
		"{s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:I, "
		"s:I, s:I, s:I, s:I}",
		"provider", plx_rpc_client_provider(load.client), "size_bytes",
		(json_int_t)(WIRE_ORDER_BYTES + 48 + NAME_BYTES), "count", (json_int_t)load.called,
		"lost", (json_int_t)(load.refused + missed), "rate", (double)rate, "elapsed_ns",
		(json_int_t)elapsed_ns, "p50_ns", percentile(&load.set_ns, 50), "p90_ns",
		percentile(&load.set_ns, 90), "p99_ns", percentile(&load.set_ns, 99), "max_ns",
		(json_int_t)load.set_ns.max, "parameters", (json_int_t)parameters, "watchers",
		(json_int_t)watchers, "durable", (int)durable, "refused", (json_int_t)load.refused,
		"missed", (json_int_t)missed, "messages", (json_int_t)load.messages, "conflated",
		(json_int_t)load.gaps, "watch_p50_ns", percentile(&load.watch_ns, 50),
		"watch_p99_ns", percentile(&load.watch_ns, 99), "watch_max_ns",
		(json_int_t)load.watch_ns.max);
	char *text = all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(8)) : NULL;
	int rc = text ? 0 : plx_fail(ENOMEM, "out of memory");

	if (text)
		plx_app_say("%s", text);
	if (rc == 0 && out && json_dump_file(all, out, JSON_REAL_PRECISION(8)) != 0)
		rc = plx_fail(EIO, "%s: it cannot be written", out);
	free(text);
	json_decref(all);
	if (load.refused || missed)
		rc = plx_fail(EIO, "%" PRIu64 " sets were refused, %" PRIu64 " changes missed",
			      load.refused, missed);
	return rc;
}

/* Watchers that still miss something at the end are counted. */
static int wait_for_watchers(void)
{
	uint64_t until_ns = plx_now_ns() + DEADLINE_NS;

	while (load.rc == 0 && count_missed(1) && plx_now_ns() < until_ns) {
		if (plx_stop_signal())
			return plx_fail(EINTR, "interrupted");
		plx_loop_turn();
	}
	return 0;
}

static int load_it(void)
{
	const char *addresses[] = {service, NULL};
	uint64_t began_ns, elapsed_ns;
	int rc = plx_rpc_client_create(addresses, NULL, &load.client);

	rc = rc ? rc : define_all();
	rc = rc ? rc : watch_all();
	began_ns = plx_now_ns();
	rc = rc ? rc : make_sets();
	if (rc)
		return rc;
	elapsed_ns = plx_now_ns() - began_ns;
	rc = turn_until(&load.open, 0, "sets that are answered");
	rc = rc ? rc : wait_for_watchers();
	return rc ? rc : report(elapsed_ns);
}

static void clean_up(struct set *sets)
{
	for (uint64_t i = 0; i < watchers; i++) {
		if (load.watchers && load.watchers[i].seen) {
			netio_subscribe_socket_fini(&load.watchers[i].socket);
			free(load.watchers[i].seen);
		}
	}
	if (load.netio.evloop.ready)
		netio_fini(&load.netio);
	plx_rpc_client_destroy(load.client);
	free(load.watchers);
	free(load.acknowledged);
	free(sets);
	plx_hist_fini(&load.set_ns);
	plx_hist_fini(&load.watch_ns);
}

static int run(void)
{
	uint64_t count = 1 << 16;
	struct set *sets = calloc(count, sizeof(*sets));
	int rc = -ENOMEM;

	load.watchers = calloc(watchers + 1, sizeof(*load.watchers));
	load.acknowledged = calloc(parameters, sizeof(*load.acknowledged));
	if (sets && load.watchers && load.acknowledged &&
	    plx_hist_init(&load.set_ns, HIST_NS_MAX, 3) == 0 &&
	    plx_hist_init(&load.watch_ns, HIST_NS_MAX, 3) == 0) {
		for (uint64_t i = 0; i < count; i++) {
			sets[i].next_free = free_sets;
			free_sets = &sets[i];
		}
		rc = load_it();
	}
	clean_up(sets);
	return rc;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	status = run() == 0 ? 0 : plx_app_fail(&app);
	return plx_app_finish(&app, status);
}
