/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of plx-ping: its options, and which of them go together. */
#include "../echo/service.h"
#include "ping.h"
#include "plx_app.h"
#include "plx_rpc.h"

#include <errno.h>
#include <inttypes.h>

#define WARMUP_BYTES (UINT64_C(64) << 20) /* one way */

static struct ping_conf conf = {
	.size_bytes = 64,
	.duration_ns = 5 * PLX_NS_PER_S,
	.warmup = 1000,
	.burst = PING_BURST_MAX,
	.seed = 1,
	.name = "plx-ping",
};
static bool count_given, duration_given, arrival_given, seed_given;
static bool interval_given, burst_given;

const struct ping_conf *const ping_asked = &conf;

static const struct plx_app_option options[] = {
	{.name = "listen",
	 .placeholder = "ADDR",
	 .help = "answer on host:port (*:port: every address; port 0: a free one)",
	 .kind = PLX_APP_STRING,
	 .value = &conf.listen},
	{.name = "connect",
	 .placeholder = "ADDR",
	 .help = "measure against the plx-ping --listen or plx-echo at host:port",
	 .kind = PLX_APP_STRING,
	 .value = &conf.connect},
	{.name = "self",
	 .help = "start a server on this host and measure against it",
	 .kind = PLX_APP_FLAG,
	 .value = &conf.self},
	{.name = "size",
	 .placeholder = "N",
	 .help = "bytes in a message (default 64); with --listen: expected",
	 .kind = PLX_APP_SIZE,
	 .value = &conf.size_bytes,
	 .min = 0,
	 .max = 16 << 20},
	{.name = "count",
	 .placeholder = "N",
	 .help = "measure that many messages",
	 .kind = PLX_APP_UINT,
	 .value = &conf.count,
	 .min = 1,
	 .max = UINT64_C(1000000000000),
	 .given = &count_given},
	{.name = "duration",
	 .placeholder = "S",
	 .help = "measure that long (default 5s)",
	 .kind = PLX_APP_DURATION,
	 .value = &conf.duration_ns,
	 .min = PLX_NS_PER_MS,
	 .max = 7 * 86400 * PLX_NS_PER_S,
	 .given = &duration_given},
	{.name = "warmup",
	 .placeholder = "N",
	 .help = "messages before the measured ones (default 1000; in an open loop at most 1 s, "
		 "one way at most 64M)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.warmup,
	 .max = 1000000000,
	 .given = &conf.warmup_given},
	{.name = "service",
	 .help = "call the self-test service of whatever Pollux process listens there",
	 .kind = PLX_APP_FLAG,
	 .value = &conf.service},
	{.name = "one-way",
	 .help = "message rate and bandwidth: send as fast as the link takes it, to a --sink",
	 .kind = PLX_APP_FLAG,
	 .value = &conf.one_way},
	{.name = "burst",
	 .placeholder = "N",
	 .help = "with --one-way: messages in one turn of the loop at most (default 64)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.burst,
	 .min = 1,
	 .max = PING_BURST_MAX,
	 .given = &burst_given},
	{.name = "sink",
	 .help = "with --listen: answer nothing; count messages and drop them, for --one-way",
	 .kind = PLX_APP_FLAG,
	 .value = &conf.sink},
	{.name = "rx-bufs",
	 .placeholder = "N",
	 .help = "with --sink: receive buffers of each link, the window of its sender (default: "
		 "as many as 8M hold, 4 to 128)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.rx_bufs,
	 .min = 2,
	 .max = 200},
	{.name = "rate",
	 .placeholder = "R",
	 .help = "open loop: send R messages a second, whatever comes back (default: closed loop)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.rate,
	 .min = 1,
	 .max = 10000000},
	{.name = "interval",
	 .placeholder = "S",
	 .help = "the same for messages that are rare: one every S",
	 .kind = PLX_APP_DURATION,
	 .value = &conf.interval_ns,
	 .min = PLX_NS_PER_MS,
	 .max = 3600 * PLX_NS_PER_S,
	 .given = &interval_given},
	{.name = "arrival",
	 .placeholder = "KIND",
	 .help = "gaps of an open loop: fixed, poisson, or burst: 100 at 10 us, and a pause "
		 "(default fixed)",
	 .kind = PLX_APP_CHOICE,
	 .value = &conf.arrival,
	 .choices = plx_arrivals,
	 .given = &arrival_given},
	{.name = "seed",
	 .placeholder = "N",
	 .help = "of the poisson gaps (default 1)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.seed,
	 .given = &seed_given},
	{.name = "verify",
	 .help = "fill each message and compare what comes back",
	 .kind = PLX_APP_FLAG,
	 .value = &conf.verify},
	{.name = "rx-buf",
	 .placeholder = "SIZE",
	 .help = "longest message received in one piece; longer ones are cut (default: as --size, "
		 "at least 4K)",
	 .kind = PLX_APP_SIZE,
	 .value = &conf.rx_buf_bytes,
	 .min = 256,
	 .max = 16 << 20},
	{.name = "explain",
	 .help = "print what the result means, line by line",
	 .kind = PLX_APP_FLAG,
	 .value = &conf.explain},
	{.name = "out",
	 .placeholder = "DIR",
	 .help = "write NAME.json, NAME.hgrm and NAME.csv there",
	 .kind = PLX_APP_STRING,
	 .value = &conf.out_dir},
	{.name = "name",
	 .placeholder = "NAME",
	 .help = "of the run in those files (default plx-ping)",
	 .kind = PLX_APP_STRING,
	 .value = &conf.name},
	{.name = NULL},
};

