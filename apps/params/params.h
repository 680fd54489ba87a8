/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's options, and its commands, in reading order: main.c has the options and the
 * commands, of which watch.c is the longest; check.c checks the options; client.c calls the
 * service; snapshot.c is what a client knows; show.c prints. */
#ifndef PARAMS_H
#define PARAMS_H

#include "app.h"
#include "plx_rpc.h"
#include "snapshot.h"

/** The parsed command line: either serve or one command is set. */
struct params_conf {
	const char *serve, *listen, *service;
	uint64_t publish_port; /**< 0: any free port */
	const char *get, *set, *define, *remove, *ack;
	bool list, alarms, watch;
	const char *value;
	unsigned type; /**< enum param_type minus 1 */
	const char *unit;
	const char *limits[LIMIT_COUNT]; /**< NULL: none */
	bool latch;
	uint64_t expect;
	bool type_given, expect_given, deadline_given, format_given;
	bool fast;         /**< do not wait for the disk */
	const char *below; /**< NULL: all */
	unsigned format;   /**< 0: lines, 1: JSON */
	uint64_t deadline_ns;

	/* The options' values, once checked. */
	struct param_kind new_kind;   /**< of --define, otherwise a text */
	struct param_value new_value; /**< of --define; of --set as text */
};

/** Check the options together. Return: 0; -EINVAL. */
int params_check(struct params_conf *conf);

/** The command line. params_asked is valid once plx_app_start has run. */
extern const struct plx_app params_app;
extern const struct params_conf *const params_asked;

/** A client of one service, whose calls wait for their replies: they run the loop. */
int client_begin(const struct params_conf *conf);
void client_end(void);

/** A callback failed: calls return rc from now on, and the loop ends. */
void client_fail(int rc);
/** Return: 0; the rc of client_fail; -EINTR a signal. */
int client_over(void);

/** Call a method. once: never repeat it, even if the link must reconnect. The reply is valid until
 * the next call. Return: 0 a reply; -EIO an error of the service, with a text that starts with
 * `what`; -EAGAIN no reply, which may be different next time; as client_over. */
int client_call(const char *what, uint32_t method, bool once, const void *data, size_t length,
		const struct plx_rpc_result **reply_out);

/** List all parameters below --below into a snapshot. retries: request a page that fails again.
 * Return: as client_call; -EAGAIN snapshot_lose was called meanwhile; -EPROTO; -ENOMEM. */
int client_list(struct snapshot *snapshot, uint8_t flags, bool retries);

/** Show everything below a name, and each change, until a signal. Return: 0; -errno. */
int watch(void);

/** Print a parameter, as a line or as JSON. is_change: it may be removed. Return: 0; -EIO it could
 * not be written. */
int show_param(const struct param *param, bool is_change);

/** Print all of them. Return: as show_param. */
int show_list(const struct store *store);

#endif
