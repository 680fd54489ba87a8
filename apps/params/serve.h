/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-params as a service, on one lcore: serve.c sets it up and publishes changes, methods.c
 * answers requests. */
#ifndef SERVE_H
#define SERVE_H

#include "journal.h"
#include "params.h"

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

#endif
