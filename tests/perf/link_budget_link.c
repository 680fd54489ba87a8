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
	int status;
} pair;

/* Messages --------------------------------------------------------------------------------- */

static void end(int status)
{
	pair.status = status;
	plx_loop_quit();
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	if (plx_unlikely(++pair.received == pair.until))
		plx_loop_quit();
	if (plx_unlikely(message->len != pair.size))
		end(plx_fail(EPROTO, "a message of %u B came, not %zu", message->len, pair.size));
	if (pair.apart)
		pair.sender = link;
	else if (plx_unlikely(plx_link_send(link, message->data, message->len) != 0))
		end(plx_fail(EIO, "cannot send: %s", plx_error()));
}

static int link_turn_by_turn(uint64_t count)
{
	uint64_t before = pair.received, got = 0;

	pair.apart = false;
	while (got < count) {
		plx_loop_turn();
		if (plx_unlikely(pair.received - before == got)) {
			budget_tally.empty++;
			if (pair.status)
				return pair.status;
		}
		got = pair.received - before;
	}
	budget_tally.messages += got;
	return pair.status;
}

int link_messages(uint64_t count);
int link_send(void);
int link_receive(void);
int link_looks(unsigned count);

static uint64_t idle_turns(void)
{
	struct plx_lcore_stats stats;

	plx_lcore_stats(0, &stats);
	return stats.idle_turns;
}

BUDGET_PART int link_messages(uint64_t count)
{
	uint64_t idle = idle_turns();

	pair.apart = false;
	pair.until = pair.received + count;
	plx_loop_run();
	budget_tally.empty += idle_turns() - idle;
	budget_tally.messages += count;
	return pair.status;
}

BUDGET_PART int link_send(void)
{
	return plx_link_send(pair.sender, pair.message, pair.size);
}

BUDGET_PART int link_receive(void)
{
	uint64_t before = pair.received;

	pair.apart = true;
	plx_loop_turn();
	while (plx_unlikely(pair.received == before) && !pair.status) {
		budget_tally.empty++;
		plx_loop_turn();
	}
	budget_tally.messages++;
	return pair.status;
}

BUDGET_PART int link_looks(unsigned count)
{
	uint64_t before = pair.received;

	for (unsigned i = 0; i < count; i++)
		plx_loop_turn();
	return pair.received == before ? 0 : plx_fail(EPROTO, "a message came that nobody sent");
}

/* Opening ---------------------------------------------------------------------------------- */

static void on_open(struct plx_link *link, void *user)
{
	pair.ends[pair.opened++] = link;
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	pair.closed++;
	if (reason != PLX_LINK_CLOSED && !pair.status)
		end(plx_fail(EIO, "a link ended: %s", text));
}

static const struct plx_link_events events = {
	.on_open = on_open,
	.on_message = on_message,
	.on_close = on_close,
};

static int turn_until(const unsigned *value, uint64_t limit_ns)
{
	limit_ns += plx_now_ns();
	while (*value < 2 && !pair.status) {
		plx_loop_turn();
		if (plx_now_ns() > limit_ns)
			return plx_fail(ETIMEDOUT, "waited in vain for both links");
	}
	return pair.status;
}

static int link_open(const struct budget_conf *conf)
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

	int rc = plx_fabric_init(
		&(struct plx_fabric_conf){.drivers = table, .provider = conf->provider});

	rc = rc ? rc : plx_link_listen(address, &listen, &pair.listener);
	rc = rc ? rc : plx_link_connect(plx_listener_address(pair.listener), &listen.link, &link);
	rc = rc ? rc : turn_until(&pair.opened, CONNECT_NS);
	pair.sender = pair.ends[0];
	return rc ? rc : link_send();
}

static void link_close(void)
{
	pair.apart = true;
	pair.status = 0;
	for (unsigned i = 0; i < pair.opened; i++)
		plx_link_close(pair.ends[i]);
	if (pair.opened == 2 && turn_until(&pair.closed, CLOSE_NS) != 0)
		fprintf(stderr, "link_budget: closing: %s\n", plx_error());
	plx_listener_close(pair.listener);
	plx_fabric_fini();
	free(pair.message);
}

BUDGET_WAY(link);
