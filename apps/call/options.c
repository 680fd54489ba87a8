/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of plx-call. */
#include "call.h"

#define CALL_RATE_MAX 100000000

static struct call_conf conf = {
	.deadline_ns = PLX_RPC_DEADLINE_NS_DEFAULT,
	.in_flight = 1,
	.seed = 1,
	.format = CALL_TEXT,
	.name = "plx-call",
};

/* In the order of enum call_format. */
static const char *const formats[] = {"raw", "text", "hex", "json", NULL};

static const struct plx_app_option options[] = {
	{.name = "service",
	 .placeholder = "ADDR",
	 .help = "host:port of the service; several: the one with the least open calls is taken",
	 .kind = PLX_APP_LIST,
	 .value = &conf.services},
	{.name = "process",
	 .help = "call the self-test service of any Pollux process, whatever it listens for",
	 .kind = PLX_APP_FLAG,
	 .value = &conf.process},
	{.name = "list",
	 .help = "show the service's methods",
	 .kind = PLX_APP_FLAG,
	 .value = &conf.list},
	{.name = "method",
	 .placeholder = "NAME",
	 .help = "what to call: a name, or its number",
	 .kind = PLX_APP_STRING,
	 .value = &conf.method},
	{.name = "method-version",
	 .placeholder = "N",
	 .help = "of the method (default: the newest of that name; of a number: 0)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.version,
	 .max = UINT16_MAX,
	 .given = &conf.version_given},
	{.name = "data",
	 .placeholder = "TEXT",
	 .help = "the request: these bytes (default: none)",
	 .kind = PLX_APP_STRING,
	 .value = &conf.data,
	 .may_be_empty = true},
	{.name = "hex",
	 .placeholder = "HEX",
	 .help = "the request: \"00 ff 17\"",
	 .kind = PLX_APP_STRING,
	 .value = &conf.hex},
	{.name = "json",
	 .placeholder = "JSON",
	 .help = "the request: this, checked, as it is written",
	 .kind = PLX_APP_STRING,
	 .value = &conf.json},
	{.name = "file",
	 .placeholder = "PATH",
	 .help = "the request: that file; \"-\": standard input",
	 .kind = PLX_APP_STRING,
	 .value = &conf.file},
	{.name = "size",
	 .placeholder = "SIZE",
	 .help = "the request: so many zeros",
	 .kind = PLX_APP_SIZE,
	 .value = &conf.size_bytes,
	 .max = PLX_RPC_PAYLOAD_MAX},
	{.name = "deadline",
	 .placeholder = "TIME",
	 .help = "how long to wait for a reply (default 1s)",
	 .kind = PLX_APP_DURATION,
	 .value = &conf.deadline_ns,
	 .min = 1},
	{.name = "format",
	 .placeholder = "HOW",
	 .help = "show the reply as text, hex, json or raw (default text)",
	 .kind = PLX_APP_CHOICE,
	 .value = &conf.format,
	 .choices = formats},
	{.name = "count",
	 .placeholder = "N",
	 .help = "measure so many calls, behind 1000, or --in-flight, to warm up",
	 .kind = PLX_APP_UINT,
	 .value = &conf.count,
	 .min = 1},
	{.name = "duration",
	 .placeholder = "TIME",
	 .help = "measure for so long",
	 .kind = PLX_APP_DURATION,
	 .value = &conf.duration_ns,
	 .min = 1},
	{.name = "in-flight",
	 .placeholder = "N",
	 .help = "calls that are open at a time while it measures (default 1)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.in_flight,
	 .min = 1,
	 .max = CALL_IN_FLIGHT_MAX,
	 .given = &conf.in_flight_given},
	{.name = "rate",
	 .placeholder = "R",
	 .help = "open loop: so many calls a second, whatever becomes of them",
	 .kind = PLX_APP_UINT,
	 .value = &conf.rate,
	 .min = 1,
	 .max = CALL_RATE_MAX},
	{.name = "arrival",
	 .placeholder = "HOW",
	 .help = "open loop: fixed, poisson, or burst of 100 at 10 us (default fixed)",
	 .kind = PLX_APP_CHOICE,
	 .value = &conf.arrival,
	 .choices = plx_arrivals,
	 .given = &conf.arrival_given},
	{.name = "seed",
	 .placeholder = "N",
	 .help = "of the arrivals (default 1)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.seed,
	 .given = &conf.seed_given},
	{.name = "out",
	 .placeholder = "DIR",
	 .help = "write NAME.json, NAME.hgrm and NAME.csv there",
	 .kind = PLX_APP_STRING,
	 .value = &conf.out_dir},
	{.name = "name",
	 .placeholder = "NAME",
	 .help = "name of the result (default plx-call)",
	 .kind = PLX_APP_STRING,
	 .value = &conf.name},
	{.name = NULL},
};

static int check_rate(void)
{
	if ((conf.arrival_given || conf.seed_given) && !conf.rate)
		return plx_fail(EINVAL, "--arrival and --seed are for an open loop; give --rate R "
					"too");
	if (conf.rate && !conf.count && !conf.duration_ns)
		return plx_fail(EINVAL, "--rate is for measuring; give --count or --duration");
	if (conf.rate && !conf.in_flight_given)
		conf.in_flight = CALL_OPEN_LOOP_MAX;
	return plx_schedule_check((enum plx_arrival)conf.arrival, (double)conf.rate);
}

static int check(void)
{
	int requests = !!conf.data + !!conf.hex + !!conf.json + !!conf.file + !!conf.size_bytes;

	if (conf.services.count == 0)
		return plx_fail(EINVAL, "--service ADDR is missing: host:port of a service");
	for (unsigned i = 0; i < conf.services.count; i++) {
		int rc = plx_address_check("--service", conf.services.at[i]);

		if (rc)
			return rc;
	}
	if (!conf.method && !conf.list)
		return plx_fail(EINVAL, "--method NAME is missing; --list shows what there is");
	if (conf.list && (conf.method || requests))
		return plx_fail(EINVAL, "--list shows the methods, --method calls one; give one of "
					"them");
	if (requests > 1)
		return plx_fail(EINVAL,
				"--data, --hex, --json, --file and --size each are the request; "
				"give one of them");
	if ((conf.hex || conf.json) && call_read_request(&conf) != 0)
		return -EINVAL;
	if (conf.out_dir && !conf.count && !conf.duration_ns)
		return plx_fail(EINVAL, "--out is for measuring; give --count or --duration");
	if (check_rate() != 0)
		return -EINVAL;
	/* A name that is none is wrong on any host; main finds out what is wrong with the folder.
	 */
	return conf.out_dir && plx_result_prepare(conf.name, conf.out_dir) == -EINVAL ? -EINVAL : 0;
}

const struct plx_app call_app = {
	.name = "plx-call",
	.summary = "Call a method of a service, or measure it.",
	.usage = "  plx-call [EAL options] -- --service ADDR [--process] --list\n"
		 "  plx-call [EAL options] -- --service ADDR --method NAME [--method-version N]\n"
		 "           [--data TEXT | --hex HEX | --json JSON | --file PATH | --size SIZE]\n"
		 "           [--deadline TIME] [--format HOW]\n"
		 "  plx-call [EAL options] -- --service ADDR --method NAME [--size SIZE]\n"
		 "           --count N | --duration TIME [--in-flight N]\n"
		 "           [--rate R [--arrival fixed|poisson|burst] [--seed N]]\n"
		 "           [--out DIR [--name NAME]]",
	.options = options,
	.check = check,
	.idle = "poll",
};

struct call_conf *const call_asked = &conf;
