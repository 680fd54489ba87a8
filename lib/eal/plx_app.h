/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The start and the end of a program's main: its options and the EAL's, --help, --version and
 * --dry-run. Except for the log, only these functions of Pollux print. They never exit.
 *
 *     static const char *address;
 *     static const struct plx_option options[] = {
 *             PLX_ADDRESS("listen", &address, "host:port to listen on", .required = true),
 *             PLX_OPTIONS_END,
 *     };
 *     static const struct plx_app app = {.name = "hello", .summary = "...", .options = options};
 *
 *     int main(int argc, char **argv)
 *     {
 *             int status = plx_app_start(argc, argv, &app);
 *
 *             if (status != PLX_APP_RUN)
 *                     return status;
 *             ...
 *             return plx_app_finish(&app, rc ? plx_app_fail(&app) : 0);
 *     }
 */
#ifndef PLX_APP_H
#define PLX_APP_H

#include "plx_base.h"
#include "plx_eal.h"

/* Private. C names the members, C++ gives them in order: it has no designated initializers before
 * C++20. Members that a row leaves out are zero, in C++ without a warning. */
#ifdef __cplusplus
#define PLX_OPTION_MEMBER(member, ...) __VA_ARGS__
#define PLX_OPTION_ZERO \
	{               \
	}
#else
#define PLX_OPTION_MEMBER(member, ...) .member = __VA_ARGS__
#define PLX_OPTION_ZERO
#endif

PLX_BEGIN_DECLS

/* Options ---------------------------------------------------------------------------------- */

#define PLX_OPTIONS_MAX  64 /**< of a table */
#define PLX_APP_LIST_MAX 64

/** The values of a PLX_LIST option, in order. Ownership: they point into argv. */
struct plx_app_list {
	const char *at[PLX_APP_LIST_MAX];
	unsigned count;
};

enum plx_app_kind {
	PLX_APP_FLAG,     /**< bool *; takes no value */
	PLX_APP_STRING,   /**< const char ** */
	PLX_APP_ADDRESS,  /**< const char **, host:port, checked by plx_address_check */
	PLX_APP_UINT,     /**< uint64_t *, decimal, min to max */
	PLX_APP_SIZE,     /**< uint64_t *, bytes: 64, 4K, 1M, 2G; min to max */
	PLX_APP_DURATION, /**< uint64_t *, nanoseconds: 10 (seconds), 1.5s, 500ms, 20us, 1h */
	PLX_APP_CHOICE,   /**< unsigned *, index into `choices` */
	PLX_APP_LIST,     /**< struct plx_app_list *: strings; may be given several times */
};

/** An option: a row of a table. Write rows with the macros below. */
struct plx_option {
	const char *name PLX_OPTION_ZERO;        /**< without dashes; NULL ends the table */
	const char *placeholder PLX_OPTION_ZERO; /**< of its value in the help: "ADDR", "N"; NULL:
						  * takes none */
	enum plx_app_kind kind PLX_OPTION_ZERO;
	void *to PLX_OPTION_ZERO; /**< where to store the value; holds the default first */
	uint64_t min PLX_OPTION_ZERO, max PLX_OPTION_ZERO; /**< max 0: no limit */
	const char *const *choices PLX_OPTION_ZERO;        /**< CHOICE: ends with NULL */
	const char *help PLX_OPTION_ZERO;                  /**< with the default */

	/* These may follow the help in a row. */
	char letter PLX_OPTION_ZERO;       /**< 'p': "-p" for "--port"; 0: none */
	bool required PLX_OPTION_ZERO;     /**< must be given, in its modes; no FLAG */
	bool *given PLX_OPTION_ZERO;       /**< set if the option was given; may be NULL */
	bool may_be_empty PLX_OPTION_ZERO; /**< the value */
	uint32_t modes PLX_OPTION_ZERO;    /**< bit n: goes with modes[n] of struct plx_app; 0: with
					    * all of them */
};

/* Rows of a table that ends with PLX_OPTIONS_END. Each macro checks the type of `to`. `...` is the
 * help, then the members that follow it: in C by name, `.letter = 'p'`; in both languages by place,
 * `'p', true`. */
#define PLX_OPTION(kind_, type_, name_, placeholder_, to_, min_, max_, choices_, ...)       \
	{PLX_OPTION_MEMBER(name, (name_)),                                                  \
	 PLX_OPTION_MEMBER(placeholder, (placeholder_)),                                    \
	 PLX_OPTION_MEMBER(kind, (kind_)),                                                  \
	 PLX_OPTION_MEMBER(to, (true ? (to_) : PLX_CAST(type_ *, NULL))), /* or it warns */ \
	 PLX_OPTION_MEMBER(min, (min_)),                                                    \
	 PLX_OPTION_MEMBER(max, (max_)),                                                    \
	 PLX_OPTION_MEMBER(choices, (choices_)),                                            \
	 PLX_OPTION_MEMBER(help, __VA_ARGS__)}
#define PLX_FLAG(name, to, ...) \
	PLX_OPTION(PLX_APP_FLAG, bool, name, NULL, to, 0, 0, NULL, __VA_ARGS__)
