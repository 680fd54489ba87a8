/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target once per named file, or file in a named folder: its main function without
 * libFuzzer. */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>

#define INPUT_BYTES_MAX (1 << 20)

static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(INPUT_BYTES_MAX);
	int count = 0;

	if (file && data) {
		size_t size = fread(data, 1, INPUT_BYTES_MAX, file);
		uint8_t *exact = realloc(data, size ? size : 1);

		if (exact)
			data = exact;
		if (!ferror(file)) {
			LLVMFuzzerTestOneInput(data, size);
			count = 1;
		}
	}
	if (!count)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	if (file)
		fclose(file);
	free(data);
	return count;
}

/* Returns how many inputs ran. */
static int run_path(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return run_file(path);
	while ((entry = readdir(dir))) {
		char file[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		count += run_file(file);
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++) {
		int ran = run_path(argv[i]);

		if (!ran)
			return EXIT_FAILURE;
		count += ran;
	}
	printf("%d inputs\n", count);
	return count ? EXIT_SUCCESS : EXIT_FAILURE;
}
