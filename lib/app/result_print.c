/* SPDX-License-Identifier: BSD-3-Clause */
/* Print results to a terminal: one line of percentiles, and bars. */
#include "app.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_DEFAULT 80
#define COLUMNS_LEAST   48
#define BODY_ROWS       14 /* from the minimum to p99 */
#define TAIL_ROWS_MAX   8  /* from there to the maximum */
#define ROWS_MAX        (BODY_ROWS + TAIL_ROWS_MAX)
#define BODY_FRACTION   0.99
#define TAIL_RATIO      2.0

/* The text of a row before its bar: "LOW - HIGH  PERCENT  |". */
#define ROW_TEXT_COLUMNS 32

struct row {
	double low_ns, high_ns;
	uint64_t count;
};

struct rows {
	struct row at[ROWS_MAX];
	unsigned count;
};

/* About three significant digits. Return: out. */
static const char *in_us(double ns, char *out, size_t size)
{
	double us = ns / (double)PLX_NS_PER_US;

	snprintf(out, size, "%.*f", us < 100 ? 2 : us < 1000 ? 1 : 0, us);
	return out;
}

/* Percentiles ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	double fraction;
} columns[] = {
	{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999},
};

const char *plx_result_quantile(const struct plx_hist *hist, double fraction, char *out,
				size_t size)
{
	if (plx_hist_quantile_known(hist, fraction))
		return in_us((double)plx_hist_quantile(hist, fraction), out, size);
	snprintf(out, size, "n/a");
	return out;
}

/* hist NULL: the names of the columns. */
static void print_line(FILE *out, const char *title, const struct plx_hist *hist)
{
	char text[32];

	fprintf(out, "%-16s %8s", title,
		hist ? in_us((double)hist->min, text, sizeof(text)) : "min");
	for (size_t i = 0; i < PLX_ARRAY_LEN(columns); i++)
		fprintf(out, " %8s",
			hist ? plx_result_quantile(hist, columns[i].fraction, text, sizeof(text))
			     : columns[i].name);
	fprintf(out, " %8s\n", hist ? in_us((double)hist->max, text, sizeof(text)) : "max");
}

/* Bars ------------------------------------------------------------------------------------- */

static void add_row(struct rows *rows, double low_ns, double high_ns)
{
	rows->at[rows->count++] = (struct row){.low_ns = low_ns, .high_ns = high_ns};
}

/* Rows between low and p99: at most one per bucket, because narrower rows would be empty. */
static unsigned body_rows(const struct plx_hist *hist, double low, double body)
{
	size_t index = plx_hist_index(hist, (uint64_t)body);
	double width = (double)(plx_hist_bucket_high(hist, index) -
				plx_hist_bucket_low(hist, index) + 1);
	double fit = floor((body - low) / width);

	return fit < 1 ? 1 : fit < BODY_ROWS ? (unsigned)fit : BODY_ROWS;
}

/* Rows of equal ratio for the bulk of the values, to show their shape. Beyond p99 each row is at
 * least twice as far out as the last, so the tail is visible but short. */
static void lay_out(struct rows *rows, const struct plx_hist *hist)
{
	double low = (double)(hist->min ? hist->min : 1);
	double body = (double)plx_hist_quantile(hist, BODY_FRACTION) + 1;
	double end = (double)hist->max + 1;
	unsigned count = body_rows(hist, low, body);
	double ratio = pow(body / low, 1.0 / count);

	for (unsigned i = 0; i < count; i++)
		add_row(rows, low * pow(ratio, i), low * pow(ratio, i + 1));

	ratio = fmax(TAIL_RATIO, pow(end / body, 1.0 / TAIL_ROWS_MAX));
	for (unsigned i = 0; i < TAIL_ROWS_MAX && body < end; i++) {
		double high = i == TAIL_ROWS_MAX - 1 ? end : fmin(body * ratio, end);

		add_row(rows, body, high);
		body = high;
	}
}

static void fill(struct rows *rows, const struct plx_hist *hist)
{
	unsigned row = 0;

	for (size_t i = 0; i < hist->bucket_count; i++) {
		double value = (double)plx_hist_bucket_low(hist, i);

		if (!hist->buckets[i])
			continue;
		while (row + 1 < rows->count && value >= rows->at[row].high_ns)
			row++;
		rows->at[row].count += hist->buckets[i];
	}
	/* Overflow values of the last bucket may be anywhere up to the maximum. */
	rows->at[row].count -= hist->overflow;
	rows->at[rows->count - 1].count += hist->overflow;
}

/* Length proportional to count; a non-zero count too small for a mark is a dot. */
static void print_bar(FILE *out, uint64_t count, uint64_t greatest, unsigned room)
{
	unsigned length = (unsigned)((double)count / (double)greatest * room + 0.5);

	if (count && !length) {
		fputs(".", out);
		return;
	}
	for (unsigned i = 0; i < length; i++)
		fputc('#', out);
}

static void print_bars(FILE *out, const struct plx_hist *hist, unsigned width)
{
	struct rows rows = {0};
	uint64_t greatest = 1;
	char low[32], high[32];

	lay_out(&rows, hist);
	fill(&rows, hist);
	for (unsigned i = 0; i < rows.count; i++)
		if (rows.at[i].count > greatest)
			greatest = rows.at[i].count;

	fprintf(out, "\n%20s  %8s\n", "round trip, us", "share");
	for (unsigned i = 0; i < rows.count; i++) {
		const struct row *row = &rows.at[i];

		fprintf(out, "%9s - %8s  %7.3f%% |", in_us(row->low_ns, low, sizeof(low)),
			in_us(row->high_ns, high, sizeof(high)),
			100 * (double)row->count / (double)hist->count);
		print_bar(out, row->count, greatest, width - ROW_TEXT_COLUMNS);
		fputc('\n', out);
	}
}

/* The whole -------------------------------------------------------------------------------- */

static unsigned terminal_width(FILE *out, unsigned asked)
{
	struct winsize size;

	if (!asked && ioctl(fileno(out), TIOCGWINSZ, &size) == 0)
		asked = size.ws_col;
	if (!asked)
		asked = COLUMNS_DEFAULT;
	return asked < COLUMNS_LEAST ? COLUMNS_LEAST : asked;
}

static void print_title(FILE *out, const struct plx_result *result)
{
	fprintf(out, "%s: %llu full round trips of %llu B in %.2f s, provider %s, idle %s",
		result->name, (unsigned long long)result->rtt_ns->count,
		(unsigned long long)result->size_bytes,
		(double)result->elapsed_ns / (double)PLX_NS_PER_S, result->provider, result->idle);
	if (result->rate > 0)
		fprintf(out, ", open loop at %.9g/s (%s)", result->rate,
			result->arrival ? result->arrival : "fixed");
	fputs("\n\n", out);
}

void plx_result_print(const struct plx_result *result, FILE *out, unsigned columns_wide)
{
	print_title(out, result);
	if (plx_result_check(result))
		fprintf(out, "NOT VALID: %s\n\n", plx_error());
	if (!result->rtt_ns->count)
		return;

	print_line(out, "round trip, us", NULL);
	if (result->service_ns && result->service_ns->count) {
		print_line(out, "  from intended", result->rtt_ns);
		print_line(out, "  from sent", result->service_ns);
	} else {
		print_line(out, "", result->rtt_ns);
	}
	print_bars(out, result->rtt_ns, terminal_width(out, columns_wide));
}
