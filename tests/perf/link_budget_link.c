/* SPDX-License-Identifier: BSD-3-Clause */
/* Pollux: two links of one lcore, which runs its loop, or turns it when measuring a step. */
#include "link_budget.h"
#include "plx_fabric.h"
#include "plx_lcore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_NS (10 * PLX_NS_PER_S)
#define CLOSE_NS   (5 * PLX_NS_PER_S)

static struct {
	struct plx_listener *listener;
	struct plx_link *ends[2];
	unsigned opened;
	unsigned closed;
	size_t size;
	uint8_t *message;
	bool apart; /* received messages are not returned at once */
	struct plx_link *sender;
	uint64_t received, until; /* and when to leave the loop */
} pair;

static PLX_NOINLINE void wrong_length(uint32_t length)
{
	plx_fail(EPROTO, "a message of %u B came, not %zu", length, pair.size);
	budget_fail("link");
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	if (plx_unlikely(++pair.received == pair.until))
		plx_loop_quit();
	if (plx_unlikely(message->len != pair.size))
		wrong_length(message->len);
	if (pair.apart)
		pair.sender = link;
	else if (plx_unlikely(plx_link_send(link, message->data, message->len) != 0))
		budget_fail("cannot send");
}

static void link_turn_by_turn(uint64_t count)
{
	uint64_t before = pair.received, got = 0;

	pair.apart = false;
	while (got < count) {
		plx_loop_turn();
		if (plx_unlikely(pair.received - before == got))
			budget_tally.empty++;
		got = pair.received - before;
	}
	budget_tally.messages += got;
}

void link_messages(uint64_t count);
void link_send(void);
void link_receive(void);
void link_looks(unsigned count);

static uint64_t idle_turns(void)
{
	struct plx_lcore_stats stats;

	plx_lcore_stats_read(0, &stats);
	return stats.idle_turns;
}

BUDGET_PART void link_messages(uint64_t count)
{
	uint64_t idle = idle_turns();

	pair.apart = false;
	pair.until = pair.received + count;
	plx_loop_run();
	budget_tally.empty += idle_turns() - idle;
	budget_tally.messages += count;
}

BUDGET_PART void link_send(void)
{
	if (plx_unlikely(plx_link_send(pair.sender, pair.message, pair.size) != 0))
		budget_fail("cannot send");
}

BUDGET_PART void link_receive(void)
{
	uint64_t before = pair.received;

	pair.apart = true;
	plx_loop_turn();
	while (plx_unlikely(pair.received == before)) {
		budget_tally.empty++;
		plx_loop_turn();
	}
	budget_tally.messages++;
}

BUDGET_PART void link_looks(unsigned count)
{
	uint64_t before = pair.received;

	for (unsigned i = 0; i < count; i++)
		plx_loop_turn();
	if (pair.received != before)
		budget_fail("a message came that nobody sent");
}

static void on_open(struct plx_link *link, void *user)
{
	pair.ends[pair.opened++] = link;
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	pair.closed++;
	if (reason != PLX_LINK_CLOSED) {
		plx_fail(EIO, "%s", text);
		budget_fail("a link ended");
	}
}

static const struct plx_link_events events = {
	.on_open = on_open, .on_message = on_message, .on_close = on_close};

static bool is_two(void *value)
{
	return *(unsigned *)value == 2;
}

static void link_open(const struct budget_conf *conf)
{
	const struct plx_fabric_driver *const drivers[] = {conf->driver, NULL};
	static const struct plx_fabric_driver *table[2];
	struct plx_listen_attr listen = {.link = {.events = &events}};
	struct plx_link *link;
	char address[PLX_ADDRESS_MAX];

	memcpy(table, drivers, sizeof(table));
	pair.size = conf->size;
	pair.message = calloc(1, conf->size + 1);
	snprintf(address, sizeof(address), "%s:0", conf->host);

	int rc = plx_fabric_init(&(struct plx_fabric_conf){.drivers = table,
							   .provider = conf->provider,
							   /* callgrind runs 50 times slower */
							   .turn_ns = PLX_TURN_NS_MAX});

	rc = rc ? rc : plx_link_listen(address, &listen, &pair.listener);
	rc = rc ? rc : plx_link_connect(plx_listener_address(pair.listener), &listen.link, &link);
	if (rc)
		budget_fail("open");
	if (plx_loop_until(is_two, &pair.opened, CONNECT_NS) != 0)
		budget_fail("connect");
	pair.sender = pair.ends[0];
	link_send();
}

static void link_close(void)
{
	pair.apart = true;
	for (unsigned i = 0; i < pair.opened; i++)
		plx_link_close(pair.ends[i]);
	if (plx_loop_until(is_two, &pair.closed, CLOSE_NS) != 0)
		budget_fail("close");
	plx_listener_close(pair.listener);
	plx_fabric_fini();
	free(pair.message);
}

BUDGET_WAY(link);
