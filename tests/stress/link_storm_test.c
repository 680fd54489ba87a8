/* SPDX-License-Identifier: BSD-3-Clause */
/* Links of two lcores whose callbacks do what they like: abort, close, reconnect, close the
 * listener, stop the process. Their peer is looked at in each short period, on both lcores, while
 * its links come and go. The sanitizers look on. 1 000 links, with PLX_TEST_SOAK 100 000; five
 * messages for each. Argument: the provider; "auto": as each link chooses. */
#include "plx_test.h"

#include "dice.h"
#include "floating.h"
#include "plx_eal.h"
#include "plx_fabric.h"

#include <stdatomic.h>

#define LCORES        2
#define LIVE          64   /* links that a side keeps */
#define LIVE_MAX      1024 /* with those that were accepted */
#define ROUND_LINKS   2000 /* at most; then all ends, and begins anew */
#define MESSAGE_BYTES 9000 /* at most: some take several frames */
#define MESSAGES      5    /* for each link */

/* One per lcore, which alone uses it, except for the port. */
static struct side {
	uint64_t dice;
	struct plx_listener *listener;
	struct plx_link *links[LIVE_MAX]; /* from on_open, or the connect, until on_close */
	unsigned count;
	_Atomic unsigned port; /* where it listens; 0: nowhere now */
	struct plx_poller *poller;
} sides[LCORES];

static const char *provider;
static _Atomic uint64_t links_left, messages_left;
static _Atomic uint64_t begun, ended; /* links */
static _Atomic unsigned round_left;
static uint8_t pattern[MESSAGE_BYTES];

static struct side *own(void)
{
	return &sides[plx_lcore_id()];
}

static bool rolls(uint32_t sides_of_dice)
{
	return dice_roll(&own()->dice, sides_of_dice) == 0;
}

static void count_down(_Atomic uint64_t *left)
{
	uint64_t now = atomic_load(left);

	while (now && !atomic_compare_exchange_weak(left, &now, now - 1))
		continue;
}

/* What callbacks do -------------------------------------------------------------------------- */

static void enlist(struct plx_link *link)
{
	struct side *side = own();

	for (unsigned i = 0; i < side->count; i++) {
		if (side->links[i] == link)
			return;
	}
	assert_true(side->count < LIVE_MAX);
	side->links[side->count++] = link;
	plx_link_set_user(link, side);
	atomic_fetch_add(&begun, 1);
}

/* side: its own. plx_eal_fini ends those of the other lcore too. */
static void delist(struct side *side, const struct plx_link *link)
{
	for (unsigned i = 0; i < side->count; i++) {
		if (side->links[i] == link) {
			side->links[i] = side->links[--side->count];
			atomic_fetch_add(&ended, 1);
			return;
		}
	}
	fail_msg("on_close of a link that was not open");
}

static struct plx_link *any_link(void)
{
	struct side *side = own();

	return side->count ? side->links[dice_roll(&side->dice, side->count)] : NULL;
}

static void send_some(struct plx_link *link)
{
	uint32_t bytes = dice_roll(&own()->dice, rolls(8) ? MESSAGE_BYTES : 100);

	if (plx_link_send(link, pattern, bytes) == 0)
		count_down(&messages_left);
}

static void on_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg);

static void send_by_reference(struct plx_link *link)
{
	struct plx_buf *buf = plx_link_buf(link, 64);

	if (!buf)
		return;
	memcpy(plx_buf_append(buf, 64), pattern, 64);
	if (plx_link_send_buf(link, buf, on_sent, NULL) == 0)
		count_down(&messages_left);
	else
		plx_buf_unref(buf);
}

static void connect_one(void);

static void end_something(struct plx_link *link)
{
	struct plx_link *other = any_link();

	switch (dice_roll(&own()->dice, 8)) {
	case 0:
		plx_link_abort(link);
		break;
	case 1:
	case 2:
		plx_link_close(link);
		break;
	case 3:
		if (other)
			plx_link_abort(other);
		break;
	case 4:
		if (other)
			plx_link_close(other);
		break;
	case 5:
		connect_one();
		break;
	case 6:
		if (rolls(4)) {
			plx_listener_close(own()->listener);
			own()->listener = NULL;
			atomic_store(&own()->port, 0);
		}
		break;
	default:
		if (rolls(64))
			plx_stop();
		assert_int_equal(plx_fabric_drain(0), -EBUSY);
		assert_true(plx_eal_fini() < 0);
	}
}

/* link: NULL: none of the callback's own. */
static void act(struct plx_link *link)
{
	struct plx_link *chosen = link ? link : any_link();

	if (chosen && rolls(3))
		end_something(chosen);
	else if (chosen && rolls(2))
		send_by_reference(chosen);
	else if (chosen)
		send_some(chosen);
}

static void on_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	if (rolls(4))
		act(link);
}

