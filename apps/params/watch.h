/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WATCH_H
#define WATCH_H

#include "params.h"

/** Show everything below a name, and each change, until a signal. Return: 0; -errno. */
int watch(const struct params_conf *conf, struct plx_rpc_client *client);

#endif
