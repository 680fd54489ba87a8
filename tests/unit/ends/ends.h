/* SPDX-License-Identifier: BSD-3-Clause */
/* Each call that ends something, made in each callback, in each place where callbacks run. A part
 * has objects of one library, its calls and its callbacks. ends_test.c makes the objects anew for
 * each pair, makes the call in the callback's first run, and ends the rest as a program would. One
 * "call" that every callback makes is to throw an exception of C++.
 *
 * Callbacks of a part call ends_in with their names, and the part's ends set handles to NULL: a
 * call that would end what is gone already is not made. */
#ifndef ENDS_H
#define ENDS_H

#include "plx_test.h"

#include "netio.h"
#include "plx_direct.h"
#include "plx_eal.h"
#include "plx_fabric.h"
#include "plx_rpc.h"

/** Places where callbacks run. */
enum ends_place {
	ENDS_IN_RUN,         /* plx_loop_run */
	ENDS_IN_NETIO_RUN,   /* netio_run */
	ENDS_IN_DRAIN,       /* plx_fabric_drain */
	ENDS_IN_NETIO_DRAIN, /* netio_drain */
	ENDS_IN_FINI,        /* plx_eal_fini */
	ENDS_IN_NETIO_FINI,  /* netio_fini */
	ENDS_PLACES
};

/** What a call does in a callback. */
enum ends_outcome {
	ENDS_WORKS,   /* at once: no callback of the object follows */
	ENDS_CALLS,   /* the same, but some run inside the call */
	ENDS_DEFERS,  /* the loop does it after the callback, which may still use the object */
	ENDS_REFUSES, /* -EBUSY, and nothing has changed */
	ENDS_LOGS,    /* an error in the log, and nothing has changed */
};

struct ends_call {
	const char *name; /* with a space: no function, so the table lacks it */
	enum ends_outcome outcome;
	/** Return: the call's result; 1: it was not made, because what it ends is gone. */
	int (*make)(void);
};

struct ends_callback {
	const char *name;
	unsigned places; /* bits of those in which it must have run */
};

struct ends_part {
	const char *name;
	/** Make the objects, and turn the loop until they are ready. */
	void (*up)(const char *provider);
	/** Do what makes the callbacks run soon. */
	void (*kick)(void);
	/** End what is left; is_up: the lcores are. */
	void (*down)(bool is_up);
	const struct ends_call *calls;
	unsigned call_count;
	const struct ends_callback *callbacks;
	unsigned callback_count;
};

extern const struct ends_part ends_lcore, ends_link, ends_rpc, ends_netio;
extern struct netio_context ends_context; /* not in ENDS_IN_FINI */

/** A callback of an object runs: make the call, if this is the callback of the pair. Fails if the
 * object has ended, or inside a call that runs no callbacks. */
void ends_in(const char *callback, const void *object);

/** A call has ended the object: none of its callbacks runs from now on. */
void ends_ended(const void *object);

/** Turn the loop until done(); fail after 10 s. */
void ends_turn_until(bool (*done)(void));

#define ENDS_RUNS   (1u << ENDS_IN_RUN | 1u << ENDS_IN_NETIO_RUN)
#define ENDS_DRAINS (1u << ENDS_IN_DRAIN | 1u << ENDS_IN_NETIO_DRAIN)
#define ENDS_FINIS  (1u << ENDS_IN_FINI | 1u << ENDS_IN_NETIO_FINI)
#define ENDS_ALL    (ENDS_RUNS | ENDS_DRAINS | ENDS_FINIS)
#define ENDS_NETIO  (1u << ENDS_IN_NETIO_RUN | 1u << ENDS_IN_NETIO_DRAIN | 1u << ENDS_IN_NETIO_FINI)

/** A callback with those parameters that only runs ends_in. */
#define ENDS_RUN(function, callback, object, ...) \
	static void function(__VA_ARGS__)         \
	{                                         \
		ends_in(callback, object);        \
	}

/** A call of one function that returns nothing. */
#define ENDS_CALL(function, ...)         \
	static int call_##function(void) \
	{                                \
		function(__VA_ARGS__);   \
		return 0;                \
	}

/** The same of an object, none of whose callbacks follows. Objects of NetIO may be ended twice. */
#define ENDS_FINISH(name, function, object) \
	static int name(void)               \
	{                                   \
		function(&object);          \
		ends_ended(&object);        \
		return 0;                   \
	}

/** A call that only needs a handle, and takes it. The address of the handle names the object. */
#define ENDS_TAKE(function, handle)    \
	static int take_##handle(void) \
	{                              \
		if (!handle)           \
			return 1;      \
		function(handle);      \
		handle = NULL;         \
		ends_ended(&handle);   \
		return 0;              \
	}

/** The part of a file with these functions and tables. */
#define ENDS_PART(part, name)                                           \
	const struct ends_part part = {name,      up,                   \
				       kick,      down,                 \
				       calls,     PLX_ARRAY_LEN(calls), \
				       callbacks, PLX_ARRAY_LEN(callbacks)}

#endif
