/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-params as a service: the store, its journal, and its methods, on one lcore. */
#ifndef SERVE_H
#define SERVE_H

#include <sched.h>

struct serve_conf {
	const char *path;        /**< of the SQLite file */
	const char *listen;      /**< host:port of the service */
	unsigned publish_port;   /**< 0: any free port */
	const cpu_set_t *others; /**< CPUs that the journal's thread may use */
};

/** Serve until the loop ends. Thread: the main lcore. Return: 0; -errno. */
int serve(const struct serve_conf *conf);

#endif
