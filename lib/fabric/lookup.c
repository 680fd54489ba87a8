/* SPDX-License-Identifier: BSD-3-Clause */
/* Name look-ups on separate threads: a resolver may block for seconds, and an lcore must not. One
 * thread at a time looks up a name, at most once a second. All callers that ask meanwhile share the
 * result, including a failure. getaddrinfo has no time-out: if it blocks all THREADS_MAX threads,
 * other names wait. */
#include "fabric_address.h"
#include "fabric_lcore.h"
#include "list.h"
#include "owner.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>

#define THREADS_MAX 4
#define NAMES_MAX   64
#define FRESH_NS    PLX_NS_PER_S /* a result is valid this long */

enum name_state {
	NAME_FREE,    /* or an old result: may be replaced */
	NAME_WAITING, /* no thread has it yet */
	NAME_ASKED,
	NAME_KNOWN,
};

/* The lock guards all of these. Entries are never freed: a thread that is still in getaddrinfo
 * after plx_fabric_fini writes to its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plx_name {
	char host[PLX_ADDRESS_MAX];
	enum name_state state;
	TAILQ_ENTRY(plx_name) of_waiting;
	uint64_t known_ns;
	struct address_list list; /* empty: see why */
	char why[128];
	struct lookups lookups; /* callers that wait for it */
} names[NAMES_MAX];
static TAILQ_HEAD(, plx_name) waiting = TAILQ_HEAD_INITIALIZER(waiting);
static unsigned threads;

static void leave(struct plx_lookup *lookup)
{
	LIST_REMOVE(lookup, of_list);
	lookup->of_list.le_prev = NULL;
}

/* Threads -------------------------------------------------------------------------------------- */

static void ask(struct plx_name *name)
{
	struct address_list list = {0};
	char why[sizeof(name->why)] = "";
	struct plx_lookup *lookup, *next;

	TAILQ_REMOVE(&waiting, name, of_waiting);
	name->state = NAME_ASKED; /* so its entry is not reused */
	pthread_mutex_unlock(&lock);
	address_ask(name->host, &list, why, sizeof(why));
	pthread_mutex_lock(&lock);
	name->list = list;
	memcpy(name->why, why, sizeof(why));
	name->known_ns = plx_now_ns();
	name->state = NAME_KNOWN;
	LIST_FOREACH_SAFE (lookup, &name->lookups, of_list, next) {
		LIST_REMOVE(lookup, of_list);
		LIST_INSERT_HEAD(&lookup->home->looked_up, lookup, of_list);
		plx_signal_fire(&lookup->home->looked_up_signal);
	}
}

static void *ask_all(void *arg)
{
	struct plx_name *name;

	pthread_setname_np(pthread_self(), "plx-names");
	pthread_mutex_lock(&lock);
	while ((name = TAILQ_FIRST(&waiting)) != NULL)
		ask(name);
	threads--;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Blocks signals: they are for the program's threads. May run on any CPU instead of inheriting the
 * lcore's affinity. */
static int start_thread(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	cpu_set_t cpus;
	int rc;

	memset(&cpus, 0xff, sizeof(cpus));
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attr, ask_all, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	threads += rc == 0;
	return rc;
}

/* Names ---------------------------------------------------------------------------------------- */

static bool is_fresh(const struct plx_name *name)
{
	return name->state == NAME_KNOWN && plx_now_ns() - name->known_ns < FRESH_NS;
}

static bool is_pending(const struct plx_name *name)
{
	return name->state == NAME_WAITING || name->state == NAME_ASKED;
}

static struct plx_name *find(const char *host)
{
	for (struct plx_name *name = names; name < names + NAMES_MAX; name++) {
		if (name->state != NAME_FREE && strcmp(name->host, host) == 0)
			return name;
	}
	return NULL;
}

/* NULL: all entries are in use. */
static struct plx_name *make(const char *host)
{
	struct plx_name *oldest = NULL;

	for (struct plx_name *name = names; name < names + NAMES_MAX; name++) {
		if (!is_pending(name) && (!oldest || name->known_ns < oldest->known_ns))
			oldest = name;
	}
	if (oldest)
		snprintf(oldest->host, sizeof(oldest->host), "%s", host);
	return oldest;
}

static int start_locked(struct plx_lookup *lookup, const char *host)
{
	struct plx_name *name = find(host);
	int rc = 0;

	if (name && is_fresh(name))
		return 1;
	name = name ?: make(host);
	if (!name)
		return plx_fail(EAGAIN, "look up %s: %d other names are looked up already", host,
				NAMES_MAX);
	if (!is_pending(name)) {
		if (threads < THREADS_MAX)
			rc = start_thread();
		if (rc && !threads)
			return plx_fail(EAGAIN, "look up %s: no thread: %s", host, strerror(rc));
		name->state = NAME_WAITING;
		TAILQ_INSERT_TAIL(&waiting, name, of_waiting);
	}
	LIST_INSERT_HEAD(&name->lookups, lookup, of_list);
	return 0;
}

bool lookup_known(const char *host, struct address_list *list_out, char *why, size_t size)
{
	struct plx_name *name;
	bool known;

	pthread_mutex_lock(&lock);
	name = find(host);
	known = name && is_fresh(name);
	if (known) {
		*list_out = name->list;
		snprintf(why, size, "%s", name->why);
	}
	pthread_mutex_unlock(&lock);
	return known;
}

/* An lcore's ----------------------------------------------------------------------------------- */

static void notify(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct plx_fabric_lcore *home = arg;
	struct plx_lookup *lookup;

	pthread_mutex_lock(&lock);
	while ((lookup = LIST_FIRST(&home->looked_up)) != NULL) {
		leave(lookup);
		pthread_mutex_unlock(&lock);
		lookup->fn(lookup, lookup->arg);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}

int lookup_home_init(struct plx_fabric_lcore *home)
{
	return plx_signal_init(&home->looked_up_signal, home->id, notify, home);
}

static void forget_all(struct lookups *list, const struct plx_fabric_lcore *home)
{
	struct plx_lookup *lookup, *next;

	LIST_FOREACH_SAFE (lookup, list, of_list, next) {
		if (lookup->home == home)
			leave(lookup);
	}
}

void lookup_home_fini(struct plx_fabric_lcore *home)
{
	pthread_mutex_lock(&lock);
	for (struct plx_name *name = names; name < names + NAMES_MAX; name++)
		forget_all(&name->lookups, home);
	forget_all(&home->looked_up, home);
	pthread_mutex_unlock(&lock);
	plx_signal_fini(&home->looked_up_signal);
}

int plx_lookup_start(struct plx_lookup *lookup, const char *address, plx_lookup_fn fn, void *arg)
{
	struct plx_fabric_lcore *home;
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];
	int rc = fabric_here("plx_lookup_start", &home);

	rc = rc ? rc : address_split("look up", address, host, port);
	if (rc)
		return rc;
	if (address_is_number(host))
		return 1;
	*lookup = (struct plx_lookup){.fn = fn, .arg = arg, .home = home};
	pthread_mutex_lock(&lock);
	rc = start_locked(lookup, host);
	pthread_mutex_unlock(&lock);
	return rc;
}

void plx_lookup_cancel(struct plx_lookup *lookup)
{
	pthread_mutex_lock(&lock);
	if (lookup->of_list.le_prev) {
		ASSERT_OWNER(lookup->home->id);
		leave(lookup);
	}
	pthread_mutex_unlock(&lock);
}
