/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of plx-call. */
#include "call.h"

#include <ctype.h>

static struct call_conf conf = {
	.deadline_ns = PLX_RPC_DEADLINE_NS_DEFAULT,
	.in_flight = 1,
	.format = CALL_TEXT,
	.run = {.seed = 1, .name = "plx-call"},
};

/* In the order of enum call_format. */
static const char *const formats[] = {"raw", "text", "hex", "json", NULL};

static const struct plx_option options[] = {
	PLX_LIST("connect", "ADDR", &conf.services,
		 "host:port of the service; if repeated, calls go to the one with the fewest open "
		 "calls"),
	PLX_FLAG("list", &conf.list, "show the service's methods"),
	PLX_TEXT("method", "NAME", &conf.method_text, "the method: a name or a number"),
	PLX_UINT("method-version", "N", &conf.version, 0, UINT16_MAX,
		 "version of the method (default: the newest with that name; for a number 0)",
		 .given = &conf.version_given),
	PLX_TEXT("data", "TEXT", &conf.data, "the request: these bytes (default: none)",
		 .may_be_empty = true),
	PLX_TEXT("hex", "HEX", &conf.hex, "the request: \"00 ff 17\""),
	PLX_TEXT("data-json", "JSON", &conf.json,
		 "the request: JSON, checked, and sent as written"),
	PLX_TEXT("file", "PATH", &conf.file, "the request: that file; \"-\": standard input"),
	PLX_SIZE("size", "SIZE", &conf.size_bytes, 0, PLX_RPC_PAYLOAD_MAX,
		 "the request: SIZE zeros"),
	PLX_TIME("deadline", "TIME", &conf.deadline_ns, 1, 0,
		 "how long to wait for a reply (default 1s)"),
	PLX_CHOICE("format", "HOW", &conf.format, formats,
		   "show the reply as text, hex, json or raw (default text)"),
	PLX_UINT("in-flight", "N", &conf.in_flight, 1, CALL_IN_FLIGHT_MAX,
		 "measure with N calls in flight (default 1)", .given = &conf.in_flight_given),
	PLX_MEASURE_OPTIONS(conf.run, "", "plx-call"),
	PLX_OPTIONS_END,
};

static int check(void)
{
	int requests = !!conf.data + !!conf.hex + !!conf.json + !!conf.file + !!conf.size_bytes;

	if (conf.services.count == 0)
		return plx_fail(EINVAL, "--connect ADDR is missing: host:port of a service");
	for (unsigned i = 0; i < conf.services.count; i++) {
		int rc = plx_address_check("--connect", conf.services.at[i]);

		if (rc)
			return rc;
	}
	if (!conf.method_text && !conf.list)
		return plx_fail(EINVAL, "--method NAME is missing; --list shows what there is");
	if (conf.list && (conf.method_text || requests))
		return plx_fail(EINVAL, "--list shows the methods, --method calls one; give one of "
					"them");
	if (requests > 1)
		return plx_fail(
			EINVAL,
			"--data, --hex, --data-json, --file and --size each are the request; "
			"give one of them");
	if ((conf.hex || conf.json) && call_read_request() != 0)
		return -EINVAL;
	if (conf.method_text && isdigit((unsigned char)conf.method_text[0])) {
		if (plx_parse_uint("--method", conf.method_text, 0, UINT32_MAX, &conf.number) != 0)
			return -EINVAL;
	} else {
		conf.method = conf.method_text;
	}
	return plx_measure_check(&conf.run);
}

/* Measured calls keep their lcore busy. */
static bool is_short(void)
{
	return !conf.run.count && !conf.run.duration_ns;
}

const struct plx_app call_app = {
	.name = "plx-call",
	.summary = "Call a method of a service, or measure it.",
	.usage = "  plx-call [EAL options] -- --connect ADDR [--process] --list\n"
		 "  plx-call [EAL options] -- --connect ADDR --method NAME [--method-version N]\n"
		 "           [--data TEXT | --hex HEX | --data-json JSON | --file PATH | --size "
		 "SIZE]\n"
		 "           [--deadline TIME] [--format HOW]\n"
		 "  plx-call [EAL options] -- --connect ADDR --method NAME [--size SIZE]\n"
		 "           --count N | --duration TIME [--in-flight N]\n"
		 "           [--rate R [--arrival fixed|poisson|burst] [--seed N]]\n"
		 "           [--out DIR [--name NAME]]",
	.examples = "  plx-call --connect 127.0.0.1:7000 --list\n"
		    "  plx-call --connect 127.0.0.1:7000 --method thermometer.read --format hex",
	.more = "man plx-call, or doc/apps/plx-call.md",
	.options = options,
	.check = check,
	.is_short = is_short,
	.eal = &(const struct plx_eal_conf){.idle = "poll"},
};

struct call_conf *const call_asked = &conf;
