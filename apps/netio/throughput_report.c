/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line and the output of netio-throughput. */
#include "throughput.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#define GIGA 1e9
#define MEGA 1e6

struct throughput_conf throughput_conf = {
	.sizes_text = "64,1K,64K,1M",
	.run = {.duration_ns = PLX_NS_PER_S},
	.page_bytes = 65536,
	.page_count = 256,
};
static bool page_given, pages_given;
static json_t *rows;

static const char *const modes[] = {"buffered", "unbuffered", "reference", "ping", NULL};

static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &throughput_conf.connect, "the netio-recv at host:port",
		    .required = true),
	PLX_CHOICE("mode", "MODE", &throughput_conf.mode, modes,
		   "buffered (in pages), unbuffered (each at once), reference (the same without a "
		   "copy), ping (round trips, unbuffered); default buffered"),
	PLX_TEXT("sizes", "N,N,...", &throughput_conf.sizes_text,
		 "bytes per message, a row each (default 64,1K,64K,1M)"),
	PLX_TIME("duration", "TIME", &throughput_conf.run.duration_ns, PLX_NS_PER_MS,
		 3600 * PLX_NS_PER_S, "of each row (default 1s)"),
	PLX_SIZE("page", "SIZE", &throughput_conf.page_bytes, NETIO_PAGE_BYTES_MIN,
		 NETIO_PAGE_BYTES_MAX, "buffered: bytes per page (default 64K)",
		 .given = &page_given),
	PLX_UINT("pages", "N", &throughput_conf.page_count, 2, NETIO_PAGE_COUNT_MAX,
		 "buffered: number of pages (default 256)", .given = &pages_given),
	PLX_TEXT("json", "FILE", &throughput_conf.json_path, "also write the rows to FILE"),
	PLX_OPTIONS_END,
};

static int parse_sizes(void)
{
	struct throughput_conf *conf = &throughput_conf;
	char text[1024], *rest = text, *word;

	snprintf(text, sizeof(text), "%s", conf->sizes_text);
	while ((word = strsep(&rest, ","))) {
		if (conf->size_count == THROUGHPUT_SIZES_MAX)
			return plx_fail(EINVAL, "--sizes %s: give at most %d", conf->sizes_text,
					THROUGHPUT_SIZES_MAX);
		if (plx_parse_size("--sizes", word, 1, 16 << 20,
				   &conf->sizes[conf->size_count++]) != 0)
			return -EINVAL;
	}
	return 0;
}

static int check(void)
{
	if ((page_given || pages_given) && throughput_conf.mode != MODE_BUFFERED)
		return plx_fail(EINVAL,
				"--page and --pages are for --mode buffered; leave them "
				"out with --mode %s",
				modes[throughput_conf.mode]);
	return parse_sizes() ?: plx_app_check_file("--json", throughput_conf.json_path);
}

const struct plx_app throughput_app = {
	.name = "netio-throughput",
	.summary = "Measure message rates and round trips of a NetIO socket.",
	.examples = "  netio-throughput --connect 127.0.0.1:12345\n"
		    "  netio-throughput --connect 127.0.0.1:12345 --mode unbuffered --sizes 64",
	.more = "man netio-throughput, or doc/apps/netio-throughput.md",
	.options = options,
	.check = check,
};

static json_t *print_rates(uint64_t size_bytes, const struct bench_count *count)
{
	double seconds = (double)count->now_ns / (double)PLX_NS_PER_S;
	double messages_per_s = seconds > 0 ? (double)count->messages / seconds : 0;
	double gbit_per_s = seconds > 0 ? (double)count->bytes * 8 / seconds / GIGA : 0;

	plx_app_say("%9" PRIu64 " B  %10.3f Mmsg/s  %8.2f Gbit/s", size_bytes,
		    messages_per_s / MEGA, gbit_per_s);
	return json_pack("{s:I, s:I, s:f, s:f}", "messages", (json_int_t)count->messages,
			 "elapsed_ns", (json_int_t)count->now_ns, "mmsg_per_s",
			 messages_per_s / MEGA, "gbit_per_s", gbit_per_s);
}

static json_t *print_rtt(uint64_t size_bytes, const struct plx_hist *rtt_ns)
{
	char p50[PLX_HIST_TEXT_BYTES], p99[PLX_HIST_TEXT_BYTES];
	json_t *row = json_object();

	plx_app_say("%9" PRIu64 " B  %10" PRIu64 " round trips  p50 %s us  p99 %s us", size_bytes,
		    rtt_ns->count, plx_hist_quantile_format(rtt_ns, 0.5, PLX_NS_PER_US, p50),
		    plx_hist_quantile_format(rtt_ns, 0.99, PLX_NS_PER_US, p99));
	plx_result_set_count(row, "round_trips", rtt_ns->count);
	plx_result_set_quantile(row, "p50_ns", rtt_ns, 0.5);
	plx_result_set_quantile(row, "p99_ns", rtt_ns, 0.99);
	return row;
}

void throughput_print(uint64_t size_bytes, const struct bench_count *count,
		      const struct plx_hist *rtt_ns)
{
	json_t *row = throughput_conf.mode == MODE_PING ? print_rtt(size_bytes, rtt_ns)
							: print_rates(size_bytes, count);

	json_object_set_new(row, "mode", json_string(modes[throughput_conf.mode]));
	plx_result_set_count(row, "size_bytes", size_bytes);
	if (!rows)
		rows = json_array();
	json_array_append_new(rows, row);
}

int throughput_write(void)
{
	int rc = 0;

	if (throughput_conf.json_path)
		rc = plx_app_write_json(throughput_conf.json_path, rows ? rows : json_array());
	json_decref(rows);
	rows = NULL;
	return rc;
}
