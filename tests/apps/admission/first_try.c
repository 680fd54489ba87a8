/* SPDX-License-Identifier: BSD-3-Clause */
/* Connects links one after the other. Prints how long each took to open, or why it did not. */
#include "app.h"
#include "plx_fabric.h"

#include <inttypes.h>

static const char *connect_address;
static uint64_t tries = 1, gap_ns = 300 * PLX_NS_PER_MS;

static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &connect_address, "of a crowd-server --as links", .required = true),
	PLX_UINT("tries", "N", &tries, 1, 1000, "links (default 1)"),
	PLX_TIME("gap", "TIME", &gap_ns, 0, 0, "from the end of one to the next (default 300ms)"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "first-try", .summary = "how long links take to open", .options = options};

static struct plx_timer gap;
static uint64_t begin_ns, opened_ns, tried, failed, longest_ns;

static void on_open(struct plx_link *link, void *user)
{
	opened_ns = plx_now_ns() - begin_ns;
	longest_ns = opened_ns > longest_ns ? opened_ns : longest_ns;
	plx_app_say("open after %" PRIu64 " ms", opened_ns / PLX_NS_PER_MS);
	plx_link_close(link);
}

static void end(void)
{
	if (++tried < tries)
		plx_timer_start(&gap, gap_ns);
	else
		plx_stop();
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	if (opened_ns == 0) {
		failed++;
		plx_app_say("not open after %" PRIu64 " ms: %s",
			    (plx_now_ns() - begin_ns) / PLX_NS_PER_MS, text);
	}
	end();
}

static void connect_one(struct plx_timer *timer, void *arg)
{
	static const struct plx_link_events events = {.on_open = on_open, .on_close = on_close};
	struct plx_link_attr attr = {.events = &events};
	struct plx_link *link;

	opened_ns = 0;
	begin_ns = plx_now_ns();
	if (plx_link_connect(connect_address, &attr, &link) == 0)
		return;
	plx_app_fail(&app);
	failed++;
	end();
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	plx_timer_init(&gap, connect_one, NULL);
	plx_timer_start(&gap, 0);
	plx_loop_run();
	plx_timer_stop(&gap);
	plx_app_say("%" PRIu64 " failed, the longest took %" PRIu64 " ms", failed,
		    longest_ns / PLX_NS_PER_MS);
	return plx_app_finish(&app, failed || tried < tries);
}
