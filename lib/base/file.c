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

/* controller: "" in version 2. Truncates `group`. */
static void visit_up(const char *controller, char *group, plx_cgroup_fn visit, void *arg)
{
	char folder[PATH_MAX], *slash = group + strlen(group);

	if (slash[-1] == '/') /* "/" is the root */
		slash--;
	do {
		*slash = '\0';
		snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s%s%s", *controller ? "/" : "",
			 controller, group);
		visit(arg, folder, !*controller);
		slash = strrchr(group, '/');
	} while (slash);
}

/* Lines of /proc/self/cgroup: "0::/path" (v2, which lists no controllers) or "N:cpu,cpuacct:/path"
 * (v1). */
void plx_cgroup_visit(const char *root, const char *controller, plx_cgroup_fn visit, void *arg)
{
	char text[16384], *next = text, *line; /* a dozen lines of version 1, with long paths */

	plx_read_file(text, sizeof(text), "%s/proc/self/cgroup", root);
	while ((line = strsep(&next, "\n"))) {
		char *controllers, *each;

		(void)strsep(&line, ":"); /* the number of the hierarchy */
		controllers = strsep(&line, ":");
		while (line && *line == '/' && (each = strsep(&controllers, ",")))
			if (!*each || strcmp(each, controller) == 0)
				visit_up(each, line, visit, arg);
	}
}
