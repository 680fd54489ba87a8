/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files of /proc and /sys: their text, and the control groups of this process. */
#include "base_internal.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool plx_read_file(char *out, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	size_t used = 0;
	va_list args;

	va_start(args, format);
	int len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	FILE *file = (size_t)len < sizeof(path) ? fopen(path, "re") : NULL;

	if (file) {
		used = fread(out, 1, size - 1, file);
		fclose(file);
	}
	while (used > 0 && isspace((unsigned char)out[used - 1]))
		used--;
	out[used] = '\0';
	return used > 0;
}

/* Whether "cpu,cpuacct" lists it. */
static bool lists(const char *controllers, const char *controller)
{
	size_t length = strlen(controller);

	for (const char *at = controllers; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, controller, length) == 0 && strchr(",", at[length]))
			return true;
	}
	return false;
}

/* Truncates `group`. */
static void visit_up(const char *mount, char *group, bool is_v2, plx_cgroup_fn visit, void *arg)
{
	char folder[PATH_MAX], *slash = group + strlen(group);

	if (slash[-1] == '/') /* "/" is the root */
		slash--;
	do {
		*slash = '\0';
		snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s%s", mount, group);
		visit(arg, folder, is_v2);
		slash = strrchr(group, '/');
	} while (slash);
}

/* Lines of /proc/self/cgroup: "0::/path" (v2) or "N:cpu,cpuacct:/path" (v1). */
void plx_cgroup_visit(const char *root, const char *controller, plx_cgroup_fn visit, void *arg)
{
	char text[4096], mount[32], *save = NULL;

	snprintf(mount, sizeof(mount), "/%s", controller);
	plx_read_file(text, sizeof(text), "%s/proc/self/cgroup", root);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!group || group[1] != '/')
			continue;
		*group++ = '\0';
		if (controllers[1] == '\0')
			visit_up("", group, true, visit, arg);
		else if (lists(controllers + 1, controller))
			visit_up(mount, group, false, visit, arg);
	}
}
