/* SPDX-License-Identifier: BSD-3-Clause */
/* Print results to a terminal: a title, percentiles and bars, or rates. */
#include "app.h"

#define ROUND_TRIP "round trip, us"
#define MEGA       1e6
#define GIBI       1073741824.0
#define GIGA       1e9

static void print_title(FILE *out, const struct plx_result *result)
{
	fprintf(out, "%s: %llu %s of %llu B%s in %.2f s, provider %s, idle %s", result->name,
		(unsigned long long)(result->one_way ? result->count : result->rtt_ns->count),
		result->one_way ? "messages" : "full round trips",
		(unsigned long long)result->size_bytes, result->one_way ? " one way" : "",
		(double)result->elapsed_ns / (double)PLX_NS_PER_S, result->provider, result->idle);
	if (result->rate > 0)
		fprintf(out, ", open loop at %.9g/s (%s)", result->rate,
			result->arrival ? result->arrival : "fixed");
	fputs("\n\n", out);
}

static void print_rates(FILE *out, const struct plx_result *result)
{
	double messages = plx_result_per_s(result), bytes = messages * (double)result->size_bytes;

	fprintf(out, "message rate  %.0f messages/s, %.1f ns each\n", messages,
		messages > 0 ? (double)PLX_NS_PER_S / messages : 0);
	fprintf(out, "bandwidth     %.1f MB/s = %.3f GiB/s = %.2f Gbit/s\n", bytes / MEGA,
		bytes / GIBI, bytes * 8 / GIGA);
	fprintf(out, "no room       %llu times, and the sender waited\n",
		(unsigned long long)result->again);
}

void plx_result_print(const struct plx_result *result, FILE *out, unsigned columns)
{
	print_title(out, result);
	if (plx_result_check(result))
		fprintf(out, "NOT VALID: %s\n\n", plx_error());
	if (result->one_way)
		print_rates(out, result);
	else if (!result->rtt_ns->count)
		return;
	else if (!result->service_ns || !result->service_ns->count) {
		plx_hist_print(result->rtt_ns, out, ROUND_TRIP, PLX_NS_PER_US, columns);
	} else {
		plx_hist_print_quantiles(NULL, out, ROUND_TRIP, PLX_NS_PER_US);
		plx_hist_print_quantiles(result->rtt_ns, out, "  from intended", PLX_NS_PER_US);
		plx_hist_print_quantiles(result->service_ns, out, "  from sent", PLX_NS_PER_US);
		fputc('\n', out);
		plx_hist_print_bars(result->rtt_ns, out, ROUND_TRIP, PLX_NS_PER_US, columns);
	}
}
