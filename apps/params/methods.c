/* SPDX-License-Identifier: BSD-3-Clause */
/* The service's methods: see wire.h. */
#include "serve.h"

#include "wire.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LIST_LOOKS  500 /* parameters scanned per call of list, which delays all other calls */
#define RETRY_NS    PLX_NS_PER_MS
#define MAY_FAIL(x) ((void)(x)) /* the library tells the client */

static struct store *store;
static struct journal *journal;
static uint8_t page_bytes[WIRE_PAGE_MAX];

static void fail_with(struct plx_rpc_request *request, enum params_error code, const char *why)
{
	MAY_FAIL(plx_rpc_reply_error(request, code, why, strlen(why)));
}

static void no_such(struct plx_rpc_request *request)
{
	fail_with(request, PARAMS_NO_SUCH, "there is no such parameter");
}

/* Changes ----------------------------------------------------------------------------------------
 */

static void reply_revision(struct plx_rpc_request *request, uint64_t revision)
{
	uint64_t little = htole64(revision);

	MAY_FAIL(plx_rpc_reply(request, &little, sizeof(little)));
}

/* For a change that was not made. */
static void refuse_without_memory(struct plx_rpc_request *request)
{
	MAY_FAIL(plx_rpc_refuse(request, PLX_RPC_OVERLOADED, RETRY_NS));
}

/* Return: whether a change may be made: only if it can also be written. */
static bool may_change(struct plx_rpc_request *request)
{
	int rc = journal_reserve(journal);

	if (rc == -EAGAIN)
		MAY_FAIL(plx_rpc_refuse(request, PLX_RPC_BUSY, RETRY_NS));
	else if (rc)
		refuse_without_memory(request);
	return rc == 0;
}

void methods_answer(void *request, uint64_t revision, bool is_written)
{
	if (is_written)
		reply_revision(request, revision);
	else
		fail_with(request, PARAMS_NOT_WRITTEN, "it was changed, and is not on the disk");
}

static void write_down(struct plx_rpc_request *request, const struct param *param, bool durable)
{
	journal_put(journal, param, durable ? request : NULL);
	if (!durable)
		reply_revision(request, param->revision);
}

/* Make the change, which gets its revision here. A removed one keeps its name until the end. */
static void change(struct plx_rpc_request *request, struct param *param, bool durable)
{
	param->revision = journal_next_revision(journal);
	if (!param->removed && !store_put(store, param)) {
		refuse_without_memory(request);
		return;
	}
	publish_change(param);
	write_down(request, param, durable);
	if (param->removed)
		store_remove(store, store_find(store, param->name, param->name_length));
}

/* Methods ----------------------------------------------------------------------------------------
 */

static void on_get(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	const struct param *param = store_find(store, data, length);
	uint8_t record[WIRE_RECORD_MAX];

	if (param)
		MAY_FAIL(plx_rpc_reply(request, record, record_write(param, record)));
	else
		no_such(request);
}

/* Read a value of the parameter's type. text: gets a NUL-terminated copy of a value sent as text.
 * Return: whether it is valid. */
static bool read_value(const struct set_order *order, enum param_type type,
		       char text[PARAM_TEXT_MAX + 1], struct param_value *out)
{
	*out = order->value;
	if (order->is_typed)
		return type == order->value.type ||
		       plx_fail(EINVAL, "the parameter is %s %s", type == PARAM_INT ? "an" : "a",
				param_types[type - 1]) == 0;
	memcpy(text, order->value.text.bytes, order->value.text.length);
	text[order->value.text.length] = '\0';
	return param_value_parse("value", type, text, out) == 0;
}

/* Give the parameter its value, and the alarm that follows from it. */
static void set_value(struct plx_rpc_request *request, struct param *next, bool durable)
{
	if (param_value_beyond(&next->kind, &next->value) != 0) {
		fail_with(request, PARAMS_BEYOND, plx_error());
		return;
	}
	if (!may_change(request))
		return;
	if (next->id == 0)
		next->id = journal_next_id(journal);
	next->alarm = param_alarm_next(&next->kind, next->alarm, &next->value, param_now_ns());
	change(request, next, durable);
}

static void on_set(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	struct set_order order;
	char text[PARAM_TEXT_MAX + 1];
	const char *wrong = set_read(data, length, &order);
	const struct param *param;
	struct param next;

	if (wrong) {
		fail_with(request, PARAMS_BAD, wrong);
		return;
	}
	param = store_find(store, order.name, order.name_length);
	if (!param) {
		no_such(request);
		return;
	}
	if (order.flags & WIRE_EXPECT && order.expected != param->revision) {
		plx_fail(ESTALE, "it has revision %" PRIu64 ", not %" PRIu64 "; --get shows it",
			 param->revision, order.expected);
		fail_with(request, PARAMS_CHANGED, plx_error());
		return;
	}
	next = *param;
	if (!read_value(&order, param->kind.type, text, &next.value)) {
		fail_with(request, PARAMS_BAD, plx_error());
		return;
	}
	set_value(request, &next, order.flags & WIRE_DURABLE);
}

