/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-ping: measures round trips to another process, or one-way throughput of a link. The command
 * line, and checks of option combinations. */
#include "ping.h"
#include "plx_rpc.h"

#define STATUS_FAILED 1 /* of plx_app_start */

static struct ping_conf conf = {
	.size_bytes = 64,
	.run = {.duration_ns = 5 * PLX_NS_PER_S, .seed = 1, .name = "plx-ping"},
	.burst = PING_BURST_MAX,
	.spread = PLX_SPREAD_ROUND_ROBIN,
};
static bool interval_given, burst_given, spread_given, rate_given;

/* In the order of enum plx_spread. */
static const char *const spreads[] = {"none", "round-robin", "hash", NULL};

static const struct plx_option options[] = {
	PLX_ADDRESS("listen", &conf.listen,
		    "answer on host:port; *:port is every address, port 0 a free one"),
	PLX_ADDRESS("connect", &conf.connect,
		    "measure against the plx-ping --listen or plx-echo at host:port"),
	PLX_FLAG("self", &conf.self, "start a server on this host and measure against it"),
	PLX_SIZE("size", "SIZE", &conf.size_bytes, 0, 16 << 20,
		 "bytes per message (default 64); with --listen: the expected size"),
	PLX_MEASURE_OPTIONS(conf.run, " (default 5s)", "plx-ping"),
	PLX_TIME("interval", "TIME", &conf.run.interval_ns, PLX_NS_PER_MS, 3600 * PLX_NS_PER_S,
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

static bool open_loop_given(void)
{
	return conf.run.rate || conf.run.arrival_given || conf.run.seed_given;
}

static bool measuring_given(void)
{
	return conf.run.count_given || conf.run.duration_given || conf.warmup_given ||
	       conf.run.rate || conf.verify || conf.run.out_dir || conf.one_way || conf.explain;
}

/* The first combination that makes no sense; NULL: none. */
static const char *find_conflict(void)
{
	bool serves = conf.listen != NULL;
	const struct {
		bool wrong;
		const char *text;
	} rows[] = {
		{!!conf.listen + !!conf.connect + conf.self != 1,
		 "give one of --listen ADDR, --connect ADDR and --self"},
		{burst_given && !conf.one_way, "--burst is for --one-way"},
		{rate_given && interval_given, "--rate and --interval exclude each other"},
		{serves && conf.run.process, "--process is for --connect"},
		{serves && measuring_given(),
		 "--listen answers until it is stopped; --count, --duration, --warmup, --rate, "
		 "--interval, --verify, --one-way, --explain and --out are for --connect and "
		 "--self"},
		{serves && conf.rx_bufs && !conf.sink,
		 "--rx-bufs is for --sink; a server that answers has 6 receive buffers a link, or "
		 "fewer"},
		{conf.run.process && (conf.one_way || open_loop_given()),
		 "--process makes one call after the other; leave --one-way, --rate, --interval, "
		 "--arrival and --seed out"},
		{conf.run.process && conf.size_bytes > PLX_RPC_SELF_TEST_MAX,
		 "--size: with --process there are 0 to 65536 bytes, as a self-test takes no more"},
		{!serves && (conf.sink || conf.rx_bufs || spread_given),
		 "--sink, --rx-bufs and --spread are for --listen"},
		{conf.one_way && conf.verify,
		 "--verify compares what comes back, and with --one-way nothing does; leave one of "
		 "them out"},
		{conf.one_way && open_loop_given(),
		 "--rate, --interval, --arrival and --seed are for round trips; --one-way sends as "
		 "fast as the link takes it"},
		{conf.one_way && conf.explain, "--explain is for round trips; leave --one-way out"},
		{conf.one_way && conf.rx_buf_bytes,
		 "--rx-buf: with --one-way it is the server that receives; give it to that one"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		if (rows[i].wrong)
			return rows[i].text;
	return NULL;
}

static int check(void)
{
	const char *conflict;

	rate_given = conf.run.rate;
	if (interval_given)
		conf.run.rate = 1; /* an open loop; interval_ns sets its gaps */
	conflict = find_conflict();
	if (conflict)
		return plx_fail(EINVAL, "%s", conflict);
	if (plx_measure_check(&conf.run) != 0)
		return -EINVAL;
	if (conf.run.out_dir && plx_result_prepare(conf.run.name, conf.run.out_dir) != 0)
		return -EINVAL;
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

/* Results of an earlier run must never be taken for this run's. */
static int forget(void)
{
	return conf.run.out_dir ? plx_result_forget(conf.run.name, conf.run.out_dir, conf.one_way)
				: 0;
}

static int measure(void)
{
	if (forget() != 0)
		return plx_app_fail(&ping_app);
	return conf.run.process ? ping_measure_calls(&conf) : ping_measure(&conf);
}

static int measure_self(void)
{
	static char address[PING_ADDRESS_BYTES];
	int status;

	if (ping_self_start(&conf, address) != 0)
		return plx_app_fail(&ping_app);
	conf.connect = address;
	status = measure();
	ping_self_stop();
	return status;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &ping_app);

	if (status == PLX_APP_RUN)
		return plx_app_finish(&ping_app, conf.listen ? ping_serve(&conf)
						 : conf.self ? measure_self()
							     : measure());
	/* The options are valid, so this would have been a run. */
	if (status == STATUS_FAILED && forget() != 0)
		plx_app_fail(&ping_app);
	return status;
}
