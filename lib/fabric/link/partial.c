/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of partly received messages, by address of the peer. At the bound of an lcore,
 * messages that need more wait: their frames are not granted again before there is room. If any of
 * them belongs to another address than the one that holds most, that one loses its largest message,
 * with its link. Otherwise it waits for its own messages, until all wait.
 * doc/design/partial.md */
#include "receive.h"
#include "sockaddr.h"
#include "tree.h"

#include <inttypes.h>

#define DROPS_MAX 64   /* idle buffers dropped per turn */
#define LOOKS_MAX 1024 /* messages of an address among which the largest is chosen */

/* An address; or an IPv6 network, whose bytes are those of its addresses. */
struct holder {
	struct in6_addr address; /* first: see tree_by_address */
	struct holder *network;  /* that it is in; itself if in none */
	uint32_t members;        /* of a network */
	uint64_t bytes;
	uint32_t waiting; /* of its messages */
	LIST_HEAD(, assembly) assemblies;
	LIST_ENTRY(holder) of_home;
};

static uint64_t bytes_max; /* per lcore */

int partial_init(uint64_t partial_bytes)
{
	bytes_max = partial_bytes ? partial_bytes : PLX_PARTIAL_BYTES_DEFAULT;
	return check_range("partial_bytes", bytes_max, PLX_PARTIAL_BYTES_MIN,
			   PLX_PARTIAL_BYTES_MAX);
}

bool partial_is_full(const struct plx_fabric_lcore *home)
{
	return home->partials.bytes >= bytes_max;
}

/* Holders ------------------------------------------------------------------------------------- */

/* Created if needed. Return: NULL: no memory. */
static struct holder *find_holder(struct partials *partials, const struct in6_addr *address)
{
	struct holder *holder = tree_get(&partials->by_address, tree_by_address, address,
					 sizeof(*address), sizeof(*holder));

	if (holder && !holder->network)
		holder->network = holder;
	return holder;
}

static void free_holder(struct partials *partials, struct holder *holder)
{
	tdelete(holder, &partials->by_address, tree_by_address);
	free(holder);
}

/* Return: NULL: no memory. */
static struct holder *create_holder(struct partials *partials, const struct in6_addr *address)
{
	struct holder *holder = find_holder(partials, address), *network = holder;
	struct in6_addr above;

	if (holder && address_network(address, &above))
		network = find_holder(partials, &above);
	if (!network) {
		if (holder)
			free_holder(partials, holder);
		return NULL;
	}
	holder->network = network;
	network->members++;
	LIST_INSERT_HEAD(&partials->holders, holder, of_home);
	return holder;
}

/* An address that cannot be parsed is "::". */
static struct in6_addr group_of(const struct plx_link *link)
{
	struct sockaddr_storage peer = {0};
	struct in6_addr host;

	plx_link_peer_sockaddr(link, &peer);
	host = address_host((struct sockaddr *)&peer);
	return address_group(&host);
}

int partial_join(struct assembly *assembly, struct plx_link *link)
{
	struct partials *partials = &link->home->partials;
	struct in6_addr address = group_of(link);
	struct holder **found = tfind(&address, &partials->by_address, tree_by_address);
	struct holder *holder = found ? *found : create_holder(partials, &address);

	if (!holder)
		return plx_fail(ENOMEM, "out of memory");
	assembly->holder = holder;
	assembly->link = link;
	LIST_INSERT_HEAD(&holder->assemblies, assembly, of_holder);
	return 0;
}

uint32_t partial_stop_waiting(struct assembly *assembly)
{
	struct partials *partials = &assembly->link->home->partials;
	uint32_t frames = assembly->withheld;

	assembly->continued = false;
	if (!frames)
		return 0;
	TAILQ_REMOVE(&partials->waiters[assembly->rank], assembly, of_waiters);
	partials->waiting--;
	assembly->holder->waiting--;
	assembly->withheld = 0;
	return frames;
}

void partial_schedule_room(struct plx_fabric_lcore *home)
{
	if (home->partials.waiting)
		plx_task_schedule(&home->partials.make_room);
}

static void add_bytes(struct holder *holder, uint64_t bytes)
{
	holder->bytes += bytes;
	if (holder->network != holder)
		holder->network->bytes += bytes;
}

void partial_leave(struct assembly *assembly)
{
	struct plx_fabric_lcore *home = assembly->link->home;
	struct holder *holder = assembly->holder;

	partial_stop_waiting(assembly);
	home->partials.bytes -= assembly->charged;
	add_bytes(holder, -(uint64_t)assembly->charged);
	assembly->charged = 0;
	assembly->link = NULL;
	LIST_REMOVE(assembly, of_holder);
	if (LIST_EMPTY(&holder->assemblies)) {
		LIST_REMOVE(holder, of_home);
		if (--holder->network->members == 0 && holder->network != holder)
			free_holder(&home->partials, holder->network);
		free_holder(&home->partials, holder);
	}
	partial_schedule_room(home);
}

/* Waiting ------------------------------------------------------------------------------------- */

void partial_charge(struct assembly *assembly, uint32_t bytes)
{
	assembly->charged += bytes;
	add_bytes(assembly->holder, bytes);
	assembly->link->home->partials.bytes += bytes;
}

/* The first of each address comes before all others. One that has continued has the first claim to
 * more: otherwise none would ever be whole. */