/* The old alarm, if any, was for other limits. */
static void on_define(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	struct order order;
	const struct param *param;
	struct param asked;
	const char *wrong = order_read(data, length, &order);

	wrong = wrong ? wrong : define_read(&order, &asked);
	if (wrong) {
		fail_with(request, PARAMS_BAD, wrong);
		return;
	}
	param = store_find(store, asked.name, asked.name_length);
	asked.id = param ? param->id : 0;
	asked.alarm = (struct param_alarm){.since_ns = param_now_ns()};
	set_value(request, &asked, order.is_durable);
}

/* Return: the parameter that the order names; NULL: the request was answered. */
static const struct param *named(struct plx_rpc_request *request, const void *data, uint32_t length,
				 bool *durable_out)
{
	struct order order;
	const char *wrong = order_read(data, length, &order);
	const struct param *param;

	if (wrong) {
		fail_with(request, PARAMS_BAD, wrong);
		return NULL;
	}
	*durable_out = order.is_durable;
	param = store_find(store, (const char *)order.rest, order.length);
	if (!param)
		no_such(request);
	return param && may_change(request) ? param : NULL;
}

static void on_remove(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	bool durable;
	const struct param *param = named(request, data, length, &durable);
	struct param last;

	if (!param)
		return;
	last = *param;
	last.removed = true;
	change(request, &last, durable);
}

static void on_ack(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	bool durable;
	const struct param *param = named(request, data, length, &durable);
	struct param next;

	if (!param)
		return;
	next = *param;
	next.alarm = param_alarm_acknowledged(param->alarm, param_now_ns());
	/* If nothing changes, nothing is published; but the state may not be on the disk yet. */
	if (next.alarm.state != param->alarm.state)
		change(request, &next, durable);
	else
		write_down(request, &next, durable);
}

/* The parameter if it is below the prefix; NULL: the end of the prefix. */
static const struct param *in_reach(const struct param *param, const struct list_order *order)
{
	return param && param->name_length >= order->prefix_length &&
			       memcmp(param->name, order->prefix, order->prefix_length) == 0
		     ? param
		     : NULL;
}

static bool is_listed(const struct param *param, const struct list_order *order)
{
	return param_name_is_below(param->name, param->name_length, order->prefix,
				   order->prefix_length) &&
	       (!(order->flags & WIRE_ALARMS) || param->alarm.state != ALARM_NONE);
}

/* Return: the last parameter scanned, if there are more; else NULL. */
static const struct param *fill_page(struct page *page, const struct list_order *order)
{
	const struct param *last = NULL, *param;
	int looks = 0;

	param = order->after_length
		      ? store_first(store, order->after, order->after_length, true)
		      : store_first(store, order->prefix, order->prefix_length, false);
	for (param = in_reach(param, order); param; param = in_reach(store_next(param), order)) {
		if (++looks > LIST_LOOKS || (is_listed(param, order) && !page_add(page, param)))
			return last;
		last = param;
	}
	return NULL;
}

static void on_list(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	struct list_order order;
	const char *wrong = list_read(data, length, &order);
	struct page page;
	struct iovec whole;

	if (wrong) {
		fail_with(request, PARAMS_BAD, wrong);
		return;
	}
	page_begin(&page, page_bytes);
	whole = page_end(&page, fill_page(&page, &order));
	MAY_FAIL(plx_rpc_reply(request, whole.iov_base, whole.iov_len));
}

static void on_watch(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	uint16_t port = htole16((uint16_t)publish_port());

	MAY_FAIL(plx_rpc_reply(request, &port, sizeof(port)));
}

/* The table
 * -------------------------------------------------------------------------------------- */

static const struct plx_rpc_method methods[] = {
	{.id = PARAMS_GET, .name = "params.get", .handler = on_get, .request_max = PARAM_NAME_MAX},
	{.id = PARAMS_SET, .name = "params.set", .handler = on_set, .request_max = 2048},
	{.id = PARAMS_DEFINE, .name = "params.define", .handler = on_define, .request_max = 2048},
	{.id = PARAMS_REMOVE, .name = "params.remove", .handler = on_remove, .request_max = 2048},
	{.id = PARAMS_ACK, .name = "params.ack", .handler = on_ack, .request_max = 2048},
	{.id = PARAMS_LIST, .name = "params.list", .handler = on_list, .request_max = 2048},
	{.id = PARAMS_WATCH, .name = "params.watch", .handler = on_watch, .request_max = 16},
};

int methods_add(struct plx_rpc_service *service, struct store *its_store,
		struct journal *its_journal)
{
	int rc = 0;

	store = its_store;
	journal = its_journal;
	for (unsigned i = 0; rc == 0 && i < PLX_ARRAY_LEN(methods); i++)
		rc = plx_rpc_service_add(service, &methods[i]);
	return rc;
}
