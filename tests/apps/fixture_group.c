/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to all tests of a program: two CPUs, the available providers, and the check that nothing
 * is left in /dev/shm. */
#include "process_fixture.h"

#include <dirent.h>
#include <sched.h>

#define SHM_NAMES_MAX 1024

unsigned server_cpu, client_cpu;
const char *const providers[4] = {"tcp", "shm"};

bool is_tcp(const char *provider)
{
	return strcmp(provider, "shm") != 0;
}

const char *connected_over(const char *provider)
{
	return is_tcp(provider) ? " connected over tcp (libfabric plx_tcp)"
				: " connected over shm (libfabric plx_shm)";
}

static void find_cpus(void)
{
	cpu_set_t allowed;
	unsigned count = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		client_cpu = cpu;
		if (count++ == 0)
			server_cpu = cpu;
	}
}

static char shm_before[SHM_NAMES_MAX][256];
static unsigned shm_before_count;

static bool was_in_shm(const char *name)
{
	for (unsigned i = 0; i < shm_before_count; i++)
		if (strcmp(shm_before[i], name) == 0)
			return true;
	return false;
}

static void remember_shm(void)
{
	DIR *dir = opendir("/dev/shm");

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (shm_before_count < SHM_NAMES_MAX)
			snprintf(shm_before[shm_before_count++], sizeof(shm_before[0]), "%s",
				 entry->d_name);
	if (dir)
		closedir(dir);
}

static bool maps_file(const char *pid, const char *path)
{
	char maps_path[300], line[1024];
	bool found = false;
	FILE *maps;

	snprintf(maps_path, sizeof(maps_path), "/proc/%s/maps", pid);
	maps = fopen(maps_path, "r");
	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, path) != NULL;
	if (maps)
		fclose(maps);
	return found;
}

/* A file that a living process has mapped belongs to another program. */
static bool is_in_use(const char *name)
{
	DIR *dir = opendir("/proc");
	bool found = false;
	char path[300];

	snprintf(path, sizeof(path), "/dev/shm/%s", name);
	for (struct dirent *entry; dir && !found && (entry = readdir(dir));)
		found = maps_file(entry->d_name, path);
	if (dir)
		closedir(dir);
	return found;
}

/* A name that is new and unused. */
static bool is_left_in_shm(char *out, size_t size)
{
	DIR *dir = opendir("/dev/shm");
	bool found = false;

	for (struct dirent *entry; dir && !found && (entry = readdir(dir));) {
		snprintf(out, size, "%s", entry->d_name);
		found = !was_in_shm(out) && !is_in_use(out);
	}
	if (dir)
		closedir(dir);
	return found;
}

int group_set_up(void **state)
{
	remember_shm();
	find_cpus();
	return end_all(state);
}

int group_tear_down(void **state)
{
	char name[256] = "";

	/* Files of other programs appear and disappear. */
	for (int i = 0; i < 20 && is_left_in_shm(name, sizeof(name)); i++)
		nap_ms(100);
	if (!is_left_in_shm(name, sizeof(name)))
		return 0;
	fprintf(stderr, "/dev/shm/%s is left\n", name);
	/* cmocka prints a failed group teardown, but does not count it. */
	exit(EXIT_FAILURE);
}
