/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of plx-ping, and checks of option combinations. */
#include "app.h"
#include "ping.h"
#include "plx_rpc.h"

#include <errno.h>
#include <inttypes.h>

#define WARMUP_BYTES (UINT64_C(64) << 20)

static struct ping_conf conf = {
	.size_bytes = 64,
	.run = {.duration_ns = 5 * PLX_NS_PER_S, .seed = 1, .name = "plx-ping"},
	.warmup = 1000,
	.burst = PING_BURST_MAX,
	.spread = PLX_SPREAD_ROUND_ROBIN,
};
static bool interval_given, burst_given, spread_given;

/* In the order of enum plx_spread. */
static const char *const spreads[] = {"none", "round-robin", "hash", NULL};

const struct ping_conf *const ping_asked = &conf;

static const struct plx_option options[] = {
	PLX_ADDRESS("listen", &conf.listen,
		    "answer on host:port; *:port is every address, port 0 a free one"),
	PLX_ADDRESS("connect", &conf.connect,
		    "measure against the plx-ping --listen or plx-echo at host:port"),
	PLX_FLAG("self", &conf.self, "start a server on this host and measure against it"),
	PLX_SIZE("size", "SIZE", &conf.size_bytes, 0, 16 << 20,
		 "bytes per message (default 64); with --listen: the expected size"),
	PLX_MEASURE_OPTIONS(conf.run, " (default 5s)", "plx-ping"),
	PLX_TIME("interval", "TIME", &conf.interval_ns, PLX_NS_PER_MS, 3600 * PLX_NS_PER_S,
		 "open loop of rare messages: one per TIME", .given = &interval_given),
	PLX_UINT("warmup", "N", &conf.warmup, 0, 1000000000,
		 "unrecorded messages before the measurement (default 1000, but at most 64M and "
		 "1 s)",
		 .given = &conf.warmup_given),
	PLX_FLAG("one-way", &conf.one_way,
		 "message rate and bandwidth: send at full speed to a --sink"),
	PLX_UINT("burst", "N", &conf.burst, 1, PING_BURST_MAX,
		 "with --one-way: most messages per turn of the loop (default 64)",
		 .given = &burst_given),
	PLX_FLAG("sink", &conf.sink, "with --listen: count messages and drop them, for --one-way"),
	PLX_UINT("rx-bufs", "N", &conf.rx_bufs, 2, 200,
		 "with --sink: receive buffers per link, the sender's window (default: what fits "
		 "in 8M, 4 to 128)"),
	PLX_CHOICE("spread", "HOW", &conf.spread, spreads,
		   "with --listen: lcore of the next link: round-robin, hash (by the peer's host) "
		   "or none (default round-robin)",
		   .given = &spread_given),
	PLX_FLAG("verify", &conf.verify, "fill each message and compare the answer"),
	PLX_SIZE("rx-buf", "SIZE", &conf.rx_buf_bytes, 256, 16 << 20,
		 "bytes per receive buffer; longer messages are split (default: as --size, at "
		 "least 4K)"),
	PLX_FLAG("explain", &conf.explain, "explain the result in sentences"),
	PLX_OPTIONS_END,
};

static int check_server(void)
{
	if (conf.run.process)
		return plx_fail(EINVAL, "--process is for --connect");
	if (conf.run.count_given || conf.run.duration_given || conf.warmup_given || conf.run.rate ||
	    conf.verify || conf.run.out_dir || conf.one_way || conf.explain)
		return plx_fail(EINVAL,
				"--listen answers until it is stopped; --count, --duration, "
				"--warmup, --rate, --interval, --verify, --one-way, --explain "
				"and --out are for --connect and --self");
	if (conf.rx_bufs && !conf.sink)
		return plx_fail(EINVAL,
				"--rx-bufs is for --sink; who answers has %d receive buffers a "
				"link, or fewer",
				PING_WINDOW);
	return 0;
}

