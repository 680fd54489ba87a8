/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that do not complete a handshake: the wrong program or port. They retry, so each host gets
 * one log line per second. */
#include "fabric_link.h"
#include "fabric_listen.h"

#define PAUSE_NS PLX_NS_PER_S

/* Return: the host's entry, or the oldest one; NULL: all entries are in their pause. */
static struct handshake_log_host *find(struct listener_shared *shared, const struct in6_addr *host,
				       uint64_t now_ns)
{
	struct handshake_log_host *oldest = &shared->log_hosts[0];

	for (unsigned i = 0; i < HANDSHAKE_LOG_HOSTS; i++) {
		struct handshake_log_host *each = &shared->log_hosts[i];

		if (each->next_ns && memcmp(&each->host, host, sizeof(*host)) == 0)
			return each;
		if (each->next_ns < oldest->next_ns)
			oldest = each;
	}
	return oldest->next_ns <= now_ns ? oldest : NULL;
}

static bool may_log(struct listener_shared *shared, const struct in6_addr *host)
{
	uint64_t now_ns = plx_loop_now_ns();
	struct handshake_log_host *entry;
	bool may;

	pthread_mutex_lock(&shared->lock);
	entry = find(shared, host, now_ns);
	may = entry && entry->next_ns <= now_ns;
	if (may)
		*entry = (struct handshake_log_host){*host, now_ns + PAUSE_NS};
	pthread_mutex_unlock(&shared->lock);
	return may;
}

static void log_host(struct listener_shared *shared, const struct in6_addr *host, const char *peer,
		     const char *who, const char *what)
{
	if (may_log(shared, host))
		plx_log(&fabric_log, PLX_LOG_WARNING, "%s did not complete the handshake: %s%s",
			peer, who, what);
}

void handshake_log_failed(const struct plx_link *link, const char *who, const char *what)
{
	struct in6_addr host = {0};

	counter_add_shared(&link->from->no_handshake, 1);
	if (link->ticket)
		host = admission_address(link->ticket);
	log_host(link->from, &host, link->peer, who, what);
}

void handshake_log_refused(const struct sockaddr *peer, const char *why, bool evicted, void *shared)
{
	struct listener_shared *listener = shared;
	struct in6_addr host = address_host(peer);
	char address[PLX_ADDRESS_MAX];

	if (evicted)
		admission_count_evicted(&listener->admission);
	else
		counter_add_shared(&listener->no_handshake, 1);
	address_format(peer, address, sizeof(address));
	log_host(listener, &host, address, "", why);
}
