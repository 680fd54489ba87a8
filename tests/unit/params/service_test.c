/* SPDX-License-Identifier: BSD-3-Clause */
/* The service in this process, on a simulated disk: what each method changes, and refuses. */
#include "disk.h"
#include "int_param.h"

#include "bytes.h"
#include "params.h"
#include "plx_eal.h"
#include "wire.h"

#include <stdio.h>

static struct params_conf conf = {
	.serve = disk_path, .listen = "127.0.0.1:0", .deadline_ns = 20 * PLX_NS_PER_S};
static const struct plx_rpc_result *reply;
static struct param got; /* by get; points into the reply */

static void begin(void)
{
	assert_works(serve_begin(&conf));
	conf.service = serve_address();
	assert_int_equal(client_begin(&conf), 0);
}

static void end(void)
{
	client_end();
	assert_works(serve_end(&conf));
}

static int start(void **state)
{
	disk_clear();
	begin();
	return 0;
}

static int stop(void **state)
{
	end();
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

/* The revision of a change, or the code of its error, negative. */
static int64_t result_of(int rc)
{
	if (rc)
		return -(int64_t)reply->code;
	assert_int_equal(reply->length, sizeof(uint64_t));
	return (int64_t)get64(reply->data);
}

static int64_t order(uint32_t method, const struct param *param, uint8_t flags, uint64_t expected)
{
	uint8_t bytes[WIRE_ORDER_MAX];
	struct order order = {flags, expected, *param};

	return result_of(
		client_call(param->name, method, true, bytes, order_write(&order, bytes), &reply));
}

static struct param text_param(const char *name, const char *value)
{
	struct param param = int_param(name, 0, 0, 0);

	param.kind.type = PARAM_TEXT;
	param.value = (struct param_value){PARAM_TEXT, .text = {value, (uint32_t)strlen(value)}};
	return param;
}

static int64_t set(const char *name, const char *value, uint64_t expected)
{
	struct param param = text_param(name, value);

	return order(PARAMS_SET, &param, expected ? WIRE_EXPECT : WIRE_DURABLE, expected);
}

static int64_t define(const struct param *param, bool durable)
{
	return order(PARAMS_DEFINE, param, durable ? WIRE_DURABLE : 0, 0);
}

static int64_t define_int(const char *name, int64_t value)
{
	struct param param = int_param(name, 0, 0, value);

	return define(&param, false);
}

static int64_t remove_it(const char *name)
{
	struct param param = int_param(name, 0, 0, 0);

	return order(PARAMS_REMOVE, &param, WIRE_DURABLE, 0);
}

static int64_t acknowledge(const char *name, uint8_t flags)
{
	struct param param = int_param(name, 0, 0, 0);

	return order(PARAMS_ACK, &param, flags, 0);
}

static const struct param *get(const char *name)
{
	if (client_call(name, PARAMS_GET, false, name, strlen(name), &reply) != 0)
		return NULL;
	assert_null(record_read(reply->data, reply->length, &got));
	return &got;
}

TEST(changes_are_there_after_a_restart)
{
	assert_int_equal(define_int("a", 1), 1);
	assert_int_equal(define_int("b", 1), 2);
	assert_int_equal(set("a", "5", 0), 3);
	assert_int_equal(remove_it("b"), 4);
	end();
	begin();
	assert_int_equal(get("a")->value.integer, 5);
	assert_int_equal(got.revision, 3);
	assert_int_equal(got.id, 1);
	assert_null(get("b"));
	assert_int_equal(define_int("b", 2), 5);
	assert_int_equal(get("b")->id, 3); /* no id is used twice */
}

TEST(a_set_is_refused_with_the_reason)
{
	static const struct {
		const char *name, *value;
		uint64_t expected;
		int64_t result;
		const char *error;
	} rows[] = {
		{"nope", "1", 0, -PARAMS_NO_SUCH, "nope: there is no such parameter"},
		{"a", "11", 0, -PARAMS_BEYOND, "a: 11 is beyond 0 to 10 mm"},
		{"a", "yes", 0, -PARAMS_BAD, "a: value 'yes': not an int; give a whole number"},
		{"a", "1", 7, -PARAMS_CHANGED, "it has revision 1, not 7; --get shows it"},
		{"a", "\x9b", 0, -PARAMS_BAD, "value '\\x9b': not an int"},
		{"a", "2", 1, 2, NULL},
		{"a", "3", 1, -PARAMS_CHANGED, "it has revision 2, not 1"},
	};
	struct param param = int_param("a", 0, 0, 1);

	param.kind.has[LIMIT_MIN] = param.kind.has[LIMIT_MAX] = true;
	param.kind.limit[LIMIT_MIN] = (struct param_value){PARAM_INT, .integer = 0};
	param.kind.limit[LIMIT_MAX] = (struct param_value){PARAM_INT, .integer = 10};
	snprintf(param.kind.unit, sizeof(param.kind.unit), "mm");
	assert_int_equal(define(&param, true), 1);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_int_equal(set(rows[i].name, rows[i].value, rows[i].expected),
				 rows[i].result);
		if (rows[i].error)
			assert_error_has(rows[i].error);
	}
	param.value.integer = 11;
	assert_int_equal(define(&param, true), -PARAMS_BEYOND);
	assert_int_equal(get("a")->value.integer, 2);
}

