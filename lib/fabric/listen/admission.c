/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits on what unknown peers can make a listener hold: links in total and per address,
 * connections per second, and links in handshake. All under one lock, taken only when connections
 * come and go. */
#include "fabric_listen.h"

#include <search.h>
#include <stdlib.h>

#define BURST_PART 4 /* this part of a second's connections may come in a burst */

static struct plx_admission defaults;

static struct plx_admission complete(const struct plx_admission *asked,
				     const struct plx_admission *otherwise)
{
	return (struct plx_admission){
		.links_max = asked->links_max ?: otherwise->links_max,
		.links_per_host_max = asked->links_per_host_max ?: otherwise->links_per_host_max,
		.accepts_per_s = asked->accepts_per_s ?: otherwise->accepts_per_s,
		.handshakes_max = asked->handshakes_max ?: otherwise->handshakes_max,
	};
}

void admission_set_defaults(const struct plx_admission *conf)
{
	static const struct plx_admission built_in = {
		.links_max = 4096,
		.links_per_host_max = 1024,
		.accepts_per_s = 1000,
		.handshakes_max = 256,
	};

	defaults = complete(conf, &built_in);
}

void admission_init(struct admission *admission, const struct plx_admission *asked)
{
	*admission = (struct admission){.limits = complete(asked, &defaults)};
	pthread_mutex_init(&admission->lock, NULL);
	TAILQ_INIT(&admission->in_handshake);
	for (unsigned i = 0; i < ADMISSION_CAUSES; i++)
		admission->log_limits[i].burst = 1;
}

/* Under the lock. ----------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct in6_addr));
}

/* Return: NULL: no memory. */
static struct admission_host *add_host(struct admission *admission, const struct in6_addr *address)
{
	struct admission_host *host = calloc(1, sizeof(*host));

	if (!host)
		return NULL;
	host->address = *address;
	if (tsearch(host, &admission->hosts, by_address))
		return host;
	free(host);
	return NULL;
}

static void end_handshake(struct ticket *ticket)
{
	struct admission *admission = ticket->admission;

	if (!ticket->of_handshakes.tqe_prev)
		return;
	TAILQ_REMOVE(&admission->in_handshake, ticket, of_handshakes);
	ticket->of_handshakes.tqe_prev = NULL;
	ticket->host->handshakes--;
	admission->handshakes--;
}

/* The oldest handshake of the address that has most: a flood evicts its own connections. Return:
 * NULL: there is none. */
static struct ticket *evict_one(struct admission *admission)
{
	struct ticket *found = TAILQ_FIRST(&admission->in_handshake), *each;

	TAILQ_FOREACH (each, &admission->in_handshake, of_handshakes) {
		if (each->host->handshakes > found->host->handshakes)
			found = each;
	}
	if (!found)
		return NULL;
	end_handshake(found);
	atomic_store_explicit(&found->evicted, true, memory_order_relaxed);
	found->refs++;
	counter_add_shared(&admission->counts[ADMISSION_EVICTED], 1);
	return found;
}

/* A leaky bucket as a schedule: each connection is due one gap after the last one, and a burst may
 * come early (the "virtual scheduling" of ITU-T I.371). Return: whether it may be accepted. */
static bool is_due(struct admission *admission, uint64_t most_ns, uint64_t *wait_ns_out)
{
	uint64_t now_ns = plx_loop_now_ns(), rate = admission->limits.accepts_per_s;
	uint64_t gap_ns = PLX_NS_PER_S / rate, burst_ns = PLX_NS_PER_S / BURST_PART;
	uint64_t due_ns = greater(admission->next_ns, now_ns);

	*wait_ns_out = plx_time_since(burst_ns, due_ns - now_ns);
	if (*wait_ns_out > most_ns)
		return false;
	admission->next_ns = due_ns + gap_ns;
	return true;
}

/* Return: as admission_ask; answer->ticket is a new one. */
static int take(struct admission *admission, const struct in6_addr *address, uint64_t most_ns,
		struct admission_answer *answer)
{
	struct admission_host **found = tfind(address, &admission->hosts, by_address);
	struct admission_host *host = found ? *found : NULL;

	answer->cause = ADMISSION_LINKS;
	if (admission->links >= admission->limits.links_max)
		return -EBUSY;
	answer->cause = ADMISSION_HOST;
	if (host && host->links >= admission->limits.links_per_host_max)
		return -EBUSY;
	answer->cause = ADMISSION_RATE;
	if (!is_due(admission, most_ns, &answer->wait_ns))
		return -EBUSY;
	if (!host)
		host = add_host(admission, address);
	if (!host)
		return -ENOMEM;
	if (admission->handshakes >= admission->limits.handshakes_max)
		answer->evicted = evict_one(admission);
	answer->ticket->host = host;
	host->links++;
	host->handshakes++;
	admission->links++;
	admission->handshakes++;
	TAILQ_INSERT_TAIL(&admission->in_handshake, answer->ticket, of_handshakes);
	return 0;
}

/* Connections --------------------------------------------------------------------------------- */

int admission_ask(struct admission *admission, const struct in6_addr *host, uint64_t most_ns,
		  struct admission_answer *answer)
{
	struct ticket *ticket = malloc(sizeof(*ticket));
	int rc;

	if (!ticket)
		return -ENOMEM;
	*ticket = (struct ticket){.admission = admission, .refs = 1};
	*answer = (struct admission_answer){.ticket = ticket};
	pthread_mutex_lock(&admission->lock);
	rc = take(admission, host, most_ns, answer);
	pthread_mutex_unlock(&admission->lock);
	if (rc == -EBUSY)
		counter_add_shared(&admission->counts[answer->cause], 1);
	if (rc)
		free(ticket);
	return rc;
}

void admission_placed(struct ticket *ticket, struct plx_link *link)
{
	pthread_mutex_lock(&ticket->admission->lock);
	ticket->request = NULL;
	ticket->link = link;
	ticket->lcore = plx_lcore_id();
	pthread_mutex_unlock(&ticket->admission->lock);
}

struct admission_state admission_look(struct ticket *ticket)
{
	struct admission_state state;

	pthread_mutex_lock(&ticket->admission->lock);
	state = (struct admission_state){ticket->request, ticket->link, ticket->lcore};
	pthread_mutex_unlock(&ticket->admission->lock);
	return state;
}

void admission_opened(struct ticket *ticket)
{
	pthread_mutex_lock(&ticket->admission->lock);
	end_handshake(ticket);
	pthread_mutex_unlock(&ticket->admission->lock);
}

void admission_unref(struct ticket *ticket)
{
	struct admission *admission = ticket->admission;
	bool last;

	pthread_mutex_lock(&admission->lock);
	last = --ticket->refs == 0;
	pthread_mutex_unlock(&admission->lock);
	if (last)
		free(ticket);
}

void admission_leave(struct ticket *ticket)
{
	struct admission *admission;

	if (!ticket)
		return;
	admission = ticket->admission;
	pthread_mutex_lock(&admission->lock);
	end_handshake(ticket);
	if (--ticket->host->links == 0) {
		tdelete(ticket->host, &admission->hosts, by_address);
		free(ticket->host);
	}
	admission->links--;
	ticket->link = NULL;
	ticket->request = NULL;
	pthread_mutex_unlock(&admission->lock);
	admission_unref(ticket);
}
