/* SPDX-License-Identifier: BSD-3-Clause */
/* Built-in methods of every service, to measure its cost and list its methods while it runs. A rate
 * limit keeps clients that measure from taking over the lcore. */
#include "eal_self_test.h"
#include "rpc_service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES_PER_ONE 256
#define BURST_S       0.01

/* The cost of a record to the process' self-test that is refused or invalid. It serves this many
 * records per allowed answer, and this many per second in any case, so that refused clients get a
 * reply. */
#define RECORDS_PER_ANSWER 2
#define RECORDS_ALWAYS     10000

static double bucket_size(double rate)
{
	return rate * BURST_S > 1.0 ? rate * BURST_S : 1.0;
}

static void refill(struct token_bucket *bucket, double rate)
{
	double room = bucket_size(rate);
	uint64_t now_ns = plx_loop_now_ns();

	bucket->tokens += (double)plx_time_since(bucket->as_of_ns, now_ns) * rate / 1e9;
	bucket->as_of_ns = now_ns;
	if (bucket->tokens > room)
		bucket->tokens = room;
}

/* Return: whether the request, with `bytes` in or out, may be answered; otherwise it was refused. A
 * client above the rate retries when half of the bucket is full: single requests with pauses would
 * measure the lcore's wake-up. */
static bool may_run(struct plx_rpc_request *request, uint32_t bytes)
{
	const struct plx_rpc_service *service = request->local->service;
	struct token_bucket *answers_left = &request->local->answer_tokens;
	double rate = service->attr.self_test_rate;

	if (!service->self_test_remote && !plx_link_is_same_host(request->peer->session.link)) {
		plx_rpc_refuse(request, PLX_RPC_DENIED, 0);
		return false;
	}
	refill(answers_left, rate);
	if (answers_left->tokens <= 0) {
		double wanted = bucket_size(rate) / 2;

		plx_rpc_refuse(request, PLX_RPC_BUSY,
			       (uint64_t)((wanted - answers_left->tokens) / rate * 1e9));
		return false;
	}
	answers_left->tokens -= 1 + (double)bytes / BYTES_PER_ONE; /* a long one is paid later */
	return true;
}

void selftest_charge(struct peer *peer, uint32_t records)
{
	struct token_bucket *records_left = &peer->local->record_tokens;
	double answers = peer->local->service->attr.self_test_rate;
	double rate = RECORDS_PER_ANSWER * answers + RECORDS_ALWAYS;

	refill(records_left, rate);
	records_left->tokens -= records;
	if (records_left->tokens >= 0)
		return;
	peer->paused = true;
	plx_timer_start(&peer->timer, (uint64_t)(-records_left->tokens / rate * 1e9) + 1);
}

/* arg: not NULL: only discard it. */
static void echo(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	if (may_run(request, length))
		plx_rpc_reply(request, data, arg ? 0 : length);
}

static uint8_t generated[PLX_RPC_SELF_TEST_MAX]; /* filled in before main */

static void generate(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	uint32_t wanted;

	if (length != sizeof(wanted)) {
		plx_rpc_reply_error(request, EINVAL, "give 4 bytes", 12);
		return;
	}
	memcpy(&wanted, data, sizeof(wanted));
	wanted = le32toh(wanted);
	if (wanted > PLX_RPC_SELF_TEST_MAX)
		plx_rpc_refuse(request, PLX_RPC_TOO_BIG, 0);
	else if (may_run(request, wanted))
		plx_rpc_reply(request, generated, wanted);
}

#define NAME_BYTES 256 /* of a method or program name, as sent */

/* Write a JSON string: plx_printable leaves only quotes and backslashes to escape. */
static void put_printable(FILE *out, const char *printable)
{
	putc('"', out);
	for (const char *at = printable; *at; at++) {
		if (*at == '"' || *at == '\\')
			putc('\\', out);
		putc(*at, out);
	}
	putc('"', out);
}

static void put_string(FILE *out, const char *text)
{
	char printable[NAME_BYTES];

	put_printable(out, plx_printable(text, printable, sizeof(printable)));
}

/* All of its texts are printable. */
static void put_client(FILE *out, const struct plx_link *link)
{
	const char *const members[][2] = {
		{"address", plx_link_peer(link)},
		{"program", plx_link_peer_program(link)},
		{"provider", plx_link_provider(link)},
		{"choice", plx_link_choice(link)},
	};

	fprintf(out, ",\"client\":{\"pid\":%d", (int)plx_link_peer_pid(link));
	for (unsigned i = 0; i < PLX_ARRAY_LEN(members); i++) {
		fprintf(out, ",\"%s\":", members[i][0]);
		put_printable(out, members[i][1]);
	}
	putc('}', out);
}

