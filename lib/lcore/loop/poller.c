/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore_priv.h"

#include <stdlib.h>

/* Drop removed pollers; the others keep their order. */
void pollers_compact(struct pollers *pollers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < pollers->count; i++) {
		if (pollers->list[i]->removed)
			free(pollers->list[i]);
		else
			pollers->list[kept++] = pollers->list[i];
	}
	pollers->count = kept;
	pollers->removed = false;
}

/* Let the poller limit the sleep. Return: 0; -EAGAIN it refuses, or cannot be asked. */
static int ask(struct plx_poller *poller, struct plx_sleep *sleep)
{
	if (poller->arm && poller->arm(poller->arg, sleep) == 0)
		return 0;
	if (!poller->arm && !poller->told) {
		poller->told = true;
		idle_tell_unarmed(poller);
	}
	plx_sleep_nap(sleep);
	return -EAGAIN;
}

bool pollers_arm(struct pollers *pollers, struct plx_sleep *sleep, bool anyway)
{
	bool all = true, unsure = false;

	pollers->running = true;
	for (uint32_t i = 0; i < pollers->count && all; i++) {
		struct plx_poller *poller = pollers->list[i];

		if (poller->removed)
			continue;
		sleep->unsure = false;
		if (ask(poller, sleep))
			all = anyway || !poller->arm;
		poller->unsure = sleep->unsure;
		unsure |= sleep->unsure;
	}
	sleep->unsure = unsure;
	pollers_ran(pollers);
	return all;
}

void pollers_leave(struct pollers *pollers)
{
	for (uint32_t i = 0; i < pollers->count; i++) {
		if (pollers->list[i]->leave)
			pollers->list[i]->leave(pollers->list[i]->arg);
	}
}

int pollers_add(struct pollers *pollers, const struct plx_poller *model, struct plx_poller **out)
{
	struct plx_poller **list = realloc(pollers->list, (pollers->count + 1) * sizeof(*list));
	struct plx_poller *poller = aligned_alloc(PLX_CACHE_LINE, sizeof(*poller));

	if (list)
		pollers->list = list;
	if (!list || !poller) {
		free(poller);
		return plx_fail(ENOMEM, "no memory for poller %s", model->name);
	}
	*poller = *model;
	poller->owner = pollers;
	list[pollers->count++] = poller;
	if (out)
		*out = poller;
	return 0;
}

int plx_poller_add(const char *name, plx_poller_fn fn, void *arg, struct plx_poller **poller_out)
{
	const struct plx_poller poller = {.name = name, .fn = fn, .arg = arg};

	if (!loop_self)
		return plx_fail_no_lcore("plx_poller_add");
	if (!name || !fn)
		return plx_fail(EINVAL, "plx_poller_add: a poller has a name and a function");
	return pollers_add(&loop_self->pollers, &poller, poller_out);
}

void plx_poller_set_arm(struct plx_poller *poller, plx_poller_arm_fn arm)
{
	ASSERT_OWNER(poller->owner->lcore_id);
	poller->arm = arm;
}

void plx_poller_set_leave(struct plx_poller *poller, plx_poller_leave_fn leave)
{
	ASSERT_OWNER(poller->owner->lcore_id);
	poller->leave = leave;
}

void plx_poller_remove(struct plx_poller *poller)
{
	if (!poller)
		return;
	ASSERT_OWNER(poller->owner->lcore_id);
	poller->removed = true;
	poller->owner->removed = true;
	if (!poller->owner->running)
		pollers_compact(poller->owner);
}

void lcore_poller_keep(struct plx_poller *poller)
{
	poller->kept = true;
}

void pollers_park(struct pollers *pollers)
{
	for (uint32_t i = 0; i < pollers->count; i++)
		pollers->list[i]->removed |= !pollers->list[i]->kept;
	pollers_compact(pollers);
}

void pollers_fini(struct pollers *pollers)
{
	for (uint32_t i = 0; i < pollers->count; i++)
		free(pollers->list[i]);
	free(pollers->list);
	*pollers = (struct pollers){0};
}
