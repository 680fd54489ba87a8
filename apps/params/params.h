/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PARAMS_H
#define PARAMS_H

#include "app.h"
#include "param.h"
#include "plx_rpc.h"

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
	bool type_given, expect_given, deadline_given;
	bool fast;         /**< do not wait for the disk */
	const char *below; /**< NULL: all */
	bool json;
	uint64_t deadline_ns;

	/* The options' values, once checked. */
	struct param_kind new_kind;   /**< of --define */
	struct param_value new_value; /**< of --define; of --set as text */
};

/** Check the options together. Return: 0; -EINVAL. */
int params_check(struct params_conf *conf);

/** The command line. params_asked is valid once plx_app_start has run. */
extern const struct plx_app params_app;
extern const struct params_conf *const params_asked;

/** Run the command on a service. Thread: the main lcore. Return: 0; -errno. */
int params_command(const struct params_conf *conf);

/** The result of a call; release it with answer_let_go. */
struct answer {
	enum plx_rpc_status status;
	uint32_t code;
	const uint8_t *data;
	uint32_t length;
	bool may_have_run, done;
	struct plx_buf *message;
};

/** Call a method, and turn the loop until it is done. once: never repeat it, even if the link must
 * reconnect. Return: 0 a reply; -EIO no reply, or an error of the service, with a text that starts
 * with `what`; -EINTR a signal. */
int params_call(struct plx_rpc_client *client, const char *what, uint32_t method, bool once,
		const void *data, size_t length, struct answer *answer_out);
void answer_let_go(struct answer *answer);

/** Print a parameter, as a line or as JSON. Return: 0; -EIO it could not be written. */
int show_param(const struct param *param);

/** Print one line for each change, at once. Return: as show_param. */
int show_change(const struct param *param, bool removed);

/** Print a list: begin, each parameter, end. end returns as show_param. */
void show_begin(void);
void show_one(const struct param *param);
int show_end(void);

#endif
