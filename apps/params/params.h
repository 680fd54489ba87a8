/* SPDX-License-Identifier: BSD-3-Clause */
/* The program, in reading order: main.c has the options and the commands, of which watch.c is the
 * longest; check.c checks the options; serve.c is the service, on one lcore, and publishes changes;
 * methods.c answers requests; client.c calls the service; snapshot.c is what a client knows; show.c
 * prints. */
#ifndef PARAMS_H
#define PARAMS_H

#include "app.h"
#include "journal.h"
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

/* The service --------------------------------------------------------------------------------- */

/** Serve until the loop ends. Thread: the main lcore. Return: 0; -errno. */
int serve(const struct params_conf *conf);

/** The two parts of it, for tests that run the loop themselves. Return: 0; -errno; from serve_end
 * also -EIO changes are lost, -ESTALE the file was moved. */
int serve_begin(const struct params_conf *conf);
int serve_end(const struct params_conf *conf);

/** Where it listens. */
const char *serve_address(void);

/** Register all methods for that store and journal, which must outlive the last call. For one
 * service only.
 * Return: 0; -ENOMEM. */
int methods_add(struct plx_rpc_service *service, struct store *store, struct journal *journal);

/** Reply to a request that waited for the disk: a journal_answer_fn. */
void methods_answer(void *request, uint64_t revision, bool is_written);

/** Send the record to subscribers; slow ones get only the newest of each parameter. */
void publish_change(const struct param *param);
unsigned publish_port(void);

/* Clients ------------------------------------------------------------------------------------- */

/** What a client knows of a service's parameters: those it has listed, and the changes published
 * since then. These come by two paths, and one path may deliver older states than the other. */
struct snapshot {
	struct store *now;  /**< as last reported to `news` */
	struct store *next; /**< what the service has reported since the last loss, or since the
			     * list began, with removals; NULL: the last list is complete */
	unsigned losses;
	bool is_lost; /**< and not listed since: `now` is of an earlier run of the service */
	void (*news)(const struct param *param); /**< a change of `now`; NULL: not reported */
};

/** Return: 0; -ENOMEM. */
int snapshot_init(struct snapshot *snapshot, void (*news)(const struct param *param));
void snapshot_fini(struct snapshot *snapshot);

/** The service is lost. What it reports later counts, even if it is older than what is known:
 * unwritten changes are lost, and the file may be another one. Return: 0; -ENOMEM. */
int snapshot_lose(struct snapshot *snapshot);

/** A list begins; it ends with snapshot_end, or is abandoned after snapshot_lose. Return: 0;
 * -ENOMEM. */
int snapshot_begin(struct snapshot *snapshot);

/** Take a report of a parameter, or of its removal, listed or published. Return: 0; -ENOMEM. */
int snapshot_take(struct snapshot *snapshot, const struct param *param);

/** The list is complete: parameters that the service has not reported no longer exist. */
void snapshot_end(struct snapshot *snapshot);

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
