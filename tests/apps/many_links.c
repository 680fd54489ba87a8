/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens many links to one plx-echo, sends a message on each, checks the answers, holds the links
 * until SIGTERM, then closes them all. link_memory_test checks the server meanwhile. */
#include "app.h"
#include "plx_fabric.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 8 /* connections being made: a busy server drops those that wait too long */

struct one {
	struct plx_link *link;
	uint32_t index;
	bool echoed;
};

static const char *connect_address;
static uint64_t link_count = 1;
static struct one *links;
static uint64_t started, opened, echoed, closed, lost;

static const struct plx_option options[] = {
	PLX_TEXT("connect", "ADDR", &connect_address, "of a plx-echo"),
	PLX_UINT("links", "N", &link_count, 1, 100000, "how many (default 1)"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "many-links", .summary = "opens many links to one plx-echo", .options = options};

static void on_open(struct plx_link *link, void *user)
{
	struct one *one = user;

	opened++;
	if (plx_link_send(link, &one->index, sizeof(one->index)) != 0)
		plx_link_abort(link);
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct one *one = user;

	if (message->len != sizeof(one->index) || one->echoed ||
	    memcmp(message->data, &one->index, sizeof(one->index)) != 0) {
		plx_app_say("link %" PRIu32 ": a wrong echo", one->index);
		plx_link_abort(link);
		return;
	}
	one->echoed = true;
	if (++echoed == link_count)
		plx_app_say("echoed %" PRIu64, echoed);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct one *one = user;

	one->link = NULL;
	closed++;
	if (reason == PLX_LINK_CLOSED)
		return;
	if (lost++ == 0)
		plx_app_say("link %" PRIu32 ": %s", one->index, text);
	plx_stop();
}

static const struct plx_link_events events = {
	.on_open = on_open, .on_message = on_message, .on_close = on_close};

static int connect_more(void *arg, uint64_t now_ns)
{
	int work = 0;

	for (; started < link_count && started - echoed < AT_ONCE && !plx_stopping(); work++) {
		struct one *one = &links[started];
		struct plx_link_attr attr = {
			.events = &events, .user = one, .close_timeout_ns = 60 * PLX_NS_PER_S};

		one->index = (uint32_t)started++;
		if (plx_link_connect(connect_address, &attr, &one->link) == 0)
			continue;
		plx_app_fail(&app);
		lost++;
		plx_stop();
	}
	return work;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	links = calloc(link_count, sizeof(*links));
	if (!links || !connect_address || plx_poller_add("connect", connect_more, NULL, NULL))
		return 1;
	plx_loop_run();
	for (uint64_t i = 0; i < started; i++)
		if (links[i].link)
			plx_link_close(links[i].link);
	while (plx_fabric_open_count())
		plx_loop_turn();
	free(links);
	plx_app_say("closed %" PRIu64 " of %" PRIu64 ", lost %" PRIu64, closed, opened, lost);
	return plx_app_finish(&app, lost || echoed < link_count);
}
