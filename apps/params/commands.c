/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands: each calls a service and shows the reply. */
#include "params.h"

#include "bytes.h"
#include "wire.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

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

/* Send the parameter's new state to set or define; of one to remove or acknowledge, the name. */
static int change(const struct params_conf *conf, uint32_t method, const char *name)
{
	uint8_t bytes[WIRE_ORDER_MAX];
	struct order order = {
		.flags = (conf->fast ? 0 : WIRE_DURABLE) | (conf->expect_given ? WIRE_EXPECT : 0),
		.expected = conf->expect,
		.param = {.name = name,
			  .name_length = (uint32_t)strlen(name),
			  .kind = conf->new_kind,
			  .value = conf->new_value},
	};
	const struct plx_rpc_result *reply;
	int rc = client_call(name, method, true, bytes, order_write(&order, bytes), &reply);

	if (rc)
		return rc;
	if (reply->length != sizeof(uint64_t))
		return plx_fail(EPROTO, "%s: the reply is no revision", name);
	plx_app_say("revision %" PRIu64, get64(reply->data));
	return 0;
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
		return change(conf, PARAMS_SET, conf->set);
	if (conf->define)
		return change(conf, PARAMS_DEFINE, conf->define);
	if (conf->remove)
		return change(conf, PARAMS_REMOVE, conf->remove);
	if (conf->watch)
		return watch(conf);
	if (conf->ack)
		return change(conf, PARAMS_ACK, conf->ack);
	return list(conf);
}

int params_command(const struct params_conf *conf)
{
	int rc = client_begin(conf);

	rc = rc ? rc : run(conf);
	client_end();
	return rc;
}