/* Written by hand: building jansson objects blocked the lcore for 200 us and more. */
static void put_description(FILE *out, const struct plx_rpc_request *request)
{
	const struct service_local *local = request->local;
	uint64_t uptime_ns = plx_time_since(local->service->created_ns, plx_loop_now_ns());
	struct plx_rpc_method_stats stats;

	fprintf(out, "{\"version\":\"%s\",\"program\":", plx_version());
	put_string(out, program_invocation_short_name);
	fprintf(out, ",\"pid\":%d,\"lcore\":%u,\"uptime_s\":%" PRIu64 ".%06" PRIu64, (int)getpid(),
		local->lcore, uptime_ns / PLX_NS_PER_S, uptime_ns % PLX_NS_PER_S / 1000);
	put_client(out, request->peer->session.link);
	fputs(",\"methods\":[", out);
	for (uint32_t i = 0; plx_rpc_method_stats_read(local->service, i, &stats) == 0; i++) {
		fprintf(out, "%s{\"id\":%u,\"version\":%u,\"name\":", i ? "," : "", stats.id,
			stats.version);
		put_string(out, stats.name);
		fprintf(out,
			",\"requests\":%" PRIu64 ",\"replies\":%" PRIu64 ",\"refused\":%" PRIu64
			",\"slow\":%" PRIu64 ",\"handler_ns\":%" PRIu64 "}",
			stats.requests, stats.replies, stats.refused, stats.slow, stats.handler_ns);
	}
	fputs("]}", out);
}

/* Each method counts as several requests, because its output is long. */
static void describe(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	const struct service_local *local = request->local;
	char *text = NULL;
	size_t text_bytes;
	FILE *out;

	if (!may_run(request, BYTES_PER_ONE * 20 * local->service->method_count))
		return;
	out = open_memstream(&text, &text_bytes);
	if (out)
		put_description(out, request);
	if (out && fclose(out) == 0)
		plx_rpc_reply(request, text, text_bytes);
	else
		plx_rpc_refuse(request, PLX_RPC_OVERLOADED, 0);
	free(text);
}

static const struct plx_rpc_method methods[] = {
	{.id = PLX_RPC_ECHO, .name = "pollux.echo", .handler = echo},
	{.id = PLX_RPC_DISCARD, .name = "pollux.discard", .handler = echo, .arg = ""},
	{.id = PLX_RPC_GENERATE, .name = "pollux.generate", .handler = generate},
	{.id = PLX_RPC_DESCRIBE, .name = "pollux.describe", .handler = describe},
};

int selftest_add(struct plx_rpc_service *service)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(methods); i++) {
		if (method_add(service, &methods[i]) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

/* The process' self-test -------------------------------------------------------------------- */

static struct plx_rpc_service *of_process; /* the main lcore's */
uint32_t selftest_rate = EAL_SELF_TEST_RATE_DEFAULT;
bool selftest_is_remote;

int selftest_start(uint32_t rate, bool remote)
{
	/* Lower limits than a service's, because it is a guest of the program. */
	struct plx_rpc_service_attr attr = {
		.request_max = PLX_RPC_SELF_TEST_MAX,
		.open_max = 256,
		.waiting_max = UINT64_C(4) << 20,
		.turn_max = 16,
		.turn_ns = 20 * PLX_NS_PER_US,
		.clients_max = 16,
		.keys_max = 1024,
		.key_bytes_max = 1,
		.self_test_rate = rate,
	};
	struct plx_link_attr link = {0};
	int rc;

	if (of_process)
		return plx_fail(EALREADY, "the self-test service was started already");
	selftest_rate = rate ?: EAL_SELF_TEST_RATE_DEFAULT;
	selftest_is_remote = remote;
	if (rate == PLX_NONE)
		return 0;
	rc = plx_rpc_service_create(&attr, &of_process);
	if (rc)
		return rc;
	of_process->is_self_test_only = true;
	rc = service_freeze(of_process);
	if (rc) {
		selftest_stop();
		return rc;
	}
	of_process->self_test_remote = remote;
	link.user = (void *)of_process->local[of_process->lcore]->acceptor.number;
	peer_describe_link(of_process, &link);
	plx_fabric_set_self_test(&link, remote);
	return 0;
}

void selftest_stop(void)
{
	plx_fabric_set_self_test(NULL, false);
	plx_rpc_service_destroy(of_process);
	of_process = NULL;
	selftest_rate = EAL_SELF_TEST_RATE_DEFAULT;
	selftest_is_remote = false;
}

static const struct eal_self_test service_of_process = {selftest_start, selftest_stop};

PLX_CONSTRUCTOR static void register_service(void)
{
	for (uint32_t i = 0; i < sizeof(generated); i++)
		generated[i] = (uint8_t)i;
	eal_register_self_test(&service_of_process);
}
