/* SPDX-License-Identifier: BSD-3-Clause */
/* Print results to a terminal: a title, percentiles and bars. */
#include "app.h"

#define ROUND_TRIP "round trip, us"

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

void plx_result_print(const struct plx_result *result, FILE *out, unsigned columns)
{
	print_title(out, result);
	if (plx_result_check(result))
		fprintf(out, "NOT VALID: %s\n\n", plx_error());
	if (!result->rtt_ns->count)
		return;

	if (!result->service_ns || !result->service_ns->count) {
		plx_hist_print(result->rtt_ns, out, ROUND_TRIP, PLX_NS_PER_US, columns);
		return;
	}
	plx_hist_print_quantiles(NULL, out, ROUND_TRIP, PLX_NS_PER_US);
	plx_hist_print_quantiles(result->rtt_ns, out, "  from intended", PLX_NS_PER_US);
	plx_hist_print_quantiles(result->service_ns, out, "  from sent", PLX_NS_PER_US);
	fputc('\n', out);
	plx_hist_print_bars(result->rtt_ns, out, ROUND_TRIP, PLX_NS_PER_US, columns);
}