static void check_alarm(const char *name, enum alarm_state state)
{
	assert_int_equal(get(name)->alarm.state, state);
	assert_int_equal(got.alarm.level, state == ALARM_NONE ? 0 : LEVEL_ALARM);
}

TEST(alarms_follow_the_value_and_are_acknowledged)
{
	struct param param = int_param("a", 0, 0, 9);

	param.kind.latch = true;
	param.kind.has[LIMIT_ALARM_HIGH] = true;
	param.kind.limit[LIMIT_ALARM_HIGH] = (struct param_value){PARAM_INT, .integer = 5};
	define(&param, true);
	check_alarm("a", ALARM_ACTIVE);
	assert_int_equal(acknowledge("a", WIRE_DURABLE), 2);
	check_alarm("a", ALARM_ACKNOWLEDGED);
	assert_int_equal(acknowledge("a", 0), 2); /* there is nothing to acknowledge */
	define(&param, true);                     /* which forgets the old alarm */
	check_alarm("a", ALARM_ACTIVE);
	set("a", "5", 0);
	check_alarm("a", ALARM_LATCHED);
	end();
	begin();
	check_alarm("a", ALARM_LATCHED);
	assert_int_equal(acknowledge("a", WIRE_DURABLE), 5);
	check_alarm("a", ALARM_NONE);
	assert_int_equal(acknowledge("nope", 0), -PARAMS_NO_SUCH);
}

/* Return: how many are listed. */
static unsigned list(const char *below, uint8_t flags)
{
	struct snapshot snapshot;
	unsigned count;

	conf.below = below;
	assert_int_equal(snapshot_init(&snapshot, NULL), 0);
	assert_works(client_list(&snapshot, flags, false));
	count = store_count(snapshot.now);
	snapshot_fini(&snapshot);
	return count;
}

TEST(lists_have_all_parameters_below_a_name)
{
	struct param alarm = int_param("hv/alarm", 0, 0, 9);
	char name[16];

	for (unsigned i = 0; i < 1200; i++) {
		snprintf(name, sizeof(name), "hv/%u", i);
		define_int(name, i);
	}
	alarm.kind.has[LIMIT_ALARM_HIGH] = true;
	alarm.kind.limit[LIMIT_ALARM_HIGH] = (struct param_value){PARAM_INT, .integer = 5};
	define(&alarm, false);
	define_int("hv", 1);
	define_int("hvx", 1);
	assert_int_equal(list(NULL, 0), 1203);
	assert_int_equal(list("hv", 0), 1202);
	assert_int_equal(list("hv/7", 0), 1);
	assert_int_equal(list("hv", WIRE_ALARMS), 1);
	assert_int_equal(list("h", 0), 0);
}

static int up(void **state)
{
	return disk_init(state) || plx_eal_init(&(struct plx_eal_conf){.huge = PLX_HUGE_NONE});
}

PLX_FIXTURE(down, plx_eal_fini())

PLX_TEST_MAIN_WITH(up, down)
