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
#include <stdlib.h>

#define THREADS_MAX 4
#define FRESH_NS    PLX_NS_PER_S /* a result is valid this long */
#define NOTIFY_MAX  8            /* callbacks per turn: each may open a link */

enum name_state {
	NAME_WAITING, /* no thread has it yet */
	NAME_ASKED,   /* a thread is in getaddrinfo, maybe also after plx_fabric_fini */
	NAME_KNOWN,
};

/* Exists while callers wait for it, a thread looks it up, or its result is valid. */
struct plx_name {
	LIST_ENTRY(plx_name) of_names;
	TAILQ_ENTRY(plx_name) of_waiting;
	enum name_state state;
	uint32_t unnotified; /* callers whose callback has not run: it stays valid for them */
	uint64_t known_ns;
	struct lookups lookups; /* callers that wait for the result */
	struct address_list list;
	char host[PLX_ADDRESS_MAX];
};

/* The lock guards all of these. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, plx_name) names = LIST_HEAD_INITIALIZER(names);
static TAILQ_HEAD(, plx_name) waiting = TAILQ_HEAD_INITIALIZER(waiting);
static unsigned threads;

static void drop(struct plx_name *name)
{
	if (name->state == NAME_WAITING)
		TAILQ_REMOVE(&waiting, name, of_waiting);
	LIST_REMOVE(name, of_names);
	free(name);
}

static void leave(struct plx_lookup *lookup)
{
	struct plx_name *name = lookup->name;

	LIST_REMOVE(lookup, of_list);
	lookup->of_list.le_prev = NULL;
	if (name->state == NAME_KNOWN)
		name->unnotified--;
	else if (name->state == NAME_WAITING && LIST_EMPTY(&name->lookups))
		drop(name);
}

/* Threads -------------------------------------------------------------------------------------- */

static void ask(struct plx_name *name)
{
	struct address_list list = {0};
	struct plx_lookup *lookup, *next;

	TAILQ_REMOVE(&waiting, name, of_waiting);
	name->state = NAME_ASKED; /* so that nobody frees it */
	pthread_mutex_unlock(&lock);
	address_ask(name->host, &list);
	pthread_mutex_lock(&lock);
	name->list = list;
	name->known_ns = plx_now_ns();
	name->state = NAME_KNOWN;
	LIST_FOREACH_SAFE (lookup, &name->lookups, of_list, next) {
		LIST_REMOVE(lookup, of_list);
		LIST_INSERT_HEAD(&lookup->home->looked_up, lookup, of_list);
		name->unnotified++;
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

static bool is_stale(const struct plx_name *name)
{
	return name->state == NAME_KNOWN && !name->unnotified &&
	       plx_now_ns() - name->known_ns >= FRESH_NS;
}

/* Also frees stale results. */
static struct plx_name *find(const char *host)
{
	struct plx_name *name, *next;

	LIST_FOREACH_SAFE (name, &names, of_names, next) {
		if (is_stale(name))
			drop(name);
		else if (strcmp(name->host, host) == 0)
			return name;
	}
	return NULL;
}

/* Return: 0; -EAGAIN; -ENOMEM. */
static int make(const char *host, struct plx_name **name_out)
{
	int rc = threads < THREADS_MAX ? start_thread() : 0;
	struct plx_name *name;

	if (rc && !threads)
		return plx_fail(EAGAIN,
				"look up %s: no thread can be started: %s; raise the limit of "
				"processes (ulimit -u, pids.max), or give an address",
				host, strerror(rc));
	name = calloc(1, sizeof(*name));
	if (!name)
		return plx_fail(ENOMEM, "look up %s: out of memory", host);
	snprintf(name->host, sizeof(name->host), "%s", host);
	LIST_INSERT_HEAD(&names, name, of_names);
	/* A thread exists, and looks at the list before it ends. */
	TAILQ_INSERT_TAIL(&waiting, name, of_waiting);
	*name_out = name;
	return 0;
}

static int start_locked(struct plx_lookup *lookup, const char *host)
{
	struct plx_name *name = find(host);
	int rc = name ? 0 : make(host, &name);

	if (rc)
		return rc;
	if (name->state == NAME_KNOWN)
		return 1;
	lookup->name = name;
	LIST_INSERT_HEAD(&name->lookups, lookup, of_list);
	return 0;
}

bool lookup_known(const char *host, struct address_list *list_out)
{
	struct plx_name *name;
	bool known;

	pthread_mutex_lock(&lock);
	name = find(host);
	known = name && name->state == NAME_KNOWN;
	if (known)
		*list_out = name->list;
	pthread_mutex_unlock(&lock);
	return known;
}

/* An lcore's ----------------------------------------------------------------------------------- */

static struct plx_lookup *take_looked_up(struct plx_fabric_lcore *home)
{
	struct plx_lookup *lookup;

	pthread_mutex_lock(&lock);
	lookup = LIST_FIRST(&home->looked_up);
	if (lookup) {
		leave(lookup);
		lookup->name->known_ns = plx_now_ns(); /* valid in its callback */
	}
	pthread_mutex_unlock(&lock);
	return lookup;
}

static void notify(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct plx_lookup *lookup = NULL;

	for (unsigned i = 0; i < NOTIFY_MAX && (lookup = take_looked_up(arg)) != NULL; i++)
		lookup->fn(lookup, lookup->arg);
	if (lookup) /* there may be more */
		plx_signal_fire(signal);
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
	struct plx_name *name, *next;

	pthread_mutex_lock(&lock);
	LIST_FOREACH_SAFE (name, &names, of_names, next)
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
	if (!host[0] || address_is_number(host))
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