static void queue_up(struct assembly *assembly, struct partials *partials)
{
	assembly->rank = !assembly->continued && assembly->holder->waiting > 1;
	if (assembly->continued)
		TAILQ_INSERT_HEAD(&partials->waiters[0], assembly, of_waiters);
	else
		TAILQ_INSERT_TAIL(&partials->waiters[assembly->rank], assembly, of_waiters);
}

static struct assembly *first_waiter(const struct partials *partials)
{
	struct assembly *first = TAILQ_FIRST(&partials->waiters[0]);

	return first ? first : TAILQ_FIRST(&partials->waiters[1]);
}

bool partial_must_wait(struct assembly *assembly)
{
	struct partials *partials = &assembly->link->home->partials;

	if (plx_likely(partials->bytes <= bytes_max && !assembly->withheld))
		return false;
	plx_task_schedule(&partials->make_room);
	if (assembly->withheld++)
		return true;
	partials->waiting++;
	assembly->holder->waiting++;
	queue_up(assembly, partials);
	return true;
}

/* The address that holds most, in the network that does. */
static struct holder *holds_most(struct partials *partials)
{
	struct holder *most = LIST_FIRST(&partials->holders), *each;

	LIST_FOREACH (each, &partials->holders, of_home) {
		const struct holder *own = each->network, *other = most->network;

		if (own->bytes > other->bytes || (own == other && each->bytes > most->bytes))
			most = each;
	}
	return most;
}

static struct assembly *largest_of(const struct holder *holder, struct assembly *spared)
{
	struct assembly *largest = NULL, *each;
	unsigned looks = 0;

	LIST_FOREACH (each, &holder->assemblies, of_holder) {
		if (each != spared && (!largest || each->charged > largest->charged))
			largest = each;
		if (++looks == LOOKS_MAX)
			break;
	}
	return largest ? largest : spared;
}

static void log_full(struct plx_fabric_lcore *home, const struct holder *most)
{
	char address[ADDRESS_GROUP_TEXT_BYTES];

	if (!plx_log_allowed(&home->partials.log_limit, plx_loop_now_ns()))
		return;
	address_group_format(&most->address, address, sizeof(address));
	log_warning("lcore %u: incomplete messages use all %" PRIu64 " KiB that they may have "
		    "(--partial-mem), and %u wait for more; %s holds most, %" PRIu64 " KiB",
		    home->id, bytes_max >> 10, home->partials.waiting, address, most->bytes >> 10);
}

/* Whose link ends. The first that waits is spared if all are of one address: it continues. Return:
 * NULL: none, because messages that do not wait make room once they are whole. */
static struct assembly *choose(struct plx_fabric_lcore *home)
{
	struct partials *partials = &home->partials;
	const struct holder *most = holds_most(partials);
	bool others_wait = partials->waiting > most->waiting;

	log_full(home, most);
	if (!others_wait && partials->waiting < partials->begun_count)
		return NULL;
	return largest_of(most, others_wait ? NULL : first_waiter(partials));
}

static void end(struct assembly *assembly)
{
	char address[ADDRESS_GROUP_TEXT_BYTES];

	address_group_format(&assembly->holder->address, address, sizeof(address));
	close_now(assembly->link, PLX_LINK_LOCAL,
		  "incomplete messages use all %" PRIu64 " KiB of partial_bytes (--partial-mem): "
		  "%s holds most, %" PRIu64 " KiB, and loses this one of %" PRIu64 " bytes",
		  bytes_max >> 10, address, assembly->holder->bytes >> 10, assembly->total);
	assembly_forget(assembly);
}

/* The first may need all room to be whole. Then the next ones get some later, from on_look, if it
 * does not use it. */
static void let_continue(struct partials *partials)
{
	uint64_t room = bytes_max - lesser(partials->bytes, bytes_max);

	while (room && partials->waiting) {
		struct assembly *first = first_waiter(partials);
		uint32_t frames = partial_stop_waiting(first);

		first->continued = true;
		room -= lesser(room, first->total - first->buf->len);
		receive_grant(first->link, frames);
	}
}

/* At most one link ends in a turn: to find it takes time. */
static void make_room(struct plx_task *task, void *arg)
{
	struct plx_fabric_lcore *home = arg;
	struct partials *partials = &home->partials;
	struct assembly *loser;
	unsigned drops = 0;

	if (!partials->waiting)
		return;
	while (partial_is_full(home) && !TAILQ_EMPTY(&partials->idle) && drops++ < DROPS_MAX)
		assembly_drop(TAILQ_FIRST(&partials->idle));
	loser = partial_is_full(home) && TAILQ_EMPTY(&partials->idle) ? choose(home) : NULL;
	if (loser)
		end(loser);
	let_continue(partials);
	/* What was freed here scheduled the task again, but is given away unless more is needed. */
	if (!partial_is_full(home))
		plx_task_cancel(task);
}

void partial_home_init(struct plx_fabric_lcore *home)
{
	struct partials *partials = &home->partials;

	partials->log_limit.burst = 1;
	TAILQ_INIT(&partials->begun);
	TAILQ_INIT(&partials->idle);
	TAILQ_INIT(&partials->waiters[0]);
	TAILQ_INIT(&partials->waiters[1]);
	plx_task_init(&partials->make_room, make_room, home);
}
