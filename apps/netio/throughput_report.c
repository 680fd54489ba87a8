/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line and the output of netio-throughput. */
#include "throughput.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define GIGA 1e9
#define MEGA 1e6

struct throughput_conf throughput_conf = {
	.sizes_text = "64,1K,64K,1M",
	.duration_ns = PLX_NS_PER_S,
	.page_bytes = 65536,
	.page_count = 256,
};
static bool page_given, pages_given;
static json_t *rows;
static FILE *json_file;

static const char *const modes[] = {"buffered", "unbuffered", "reference", "ping", NULL};

static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &throughput_conf.connect, "the netio-recv at host:port",
		    .required = true),
	PLX_CHOICE("mode", "MODE", &throughput_conf.mode, modes,
		   "buffered (in pages), unbuffered (each at once), reference (the same without a "
		   "copy), ping (round trips, unbuffered); default buffered"),
	PLX_TEXT("sizes", "N,N,...", &throughput_conf.sizes_text,
		 "bytes per message, a row each (default 64,1K,64K,1M)"),
	PLX_TIME("duration", "TIME", &throughput_conf.duration_ns, PLX_NS_PER_MS,
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
	char text[256], *rest, *word;

	if (snprintf(text, sizeof(text), "%s", throughput_conf.sizes_text) >= (int)sizeof(text))
		return plx_fail(EINVAL, "--sizes: too long; give at most %d sizes",
				THROUGHPUT_SIZES_MAX);
	for (word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		int rc;

		if (throughput_conf.size_count == THROUGHPUT_SIZES_MAX)
			return plx_fail(EINVAL, "--sizes %s: give at most %d",
					throughput_conf.sizes_text, THROUGHPUT_SIZES_MAX);
		rc = plx_parse_size("--sizes", word, 1, 16 << 20,
				    &throughput_conf.sizes[throughput_conf.size_count]);
		if (rc)
			return rc;
		throughput_conf.size_count++;
	}
	return throughput_conf.size_count
		     ? 0
		     : plx_fail(EINVAL, "--sizes: none; give sizes such as 64,1K,64K");
}

static int check(void)
{
	if ((page_given || pages_given) && throughput_conf.mode != MODE_BUFFERED)
		return plx_fail(EINVAL,
				"--page and --pages are for --mode buffered; leave them "
				"out with --mode %s",
				modes[throughput_conf.mode]);
	return parse_sizes();
}

const struct plx_app throughput_app = {
	.name = "netio-throughput",
	.summary = "Measure message rates and round trips of a NetIO socket.",
	.usage = "  netio-throughput [EAL options] -- --connect ADDR [--mode MODE]\n"
		 "           [--sizes N,N,...] [--duration TIME] [--page SIZE] [--pages N]\n"
		 "           [--json FILE]",
	.examples = "  netio-throughput --connect 127.0.0.1:12345\n"
		    "  netio-throughput --connect 127.0.0.1:12345 --mode unbuffered --sizes 64",
	.more = "man netio-throughput, or doc/apps/netio-throughput.md",
	.options = options,
	.check = check,
};

static void print_rtt(const struct throughput_row *row)
{
	char p50[PLX_HIST_TEXT_BYTES], p99[PLX_HIST_TEXT_BYTES];

	plx_app_say("%9" PRIu64 " B  %10" PRIu64 " round trips  p50 %s us  p99 %s us",
		    row->size_bytes, row->rtt_ns->count,
		    plx_hist_quantile_format(row->rtt_ns, 0.5, PLX_NS_PER_US, p50),
		    plx_hist_quantile_format(row->rtt_ns, 0.99, PLX_NS_PER_US, p99));
}

static json_t *row_json(const struct throughput_row *row, double messages_per_s, double gbit_per_s)
{
	json_t *object = json_object();

	json_object_set_new(object, "mode", json_string(modes[throughput_conf.mode]));
	plx_result_set_count(object, "size_bytes", row->size_bytes);
	if (throughput_conf.mode == MODE_PING) {
		plx_result_set_count(object, "round_trips", row->rtt_ns->count);
		plx_result_set_quantile(object, "p50_ns", row->rtt_ns, 0.5);
		plx_result_set_quantile(object, "p99_ns", row->rtt_ns, 0.99);
		return object;
	}
	plx_result_set_count(object, "messages", row->messages);
	plx_result_set_count(object, "elapsed_ns", row->elapsed_ns);
	json_object_set_new(object, "mmsg_per_s", json_real(messages_per_s / MEGA));
	json_object_set_new(object, "gbit_per_s", json_real(gbit_per_s));
	return object;
}

void throughput_print(const struct throughput_row *row)
{
	double seconds = (double)row->elapsed_ns / (double)PLX_NS_PER_S;
	double messages_per_s = seconds > 0 ? (double)row->messages / seconds : 0;
	double gbit_per_s = seconds > 0 ? (double)row->bytes * 8 / seconds / GIGA : 0;

	if (!rows)
		rows = json_array();
	json_array_append_new(rows, row_json(row, messages_per_s, gbit_per_s));
	if (throughput_conf.mode == MODE_PING)
		print_rtt(row);
	else
		plx_app_say("%9" PRIu64 " B  %10.3f Mmsg/s  %8.2f Gbit/s", row->size_bytes,
			    messages_per_s / MEGA, gbit_per_s);
}

int throughput_open(void)
{
	if (!throughput_conf.json_path)
		return 0;
	json_file = fopen(throughput_conf.json_path, "we");
	return json_file
		     ? 0
		     : plx_fail(errno, "--json %s: %s", throughput_conf.json_path, strerror(errno));
}

int throughput_write(void)
{
	int rc = 0;

	if (json_file) {
		if (!rows)
			rows = json_array();
		rc = json_dumpf(rows, json_file, JSON_INDENT(2)) != 0;
		rc |= fputc('\n', json_file) == EOF;
		rc |= fclose(json_file) != 0;
		json_file = NULL;
	}
	json_decref(rows);
	rows = NULL;
	return rc ? plx_fail(EIO, "%s cannot be written", throughput_conf.json_path) : 0;
}