static int check_server(void)
{
	if (conf.service)
		return plx_fail(EINVAL, "--service is for --connect");
	if (count_given || duration_given || conf.warmup_given || conf.rate || conf.verify ||
	    conf.out_dir || conf.one_way || conf.explain)
		return plx_fail(EINVAL,
				"--listen answers until it is stopped; --count, --duration, "
				"--warmup, --rate, --interval, --verify, --one-way, --explain "
				"and --out are for --connect and --self");
	if (conf.rx_bufs && !conf.sink)
		return plx_fail(EINVAL,
				"--rx-bufs is for --sink; who answers has %d receive buffers a "
				"link, or fewer",
				ECHO_WINDOW);
	return 0;
}

/* What needs an answer, or is the receiver's to say. */
static int check_one_way(void)
{
	if (conf.verify)
		return plx_fail(EINVAL, "--verify compares what comes back, and with --one-way "
					"nothing does; leave one of them out");
	if (conf.rate || arrival_given || seed_given)
		return plx_fail(EINVAL, "--rate, --interval, --arrival and --seed are for round "
					"trips; --one-way sends as fast as the link takes it");
	if (conf.explain)
		return plx_fail(EINVAL, "--explain is for round trips; leave --one-way out");
	if (conf.rx_buf_bytes)
		return plx_fail(EINVAL, "--rx-buf: with --one-way it is the server that receives; "
					"give it to that one");
	return 0;
}

static int check_service(void)
{
	if (conf.one_way || conf.rate || arrival_given || seed_given)
		return plx_fail(EINVAL,
				"--service makes one call after the other; leave --one-way, "
				"--rate, --interval, --arrival and --seed out");
	if (conf.size_bytes > PLX_RPC_SELF_TEST_MAX)
		return plx_fail(EINVAL,
				"--size %" PRIu64 ": with --service there are 0 to %" PRIu64
				" bytes, as a self-test takes no more",
				conf.size_bytes, (uint64_t)PLX_RPC_SELF_TEST_MAX);
	return 0;
}

static int check_client(void)
{
	if (conf.service && check_service() != 0)
		return -EINVAL;
	if (conf.sink || conf.rx_bufs)
		return plx_fail(EINVAL, "--sink and --rx-bufs are for --listen");
	return conf.one_way ? check_one_way() : 0;
}

/* A second of an open loop, or so much one way, is enough, and more would take long. */
static void limit_warmup(void)
{
	uint64_t most = conf.warmup;

	if (conf.rate)
		most = conf.rate;
	else if (conf.one_way && conf.size_bytes)
		most = WARMUP_BYTES / conf.size_bytes;
	if (most < conf.warmup)
		conf.warmup = most;
}

static int check(void)
{
	if (!!conf.listen + !!conf.connect + conf.self != 1)
		return plx_fail(EINVAL, "give one of --listen ADDR, --connect ADDR and --self");
	if (!conf.self && plx_address_check(conf.listen ? "--listen" : "--connect",
					    conf.listen ? conf.listen : conf.connect) != 0)
		return -EINVAL;
	if (burst_given && !conf.one_way)
		return plx_fail(EINVAL, "--burst is for --one-way");
	if (count_given && duration_given)
		return plx_fail(EINVAL, "--count and --duration exclude each other");
	if (conf.rate && interval_given)
		return plx_fail(EINVAL, "--rate and --interval exclude each other");
	if (interval_given)
		conf.rate = 1; /* an open loop; its gaps are those of the interval */
	if (conf.listen ? check_server() : check_client())
		return -EINVAL;
	if (arrival_given && !conf.rate)
		return plx_fail(EINVAL, "--arrival is for an open loop; give --rate R too");
	if (plx_schedule_check((enum plx_arrival)conf.arrival, ping_rate(&conf)) != 0)
		return -EINVAL;
	if (conf.out_dir && plx_result_prepare(conf.name, conf.out_dir) != 0)
		return -EINVAL;
	if (!conf.warmup_given)
		limit_warmup();
	return 0;
}

const struct plx_app ping_app = {
	.name = "plx-ping",
	.summary =
		"Measure the round trip of messages between two processes, or their rate one way.",
	.usage = "  plx-ping [EAL options] -- --listen ADDR [--size N] [--rx-buf SIZE]\n"
		 "           [--sink [--rx-bufs N]]\n"
		 "  plx-ping [EAL options] -- --connect ADDR | --self [--size N]\n"
		 "           [--count N | --duration S] [--explain]\n"
		 "           [--warmup N] [--rate R | --interval S]\n"
		 "           [--arrival fixed|poisson|burst] [--seed N]\n"
		 "           [--verify] [--rx-buf SIZE] [--out DIR] [--name NAME]\n"
		 "  plx-ping [EAL options] -- --connect ADDR --service [--size N] [--verify]\n"
		 "           [--count N | --duration S] [--warmup N] [--out DIR] [--name NAME]\n"
		 "  plx-ping [EAL options] -- --connect ADDR --one-way [--size N] [--burst N]\n"
		 "           [--count N | --duration S] [--warmup N] [--out DIR] [--name NAME]",
	.options = options,
	.check = check,
};
