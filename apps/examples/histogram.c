/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures a function, RATE times a second and COUNT times. Prints the latencies, and writes them
 * to NAME.hgrm and NAME.csv.
 * Run it:  histogram 100000 20000 /tmp/sort */
#include <plx_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
	struct plx_hist from_intended, from_start; /* ns */
	uint64_t count, rate;
};

static int compare(const void *a, const void *b)
{
	int one = *(const int *)a, other = *(const int *)b;

	return (one > other) - (one < other);
}

/* What is measured: put your own work here. */
static void work(void)
{
	int numbers[100];

	for (int i = 0; i < 100; i++)
		numbers[i] = rand();
	qsort(numbers, 100, sizeof(numbers[0]), compare);
}

static void measure(struct run *run)
{
	uint64_t first_ns = plx_now_ns();

	for (uint64_t i = 0; i < run->count; i++) {
		uint64_t due_ns = first_ns + i * PLX_NS_PER_S / run->rate, begin_ns, end_ns;

		do
			begin_ns = plx_now_ns();
		while (begin_ns < due_ns);
		work();
		end_ns = plx_now_ns();
		plx_hist_record(&run->from_intended, plx_time_since(due_ns, end_ns));
		plx_hist_record(&run->from_start, plx_time_since(begin_ns, end_ns));
	}
}

static void print(const struct run *run)
{
	plx_hist_print_quantiles(NULL, stdout, "latency, us", PLX_NS_PER_US);
	plx_hist_print_quantiles(&run->from_intended, stdout, "  from intended", PLX_NS_PER_US);
	plx_hist_print_quantiles(&run->from_start, stdout, "  from start", PLX_NS_PER_US);
	printf("\n");
	plx_hist_print_bars(&run->from_intended, stdout, "latency, us", PLX_NS_PER_US, 0);
}

/* ending: "hgrm" or "csv". */
static int write_file(const struct plx_hist *hist, const char *name, const char *ending)
{
	char path[4096];
	FILE *file;
	int rc;

	snprintf(path, sizeof(path), "%s.%s", name, ending);
	file = fopen(path, "w");
	if (!file)
		return plx_fail(errno, "%s cannot be written: %s", path, strerror(errno));
	rc = ending[0] == 'h' ? plx_hist_write_hgrm(hist, file, PLX_NS_PER_US)
			      : plx_hist_write_csv(hist, file);
	fclose(file);
	return rc ? plx_fail_in(rc, "%s: ", path) : 0;
}

int main(int argc, char **argv)
{
	struct run run = {0};
	int rc;

	if (argc != 4 || plx_parse_uint("COUNT", argv[1], 1, 1000000000, &run.count) != 0 ||
	    plx_parse_uint("RATE", argv[2], 1, PLX_NS_PER_S, &run.rate) != 0) {
		fprintf(stderr, "usage: histogram COUNT RATE NAME\n");
		return 2;
	}
	plx_clock_init();
	rc = plx_hist_init(&run.from_intended, 10 * PLX_NS_PER_S, 3);
	rc = rc ? rc : plx_hist_init(&run.from_start, 10 * PLX_NS_PER_S, 3);
	if (rc == 0) {
		measure(&run);
		print(&run);
		rc = write_file(&run.from_intended, argv[3], "hgrm");
		rc = rc ? rc : write_file(&run.from_intended, argv[3], "csv");
	}
	if (rc != 0)
		fprintf(stderr, "histogram: %s\n", plx_error());
	plx_hist_fini(&run.from_start);
	plx_hist_fini(&run.from_intended);
	return rc != 0;
}
