/* SPDX-License-Identifier: BSD-3-Clause */
/* What a child inherits across fork and exec. At every stage (lcores up, listening or connecting,
 * link open, link closed) it runs itself with --show, which prints its descriptors. They must equal
 * those that this process started with, which it prints first. */
#include "app.h"
#include "plx_fabric.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *listen_address, *connect_address;

static const struct plx_option options[] = {
	PLX_TEXT("listen", "ADDR", &listen_address, "wait for one link"),
	PLX_TEXT("connect", "ADDR", &connect_address, "open one link"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "inherit", .summary = "shows what its children inherit", .options = options};

/* "stage: 0 1 2", then a description of each above 2. */
static int show(const char *stage)
{
	DIR *dir = opendir("/proc/self/fd");

	printf("%s:", stage);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		int fd = atoi(entry->d_name);
		char path[64], target[256] = "";

		if (entry->d_name[0] == '.' || fd == dirfd(dir))
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (fd > 2 && readlink(path, target, sizeof(target) - 1) > 0)
			printf(" %d=%s", fd, target);
		else
			printf(" %d", fd);
	}
	printf("\n");
	if (dir)
		closedir(dir);
	return fflush(stdout);
}

static void show_child(const char *stage)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/proc/self/exe", "inherit", "--show", stage, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static void on_open(struct plx_link *link, void *user)
{
	show_child("open");
	if (connect_address)
		plx_link_close(link);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	show_child("closed");
	plx_loop_quit();
}

static const struct plx_link_events events = {.on_open = on_open, .on_close = on_close};

static int start(void)
{
	struct plx_listen_attr attr = {.link.events = &events};
	struct plx_listener *listener;
	struct plx_link *link;
	int rc;

	if (connect_address) {
		rc = plx_link_connect(connect_address, &attr.link, &link);
		show_child("connecting");
		return rc;
	}
	rc = plx_link_listen(listen_address, &attr, &listener);
	if (rc == 0) {
		plx_app_say("listening on %s", plx_listener_address(listener));
		show_child("listening");
	}
	return rc;
}

int main(int argc, char **argv)
{
	int status;

	if (argc == 3 && strcmp(argv[1], "--show") == 0)
		return show(argv[2]);
	show("given");
	status = plx_app_start(argc, argv, &app);
	if (status != PLX_APP_RUN)
		return status;
	show_child("started");
	if (start())
		return plx_app_finish(&app, plx_app_fail(&app));
	plx_loop_run();
	return plx_app_finish(&app, 0);
}
