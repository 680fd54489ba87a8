/* SPDX-License-Identifier: BSD-3-Clause */
/* Print histograms to a terminal: one line of percentiles, and bars. */
#include "plx_stats.h"

#include <inttypes.h>
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
	double low, high;
	uint64_t count;
};

struct rows {
	struct row at[ROWS_MAX];
	unsigned count;
};

/* About three significant digits, and no fractions of the recorded unit. Return: out. */
static const char *format(double value, double unit, char out[PLX_HIST_TEXT_BYTES])
{
	double number = value / unit;
	int decimals = number >= 1000 || unit <= 1 ? 0 : number >= 100 ? 1 : 2;

	snprintf(out, PLX_HIST_TEXT_BYTES, "%.*f", decimals, number);
	return out;
}

/* Percentiles ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	double fraction;
} quantiles[] = {
	{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999},
};

const char *plx_hist_quantile_format(const struct plx_hist *hist, double fraction, double unit,
				     char out[PLX_HIST_TEXT_BYTES])
{
	if (plx_hist_quantile_known(hist, fraction))
		return format((double)plx_hist_quantile(hist, fraction), unit, out);
	snprintf(out, PLX_HIST_TEXT_BYTES, "n/a");
	return out;
}

static void print_heading(FILE *file, const char *title)
{
	fprintf(file, "%-16s %8s", title, "min");
	for (size_t i = 0; i < PLX_ARRAY_LEN(quantiles); i++)
		fprintf(file, " %8s", quantiles[i].name);
	fprintf(file, " %8s\n", "max");
}

void plx_hist_print_quantiles(const struct plx_hist *hist, FILE *file, const char *title,
			      double unit)
{
	char text[PLX_HIST_TEXT_BYTES];

	if (!hist) {
		print_heading(file, title);
		return;
	}
	fprintf(file, "%-16s %8s", title,
		hist->count ? format((double)hist->min, unit, text) : "n/a");
	for (size_t i = 0; i < PLX_ARRAY_LEN(quantiles); i++)
		fprintf(file, " %8s",
			plx_hist_quantile_format(hist, quantiles[i].fraction, unit, text));
	fprintf(file, " %8s\n", hist->count ? format((double)hist->max, unit, text) : "n/a");
}

/* Bars ------------------------------------------------------------------------------------- */

static void add_row(struct rows *rows, double low, double high)
{
	rows->at[rows->count++] = (struct row){.low = low, .high = high};
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
		while (row + 1 < rows->count && value >= rows->at[row].high)
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

static unsigned terminal_width(FILE *file, unsigned asked)
{
	struct winsize size;

	if (!asked && ioctl(fileno(file), TIOCGWINSZ, &size) == 0)
		asked = size.ws_col;
	if (!asked)
		asked = COLUMNS_DEFAULT;
	return asked < COLUMNS_LEAST ? COLUMNS_LEAST : asked;
}

static void print_overflow(const struct plx_hist *hist, FILE *file, double unit)
{
	bool one = hist->overflow == 1;
	char highest[PLX_HIST_TEXT_BYTES];

	if (hist->overflow)
		fprintf(file,
			"%" PRIu64 " value%s above %s (the histogram's range) %s as the maximum\n",
			hist->overflow, one ? "" : "s",
			format((double)hist->highest, unit, highest), one ? "counts" : "count");
}

void plx_hist_print_bars(const struct plx_hist *hist, FILE *file, const char *title, double unit,
			 unsigned columns)
{
	unsigned room = terminal_width(file, columns) - ROW_TEXT_COLUMNS;
	struct rows rows = {0};
	uint64_t greatest = 1;
	char low[PLX_HIST_TEXT_BYTES], high[PLX_HIST_TEXT_BYTES];

	if (!hist->count)
		return;
	lay_out(&rows, hist);
	fill(&rows, hist);
	for (unsigned i = 0; i < rows.count; i++)
		if (rows.at[i].count > greatest)
			greatest = rows.at[i].count;

	fprintf(file, "%20s  %8s\n", title, "share");
	for (unsigned i = 0; i < rows.count; i++) {
		const struct row *row = &rows.at[i];

		fprintf(file, "%9s - %8s  %7.3f%% |", format(row->low, unit, low),
			format(row->high, unit, high),
			100 * (double)row->count / (double)hist->count);
		print_bar(file, row->count, greatest, room);
		fputc('\n', file);
	}
	print_overflow(hist, file, unit);
}

void plx_hist_print(const struct plx_hist *hist, FILE *file, const char *title, double unit,
		    unsigned columns)
{
	plx_hist_print_quantiles(NULL, file, title, unit);
	plx_hist_print_quantiles(hist, file, "", unit);
	if (hist->count)
		fputc('\n', file);
	plx_hist_print_bars(hist, file, title, unit, columns);
}
