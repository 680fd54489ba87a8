/* SPDX-License-Identifier: BSD-3-Clause */
/* A paused listener that cannot be watched again at once is retried. */
#include "shm_meet.h"

#include <errno.h>
#include <sys/epoll.h>

static int watched_not; /* a descriptor that cannot be watched; 0: none */
static unsigned refused;

/* The linker makes the library call these, see meson.build; it dictates the names. */
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *wanted);
int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *wanted);

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *wanted)
{
	if (operation == EPOLL_CTL_ADD && watched_not && fd == watched_not) {
		refused++;
		errno = ENOSPC; /* the limit of /proc/sys/fs/epoll/max_user_watches */
		return -1;
	}
	return __real_epoll_ctl(epoll, operation, fd, wanted);
}

static void progress(void)
{
	eq_progress((struct prov_eq *)server.eq);
}

PLX_TEST_WITH(a_paused_listener_keeps_retrying, setup_shm, teardown)
{
	struct prov_pep *listener = (struct prov_pep *)pep;
	struct fid_ep *first, *second;
	struct fi_info *info;
	int backlog = 1;

	assert_int_equal(fi_control(&pep->fid, FI_BACKLOG, &backlog), 0);
	first = dial(NULL, 0);
	second = dial(NULL, 0);
	info = next_request();
	until(listener->resume.at_ns, progress());
	watched_not = listener->source.fd;
	reject(info, NULL, 0);
	until(refused >= 3, progress()); /* soon, then every second */
	watched_not = 0;
	until(!TAILQ_EMPTY(&((struct prov_eq *)server.eq)->events), progress());
	reject_next(NULL, 0);
	close_ep(first);
	close_ep(second);
}

PLX_TEST_MAIN()
