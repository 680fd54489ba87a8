/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the library, starts and stops it, and unloads it, repeatedly. Prints the descriptors left,
 * and fails if their number grows or a signal handler has changed.
 *
 *     unload LIBRARY */
#include "plx_eal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 3

static int eventfds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		char target[64] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) > 0)
			count += strstr(target, "[eventfd]") != NULL;
	}
	if (dir)
		closedir(dir);
	return count;
}

static int round_trip(const char *library)
{
	struct plx_eal_conf conf = {.huge = PLX_HUGE_NONE};
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*init)(struct plx_eal_conf *), (*fini)(void);
	void (*conf_fini)(struct plx_eal_conf *);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	*(void **)&init = dlsym(handle, "plx_eal_init");
	*(void **)&fini = dlsym(handle, "plx_eal_fini");
	*(void **)&conf_fini = dlsym(handle, "plx_eal_conf_fini");
	if (!init || !fini || !conf_fini || init(&conf) || fini())
		return -1;
	conf_fini(&conf);
	dlclose(handle);
	handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
	if (!handle)
		return 0;
	fprintf(stderr, "the library stays loaded\n");
	return -1;
}

static void on_signal(int signal_number)
{
}

static bool handlers_stay(void)
{
	struct sigaction interrupt, fault;

	sigaction(SIGINT, NULL, &interrupt);
	sigaction(SIGSEGV, NULL, &fault);
	return interrupt.sa_handler == on_signal && interrupt.sa_flags & SA_RESTART &&
	       fault.sa_handler == on_signal;
}

int main(int argc, char **argv)
{
	struct sigaction own = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	int before = eventfds();

	if (argc != 2)
		return 2;
	sigaction(SIGINT, &own, NULL);
	sigaction(SIGSEGV, &own, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		if (round_trip(argv[1]))
			return 1;
		if (!handlers_stay()) {
			fprintf(stderr, "a handler has changed\n");
			return 1;
		}
		printf("round %d: %d eventfds, %d before\n", i, eventfds(), before);
	}
	return eventfds() > before;
}