static const char *on_hello(struct plx_link *link, void *user)
{
	if (rolls(16))
		plx_link_abort(link);
	return rolls(32) ? "no" : NULL;
}

static void on_open(struct plx_link *link, void *user)
{
	enlist(link);
	for (unsigned i = 0; i < MESSAGES; i++)
		send_some(link);
	act(link);
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	assert_memory_equal(message->data, pattern, message->len);
	if (rolls(2))
		act(link);
}

static void on_writable(struct plx_link *link, void *user)
{
	act(link);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	delist(user, link);
	if (rolls(4))
		act(NULL);
	if (rolls(4))
		connect_one();
}

static uint32_t place(struct plx_listener *listener, const struct sockaddr *peer, void *arg)
{
	if (rolls(64)) {
		plx_listener_close(listener);
		own()->listener = NULL;
		atomic_store(&own()->port, 0);
	}
	return dice_roll(&own()->dice, LCORES);
}

/* The sides ---------------------------------------------------------------------------------- */

static const struct plx_link_events events = {
	.on_hello = on_hello,
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_close = on_close,
};

static const struct plx_link_attr attr = {
	.events = &events,
	.rx_buf_bytes = 2048,
	.rx_buf_count = 8,
	.message_max_bytes = MESSAGE_BYTES,
	.connect_timeout_ns = 2 * PLX_NS_PER_S,
	.close_timeout_ns = PLX_NS_PER_S,
};

static void connect_one(void)
{
	unsigned port = atomic_load(&sides[dice_roll(&own()->dice, LCORES)].port);
	struct plx_link_attr one = attr;
	char address[PLX_ADDRESS_MAX];
	struct plx_link *link;

	if (!port || own()->count >= LIVE)
		return;
	one.provider = provider;
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	if (plx_link_connect(address, &one, &link) != 0)
		return;
	enlist(link);
	count_down(&links_left);
	if (atomic_fetch_sub(&round_left, 1) == 1)
		plx_stop();
}

static void listen_again(struct side *side)
{
	struct plx_listen_attr listen = {
		.link = attr,
		.spread = PLX_SPREAD_CALLBACK,
		.place = place,
		.admission.accepts_per_s = PLX_NO_LIMIT,
		.admission.handshakes_max = PLX_NO_LIMIT,
	};

	listen.link.provider = provider;
	if (plx_link_listen("127.0.0.1:0", &listen, &side->listener) == 0)
		atomic_store(&side->port, plx_listener_port(side->listener));
	else
		side->listener = NULL;
}

static int direct_side(void *arg, uint64_t now_ns)
{
	struct side *side = arg;

	if (!side->listener)
		listen_again(side);
	connect_one();
	if (side->count && rolls(8))
		act(NULL);
	if (!atomic_load(&links_left) && !atomic_load(&messages_left))
		plx_stop();
	return 1;
}

static int run_side(void *arg)
{
	struct side *side = own();

	assert_works(plx_poller_add("storm", direct_side, side, &side->poller));
	assert_works(plx_loop_run());
	plx_poller_remove(side->poller);
	if (rolls(2))
		plx_fabric_drain(PLX_NS_PER_S / 4);
	return 0;
}

static void run_round(void)
{
	char lcores[FLOATING_BYTES];
	struct plx_eal_conf conf = {.lcores = floating("0-1", lcores),
				    .huge = PLX_HUGE_NONE,
				    .heartbeat_ns = 10 * PLX_NS_PER_MS,
				    .dead_after_ns = PLX_NS_PER_S,
				    .log_levels = {"error"},
				    .log_level_count = 1};

	atomic_store(&begun, 0);
	atomic_store(&ended, 0);
	atomic_store(&round_left, ROUND_LINKS);
	for (unsigned i = 0; i < LCORES; i++)
		sides[i] = (struct side){.dice = sides[i].dice};
	assert_works(plx_eal_init(&conf));
	assert_works(plx_lcore_launch(1, run_side, NULL));
	run_side(NULL);
	assert_works(plx_eal_fini());
	assert_int_equal(atomic_load(&begun), atomic_load(&ended));
}

PLX_TEST(callbacks_may_do_anything)
{
	unsigned rounds = 0;

	while (atomic_load(&links_left) || atomic_load(&messages_left)) {
		run_round();
		rounds++;
	}
	print_message("%u rounds\n", rounds);
}

int main(int argc, char **argv)
{
	provider = argc > 1 && strcmp(argv[1], "auto") != 0 ? argv[1] : NULL;
	atomic_store(&links_left, getenv("PLX_TEST_SOAK") ? 100000 : 1000);
	atomic_store(&messages_left, MESSAGES * atomic_load(&links_left));
	for (unsigned i = 0; i < LCORES; i++)
		sides[i].dice = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
	for (unsigned i = 0; i < MESSAGE_BYTES; i++)
		pattern[i] = (uint8_t)(i * 31);
	return plx_test_run("link_storm", NULL, NULL);
}