/* Refuse options that need an answer, or that the receiver decides. */
static int check_one_way(void)
{
	if (conf.verify)
		return plx_fail(EINVAL, "--verify compares what comes back, and with --one-way "
					"nothing does; leave one of them out");
	if (conf.run.rate || conf.run.arrival_given || conf.run.seed_given)
		return plx_fail(EINVAL, "--rate, --interval, --arrival and --seed are for round "
					"trips; --one-way sends as fast as the link takes it");
	if (conf.explain)
		return plx_fail(EINVAL, "--explain is for round trips; leave --one-way out");
	if (conf.rx_buf_bytes)
		return plx_fail(EINVAL, "--rx-buf: with --one-way it is the server that receives; "
					"give it to that one");
	return 0;
}

static int check_process(void)
{
	if (conf.one_way || conf.run.rate || conf.run.arrival_given || conf.run.seed_given)
		return plx_fail(EINVAL,
				"--process makes one call after the other; leave --one-way, "
				"--rate, --interval, --arrival and --seed out");
	if (conf.size_bytes > PLX_RPC_SELF_TEST_MAX)
		return plx_fail(EINVAL,
				"--size %" PRIu64 ": with --process there are 0 to %" PRIu64
				" bytes, as a self-test takes no more",
				conf.size_bytes, (uint64_t)PLX_RPC_SELF_TEST_MAX);
	return 0;
}

static int check_client(void)
{
	if (conf.run.process && check_process() != 0)
		return -EINVAL;
	if (conf.sink || conf.rx_bufs || spread_given)
		return plx_fail(EINVAL, "--sink, --rx-bufs and --spread are for --listen");
	return conf.one_way ? check_one_way() : 0;
}

/* One second of an open loop and WARMUP_BYTES are enough. */
static void limit_warmup(void)
{
	if (conf.run.rate && conf.run.rate < conf.warmup)
		conf.warmup = conf.run.rate;
	if (conf.size_bytes && WARMUP_BYTES / conf.size_bytes < conf.warmup)
		conf.warmup = WARMUP_BYTES / conf.size_bytes;
}

static int check(void)
{
	if (!!conf.listen + !!conf.connect + conf.self != 1)
		return plx_fail(EINVAL, "give one of --listen ADDR, --connect ADDR and --self");
	if (burst_given && !conf.one_way)
		return plx_fail(EINVAL, "--burst is for --one-way");
	if (conf.run.count_given && conf.run.duration_given)
		return plx_fail(EINVAL, "--count and --duration exclude each other");
	if (conf.run.rate && interval_given)
		return plx_fail(EINVAL, "--rate and --interval exclude each other");
	if (interval_given)
		conf.run.rate = 1; /* an open loop; interval_ns sets its gaps */
	if (conf.listen ? check_server() : check_client())
		return -EINVAL;
	if (plx_measure_check(&conf.run) != 0)
		return -EINVAL;
	if (conf.run.out_dir && plx_result_prepare(conf.run.name, conf.run.out_dir) != 0)
		return -EINVAL;
	if (!conf.warmup_given)
		limit_warmup();
	return 0;
}

const struct plx_app ping_app = {
	.name = "plx-ping",
	.summary = "Measure round trips between two processes, or the one-way message rate.",
	.usage = "  plx-ping [EAL options] -- --listen ADDR [--size SIZE] [--rx-buf SIZE]\n"
		 "           [--spread HOW] [--sink [--rx-bufs N]]\n"
		 "  plx-ping [EAL options] -- --connect ADDR | --self [--size SIZE]\n"
		 "           [--count N | --duration TIME] [--explain]\n"
		 "           [--warmup N] [--rate R | --interval TIME]\n"
		 "           [--arrival fixed|poisson|burst] [--seed N]\n"
		 "           [--verify] [--rx-buf SIZE] [--out DIR] [--name NAME]\n"
		 "  plx-ping [EAL options] -- --connect ADDR --process [--size SIZE] [--verify]\n"
		 "           [--count N | --duration TIME] [--warmup N] [--out DIR] [--name NAME]\n"
		 "  plx-ping [EAL options] -- --connect ADDR --one-way [--size SIZE] [--burst N]\n"
		 "           [--count N | --duration TIME] [--warmup N] [--out DIR] [--name NAME]",
	.examples = "  plx-ping --self --explain\n"
		    "  plx-ping --connect 192.0.2.7:7000 --duration 5s",
	.more = "man plx-ping, or doc/apps/plx-ping.md",
	.options = options,
	.check = check,
};
