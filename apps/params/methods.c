/* SPDX-License-Identifier: BSD-3-Clause */
/* The service's methods: see wire.h. */
#include "params.h"

#include "wire.h"

#include <inttypes.h>
#include <string.h>

#define LIST_LOOKS  500 /* parameters scanned per call of list, which delays all other calls */
#define RETRY_NS    PLX_NS_PER_MS
#define NO_SUCH     "there is no such parameter"
#define MAY_FAIL(x) ((void)(x)) /* the library tells the client */

static struct store *store;
static struct journal *journal;
static uint8_t page_bytes[WIRE_PAGE_MAX];

static void fail_with(struct plx_rpc_request *request, enum params_error code, const char *why)
{
	MAY_FAIL(plx_rpc_reply_error(request, code, why, strlen(why)));
}

static void on_get(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	const struct param *param = store_find(store, data, length);
	uint8_t record[WIRE_RECORD_MAX];

	if (param)
		MAY_FAIL(plx_rpc_reply(request, record, record_write(param, record)));
	else
		fail_with(request, PARAMS_NO_SUCH, NO_SUCH);
}

/* Changes: edits of a copy of the parameter. Return: 0; an error code, with plx_error --------- */

/* Give the parameter its value, and the alarm that follows from it. */
static int take_value(struct param *next)
{
	if (param_value_beyond(&next->kind, &next->value) != 0)
		return PARAMS_BEYOND;
	next->alarm = param_alarm_next(&next->kind, next->alarm, &next->value, param_now_ns());
	return 0;
}

/* text: gets a NUL-terminated copy of a text to parse. */
static int edit_set(struct param *next, const struct param_value *value,
		    char text[PARAM_TEXT_MAX + 1])
{
	enum param_type type = next->kind.type;

	if (value->type == type) {
		next->value = *value;
	} else if (value->type == PARAM_TEXT) {
		param_value_format(value, text, PARAM_TEXT_MAX + 1);
		if (param_value_parse("value", type, text, &next->value) != 0)
			return PARAMS_BAD;
	} else {
		plx_fail(EINVAL, "the parameter is %s %s", type == PARAM_INT ? "an" : "a",
			 param_types[type - 1]);
		return PARAMS_BAD;
	}
	return take_value(next);
}

/* The old alarm, if any, was for other limits. */
static int edit_define(struct param *next, const struct param *asked)
{
	next->kind = asked->kind;
	next->value = asked->value;
	next->alarm = (struct param_alarm){.since_ns = param_now_ns()};
	return take_value(next);
}

static int edit(enum params_method method, const struct order *order, struct param *next)
{
	char text[PARAM_TEXT_MAX + 1];

	switch (method) {
	case PARAMS_SET:
		return edit_set(next, &order->param.value, text);
	case PARAMS_DEFINE:
		return edit_define(next, &order->param);
	case PARAMS_REMOVE:
		next->removed = true;
		return 0;
	default:
		next->alarm = param_alarm_acknowledged(next->alarm, param_now_ns());
		return 0;
	}
}

static void reply_revision(struct plx_rpc_request *request, uint64_t revision)
{
	uint64_t little = htole64(revision);

	MAY_FAIL(plx_rpc_reply(request, &little, sizeof(little)));
}

void methods_answer(void *request, uint64_t revision, bool is_written)
{
	if (is_written)
		reply_revision(request, revision);
	else
		fail_with(request, PARAMS_NOT_WRITTEN, "it was changed, and is not on the disk");
}

/* The change gets its revision here. A removed parameter keeps its name until the end.
 * Return: as it is now; NULL: out of memory, and nothing changed. */
static const struct param *make(struct param *next)
{
	const struct param *made = next;

	next->revision = journal_next_revision(journal);
	if (!next->removed)
		made = store_put(store, next);
	if (made)
		publish_change(made);
	return made;
}

/* Make a change only if it can also be written. is_news: false: only the disk may lack it. */
static void change(struct plx_rpc_request *request, struct param *next, bool is_news, bool durable)
{
	int rc = journal_reserve(journal, durable);
	const struct param *made = rc == 0 && is_news ? make(next) : next;

	if (rc || !made) {
		MAY_FAIL(plx_rpc_refuse(request, rc == -EAGAIN ? PLX_RPC_BUSY : PLX_RPC_OVERLOADED,
					RETRY_NS));
		return;
	}
	if (is_news || durable)
		journal_put(journal, made, durable ? request : NULL);
	if (!durable)
		reply_revision(request, made->revision);
	if (next->removed)
		store_remove(store, store_find(store, next->name, next->name_length));
}

static int check(enum params_method method, const struct order *order, const struct param *param)
{
	if (!param && method != PARAMS_DEFINE) {
		plx_fail(ENOENT, NO_SUCH);
		return PARAMS_NO_SUCH;
	}
	if (!(order->flags & WIRE_EXPECT) || (param && order->expected == param->revision))
		return 0;
	plx_fail(ESTALE, "it has revision %" PRIu64 ", not %" PRIu64 "; --get shows it",
		 param ? param->revision : 0, order->expected);
	return PARAMS_CHANGED;
}

static void on_change(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	enum params_method method = (enum params_method)(uintptr_t)arg;
	struct order order;
	const char *wrong = order_read(data, length, &order);
	const struct param *param;
	struct param next;
	int code;

	if (wrong) {
		fail_with(request, PARAMS_BAD, wrong);
		return;
	}
	param = store_find(store, order.param.name, order.param.name_length);
	next = param ? *param : order.param;
	next.id = param ? param->id : journal_next_id(journal);
	code = check(method, &order, param);
	code = code ? code : edit(method, &order, &next);
	if (code)
		fail_with(request, code, plx_error());
	else /* there may be nothing to acknowledge */
		change(request, &next,
		       method != PARAMS_ACK || next.alarm.state != param->alarm.state,
		       order.flags & WIRE_DURABLE);
}

/* Lists --------------------------------------------------------------------------------------- */

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
	struct page page = {page_bytes, WIRE_PAGE_BYTES};

	if (wrong) {
		fail_with(request, PARAMS_BAD, wrong);
		return;
	}
	MAY_FAIL(plx_rpc_reply(request, page_bytes, page_end(&page, fill_page(&page, &order))));
}

static void on_watch(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	uint16_t port = htole16((uint16_t)publish_port());

	MAY_FAIL(plx_rpc_reply(request, &port, sizeof(port)));
}

/* The table ----------------------------------------------------------------------------------- */

#define METHOD(name_, id_, handler_) \
	{.name = "params." name_, .id = (id_), .handler = (handler_), .arg = (void *)(id_)}

static const struct plx_rpc_method methods[] = {
	METHOD("get", PARAMS_GET, on_get),          METHOD("set", PARAMS_SET, on_change),
	METHOD("define", PARAMS_DEFINE, on_change), METHOD("remove", PARAMS_REMOVE, on_change),
	METHOD("ack", PARAMS_ACK, on_change),       METHOD("list", PARAMS_LIST, on_list),
	METHOD("watch", PARAMS_WATCH, on_watch),
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