#define PLX_TEXT(name, placeholder, to, ...) \
	PLX_OPTION(PLX_APP_STRING, const char *, name, placeholder, to, 0, 0, NULL, __VA_ARGS__)
#define PLX_ADDRESS(name, to, ...) \
	PLX_OPTION(PLX_APP_ADDRESS, const char *, name, "ADDR", to, 0, 0, NULL, __VA_ARGS__)
#define PLX_LIST(name, placeholder, to, ...)                                             \
	PLX_OPTION(PLX_APP_LIST, struct plx_app_list, name, placeholder, to, 0, 0, NULL, \
		   __VA_ARGS__)
#define PLX_CHOICE(name, placeholder, to, choices, ...) \
	PLX_OPTION(PLX_APP_CHOICE, unsigned, name, placeholder, to, 0, 0, choices, __VA_ARGS__)
#define PLX_UINT(name, placeholder, to, min, max, ...) \
	PLX_OPTION(PLX_APP_UINT, uint64_t, name, placeholder, to, min, max, NULL, __VA_ARGS__)
#define PLX_SIZE(name, placeholder, to, min, max, ...) \
	PLX_OPTION(PLX_APP_SIZE, uint64_t, name, placeholder, to, min, max, NULL, __VA_ARGS__)
#define PLX_TIME(name, placeholder, to, min, max, ...) \
	PLX_OPTION(PLX_APP_DURATION, uint64_t, name, placeholder, to, min, max, NULL, __VA_ARGS__)
#define PLX_OPTIONS_END {PLX_OPTION_MEMBER(name, NULL)}

/* The program ------------------------------------------------------------------------------ */

/** What a program says about itself. NULL members are omitted. C++ before 20: start from `{}` and
 * assign the members. Ownership: the caller keeps it until the program ends. */
struct plx_app {
	const char *name PLX_OPTION_ZERO;    /**< NULL: the name of the program's file */
	const char *version PLX_OPTION_ZERO; /**< for --version, which also prints Pollux's */
	const char *summary PLX_OPTION_ZERO; /**< one line */
	/** Lines for "Usage:", such as "  hello [EAL options] --listen ADDR". NULL: they are made
	 * from the table of options. */
	const char *usage PLX_OPTION_ZERO;
	const char *examples PLX_OPTION_ZERO; /**< lines: "  hello --listen 127.0.0.1:7000" */
	const char *more PLX_OPTION_ZERO;     /**< where to read on: "man hello" */
	const struct plx_option *options PLX_OPTION_ZERO; /**< at most PLX_OPTIONS_MAX rows */
	/** The program's own settings of the EAL. The command line and the configuration file
	 * override them. */
	const struct plx_eal_conf *eal PLX_OPTION_ZERO;
	/** Check the options in combination. Return: 0; plx_fail(EINVAL, ...), a usage error. */
	int (*check)(void) PLX_OPTION_ZERO;
	/** Return whether this run only waits for answers and ends: then it sleeps (--idle event)
	 * on any allowed CPU, unless the user decides otherwise. Called after check. */
	bool (*is_short)(void) PLX_OPTION_ZERO;
	/** If the program does one of several things, such as "send" and "receive": these words, up
	 * to 32, ended by NULL. The first word of the command line must be one of them, and its
	 * index is stored in *mode. */
	const char *const *modes PLX_OPTION_ZERO;
	unsigned *mode PLX_OPTION_ZERO;
};

/** Not an exit status: run the program. */
#define PLX_APP_RUN (-1)

/** Parse the EAL's and the program's options, in any order, and start the EAL. If both have an
 * option of the same name, it is the program's, or the EAL's before a "--". Words that are not
 * options are refused.
 *
 * Handles --help, --version and --dry-run. Prints every error once. Ignores SIGPIPE and SIGXFSZ, so
 * that writes fail instead. Gives standard output a large buffer unless it is a terminal; use
 * plx_app_say for lines that a reader waits for. Calls plx_stop_on_signals last: before that,
 * signals end the program at once.
 * Thread: setup; the caller becomes the main lcore.
 * Return: PLX_APP_RUN. Otherwise nothing runs, and main returns this exit status: 0 after help,
 * version or dry run; 2 after a usage error; 1 after any other error, such as a faulty table of
 * options. */
int plx_app_start(int argc, char **argv, const struct plx_app *app);

/** Print "NAME: text" of plx_error to standard error. Thread: any. Return: 1, for `return`. */
int plx_app_fail(const struct plx_app *app);

/** Print one line to standard output at once, at most 1022 bytes. The line is lost if a pipe is
 * full or has no reader, because an lcore never waits for readers. plx_app_flush reports any other
 * failure. Thread: any. */
void plx_app_say(const char *format, ...) PLX_PRINTF(1, 2);

/** Flush standard output. It may wait for a reader. Thread: any.
 * Return: 0 all output so far was written; -EIO, with a text, once per failure; the unwritten
 * output is discarded. */
int plx_app_flush(void);

/** The end of main: plx_eal_fini, then plx_app_flush. Prints what fails.
 * Thread: main, outside its loop; any that is not an lcore, if the main lcore's thread has left.
 * Return: `status`; 1 if an lcore hangs, or if status is 0 and output was lost. */
int plx_app_finish(const struct plx_app *app, int status);

PLX_END_DECLS

#endif
