/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands: each calls a service and shows the reply. */
#include "params.h"

#include "bytes.h"
#include "wire.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int show_revision(const char *what, uint32_t method, const void *data, size_t length)
{
	const struct plx_rpc_result *reply;
	int rc = client_call(what, method, true, data, length, &reply);

	if (rc)
		return rc;
	if (reply->length != sizeof(uint64_t))
		return plx_fail(EPROTO, "%s: the reply is no revision", what);
	plx_app_say("revision %" PRIu64, get64(reply->data));
	return 0;
}

static int get(const struct params_conf *conf)
{
	const struct plx_rpc_result *reply;
	struct param param;
	const char *wrong;
	int rc = client_call(conf->get, PARAMS_GET, false, conf->get, strlen(conf->get), &reply);

	if (rc)
		return rc;
	wrong = record_read(reply->data, reply->length, &param);
	return wrong ? plx_fail(EPROTO, "%s: the reply: %s", conf->get, wrong) : show_param(&param);
}

static uint8_t durable(const struct params_conf *conf)
{
	return conf->fast ? 0 : WIRE_DURABLE;
}

static int set(const struct params_conf *conf)
{
	uint8_t order[WIRE_SET_BYTES + PARAM_NAME_MAX + PARAM_TEXT_MAX];
	struct set_order what = {
		.flags = durable(conf) | (conf->expect_given ? WIRE_EXPECT : 0),
		.expected = conf->expect,
		.name = conf->set,
		.name_length = (uint32_t)strlen(conf->set),
		.value = conf->new_value,
	};

	return show_revision(conf->set, PARAMS_SET, order, set_write(&what, order));
}

static int define(const struct params_conf *conf)
{
	uint8_t order[WIRE_ORDER_BYTES + WIRE_RECORD_MAX] = {durable(conf)};
	struct param param = {
		.name = conf->define,
		.name_length = (uint32_t)strlen(conf->define),
		.kind = conf->new_kind,
		.value = conf->new_value,
	};

	return show_revision(conf->define, PARAMS_DEFINE, order,
			     WIRE_ORDER_BYTES + record_write(&param, order + WIRE_ORDER_BYTES));
}

static int order_by_name(const struct params_conf *conf, uint32_t method, const char *name)
{
	uint8_t order[WIRE_ORDER_BYTES + PARAM_NAME_MAX] = {durable(conf)};
	size_t length = strlen(name);

	memcpy(order + WIRE_ORDER_BYTES, name, length);
	return show_revision(name, method, order, WIRE_ORDER_BYTES + length);
}

static int list(const struct params_conf *conf)
{
	struct snapshot snapshot;
	int rc = snapshot_init(&snapshot, NULL);

	rc = rc ? rc : client_list(&snapshot, conf->alarms ? WIRE_ALARMS : 0, false);
	rc = rc ? rc : show_list(snapshot.now);
	snapshot_fini(&snapshot);
	return rc;
}

static int run(const struct params_conf *conf)
{
	if (conf->get)
		return get(conf);
	if (conf->set)
		return set(conf);
	if (conf->define)
		return define(conf);
	if (conf->remove)
		return order_by_name(conf, PARAMS_REMOVE, conf->remove);
	if (conf->watch)
		return watch(conf);
	if (conf->ack)
		return order_by_name(conf, PARAMS_ACK, conf->ack);
	return list(conf);
}

int params_command(const struct params_conf *conf)
{
	int rc = client_begin(conf);

	rc = rc ? rc : run(conf);
	client_end();
	return rc;
}
