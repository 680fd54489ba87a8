/* SPDX-License-Identifier: BSD-3-Clause */
#include "netio_priv.h"

static void on_events(int fd, uint32_t events, void *arg)
{
	struct netio_fd *watch = arg;

	if (watch->cb)
		watch->cb(fd, events, watch->data);
}

int netio_fd_init(struct netio_eventloop *evloop, struct netio_fd *watch, int fd, uint32_t events)
{
	int rc = netio_check(evloop, "netio_fd_init");

	watch->watch = NULL;
	if (rc)
		return rc;
	rc = plx_fd_add(fd, events, on_events, watch, &watch->watch);
	return netio_logged(rc);
}

int netio_fd_modify(struct netio_fd *watch, uint32_t events)
{
	int rc;

	if (!watch->watch)
		return netio_fail(EINVAL, "netio_fd_modify: not watched; call "
					  "netio_fd_init first");
	rc = plx_fd_modify(watch->watch, events);
	return netio_logged(rc);
}

void netio_fd_fini(struct netio_fd *watch)
{
	plx_fd_remove(watch->watch);
	watch->watch = NULL;
}
