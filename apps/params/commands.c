/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands: each calls a service and shows the reply. */
#include "params.h"

#include "watch.h"
#include "wire.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct plx_rpc_client *client;

static int show_revision(const char *what, uint32_t method, const void *data, size_t length)
{
	struct answer answer;
	uint64_t revision;
	int rc = params_call(client, what, method, true, data, length, &answer);

	if (rc)
		return rc;
	if (answer.length == sizeof(revision)) {
		memcpy(&revision, answer.data, sizeof(revision));
		plx_app_say("revision %" PRIu64, le64toh(revision));
	} else {
		rc = plx_fail(EPROTO, "%s: the reply is no revision", what);
	}
	answer_let_go(&answer);
	return rc;
}

static int get(const struct params_conf *conf)
{
	struct answer answer;
	struct param param;
	bool removed;
	const char *wrong;
	int rc = params_call(client, conf->get, PARAMS_GET, false, conf->get, strlen(conf->get),
			     &answer);

	if (rc)
		return rc;
	wrong = record_read(answer.data, answer.length, &param, &removed);
	if (wrong)
		rc = plx_fail(EPROTO, "%s: the reply: %s", conf->get, wrong);
	else
		rc = show_param(&param);
	answer_let_go(&answer);
	return rc;
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
			     WIRE_ORDER_BYTES +
				     record_write(&param, false, order + WIRE_ORDER_BYTES));
}

static int order_by_name(const struct params_conf *conf, uint32_t method, const char *name)
{
	uint8_t order[WIRE_ORDER_BYTES + PARAM_NAME_MAX] = {durable(conf)};
	size_t length = strlen(name);

	memcpy(order + WIRE_ORDER_BYTES, name, length);
	return show_revision(name, method, order, WIRE_ORDER_BYTES + length);
}

/* Lists ------------------------------------------------------------------------------------------
 */

static int show_page(const struct answer *answer, struct list_place *place, bool *more_out)
{
	struct param param;
	size_t offset;
	const char *wrong = page_read(answer->data, answer->length, place, more_out, &offset);

	if (wrong)
		return plx_fail(EPROTO, "the reply: %s", wrong);
	while (page_next(answer->data, answer->length, &offset, &param, &wrong))
		show_one(&param);
	return wrong ? plx_fail(EPROTO, "the reply: %s", wrong) : 0;
}

static int list(const struct params_conf *conf)
{
	uint8_t order[WIRE_LIST_BYTES + 2 * PARAM_NAME_MAX];
	struct list_place place = {.length = 0};
	bool more = true;
	int rc = 0;

	show_begin();
	while (rc == 0 && more) {
		struct list_order what = {
			.flags = conf->alarms ? WIRE_ALARMS : 0,
			.prefix = conf->below,
			.prefix_length = conf->below ? (uint32_t)strlen(conf->below) : 0,
			.after = place.name,
			.after_length = place.length,
		};
		struct answer answer;

		rc = params_call(client, "--list", PARAMS_LIST, false, order,
				 list_write(&what, order), &answer);
		if (rc == 0) {
			rc = show_page(&answer, &place, &more);
			answer_let_go(&answer);
		}
	}
	return rc ? rc : show_end();
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
		return watch(conf, client);
	if (conf->ack)
		return order_by_name(conf, PARAMS_ACK, conf->ack);
	return list(conf);
}

int params_command(const struct params_conf *conf)
{
	const char *addresses[] = {conf->service, NULL};
	int rc = plx_rpc_client_create(addresses, NULL, &client);

	rc = rc ? rc : run(conf);
	plx_rpc_client_destroy(client);
	return rc;
}
