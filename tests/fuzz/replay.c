/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target once per named file, or file in a named folder: its main function without
 * libFuzzer. */
#include "fuzz.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>

#define INPUT_BYTES_MAX (1 << 20)

/* Return: whether it could be read. */
static bool run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(INPUT_BYTES_MAX);
	size_t size = file && data ? fread(data, 1, INPUT_BYTES_MAX, file) : 0;
	uint8_t *exact = realloc(data, size ? size : 1);
	bool is_read = file && exact && !ferror(file);

	if (is_read)
		LLVMFuzzerTestOneInput(exact, size);
	else
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	if (file)
		fclose(file);
	free(exact);
	return is_read;
}

int main(int argc, char **argv)
{
	size_t count = 0;

	for (int i = 1; i < argc; i++) {
		char pattern[4096];
		glob_t found = {0};

		snprintf(pattern, sizeof(pattern), "%s/*", argv[i]);
		if (glob(pattern, 0, NULL, &found) != 0)
			count += run_file(argv[i]);
		for (size_t j = 0; j < found.gl_pathc; j++)
			count += run_file(found.gl_pathv[j]);
		globfree(&found);
	}
	printf("%zu inputs\n", count);
	return count ? EXIT_SUCCESS : EXIT_FAILURE;
}
